"""Certificates made for tests: a root, and what it signs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

#: What servers are called besides their address: on loopback, and by the manifests' Service.
_NAMES = ("localhost", "policyeng.policyeng.svc")


class Root:
    """A root that signs."""

    def __init__(self, name: str = "root") -> None:
        self._key = generate_private_key(SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key).add_extension(constraints, critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    def write(self, path: Path) -> Path:
        """Its own certificate, as PEM."""
        path.write_bytes(self._certificate.public_bytes(Encoding.PEM))
        return path

    def issue(self, folder: Path, name: str, file: str = "", password: bytes = b"") -> tuple[Path, Path]:
        """A certificate for servers of tests and its key, as `FILE.pem` and `FILE.key`; each is put there in one step.

        Args:
            folder: where they go.
            name: the common name.
            file: the stem of both, the name unless given.
            password: of the key; none when empty.
        """
        key = generate_private_key(SECP256R1())
        organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "contoso")
        subject = x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), *map(x509.DNSName, _NAMES)])
        certificate = _builder(subject, self._name, key).add_extension(names, critical=False)
        signed = certificate.sign(self._key, hashes.SHA256())
        protection = BestAvailableEncryption(password) if password else NoEncryption()
        # The form in which the API server of Kubernetes reads keys of service accounts, too.
        private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, protection)
        paths = folder / f"{file or name}.pem", folder / f"{file or name}.key"
        for path, content in zip(paths, (signed.public_bytes(Encoding.PEM), private), strict=True):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.rename(path)
        return paths


def write_secret(folder: Path) -> None:
    """Write a root and what it signs as a Secret of Kubernetes has them: `ca.crt`, `tls.crt` and `tls.key`."""
    folder.mkdir(parents=True, exist_ok=True)
    root = Root()
    root.write(folder / "ca.crt")
    certificate, _ = root.issue(folder, "policyeng", "tls")
    certificate.rename(folder / "tls.crt")


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
    )
