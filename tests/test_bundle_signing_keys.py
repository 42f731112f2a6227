"""The keys of signatures: what they may be, and the messages for those that may not."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from policyeng.bundle.signing import SigningKey, VerificationKey
from policyeng.errors import UsageError
from tests.archives import keys


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("p256", "ES256"), ("p384", "ES384"), ("p521", "ES512"), ("rsa", "RS256")]
)
def test_the_algorithm_follows_the_type_of_the_key(tmp_path: Path, kind: str, algorithm: str) -> None:
    """Nothing is taken from the token."""
    pair = keys(tmp_path, kind)

    assert VerificationKey.read(pair.public).algorithm == algorithm
    assert SigningKey.read(pair.private).algorithm == algorithm


@pytest.mark.parametrize(
    ("kind", "algorithm", "message"),
    [
        ("p256", "RS256", "{key}: the key does not go with `RS256`; it goes with ES256"),
        ("p256", "ES384", "does not go with `ES384`"),
        (
            "rsa",
            "ES256",
            "{key}: the key does not go with `ES256`; it goes with RS256, RS384, RS512, PS256, PS384, PS512",
        ),
        ("rsa", "HS256", "no algorithm is called `HS256`"),
        (
            "rsa",
            "none",
            "no algorithm is called `none`; the algorithms are ES256, ES384, ES512, RS256, RS384, RS512, PS256, PS384, "
            "PS512",
        ),
        ("rsa", "rs256", "did you mean `RS256`"),
        ("rsa1024", "", "{key}: an RSA key of 1024 bits is too short; use one of 2048 bits or more"),
        ("rsa2047", "", "2047 bits is too short"),
        (
            "k1",
            "",
            "{key}: bundles are not signed with this type of key; use an RSA key, or an elliptic curve key on P-256, "
            "P-384 or P-521",
        ),
        ("ed25519", "", "not signed with this type of key"),
    ],
)
def test_an_algorithm_that_does_not_fit_is_refused(tmp_path: Path, kind: str, algorithm: str, message: str) -> None:
    """A short key, a foreign type, `none` and shared secrets are refused on both sides."""
    pair = keys(tmp_path, kind)

    with pytest.raises(UsageError) as refusal:
        VerificationKey.read(pair.public, algorithm)
    assert message.format(key=pair.public) in str(refusal.value)
    with pytest.raises(UsageError) as refusal:
        SigningKey.read(pair.private, algorithm)
    assert message.format(key=pair.private) in str(refusal.value)


def test_keys_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file, a directory, no PEM, a key on the wrong side, a password: each with what to do."""
    pair = keys(tmp_path, "p256")
    locked, broken = tmp_path / "locked.pem", tmp_path / "broken.pem"
    openssl = ["openssl", "pkey", "-in", str(pair.private), "-aes256", "-passout", "pass:x", "-out", str(locked)]
    subprocess.run(openssl, check=True)
    broken.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")

    for path, message in (
        (tmp_path / "no.pem", "the key cannot be read (no such file or directory); name a PEM file"),
        (tmp_path, "the key cannot be read (is a directory); name a PEM file"),
        (broken, "not a public key in PEM; write it with `openssl`"),
        (pair.private, "the file contains a private key; use the public key; keep the private key with the signer"),
    ):
        with pytest.raises(UsageError) as refusal:
            VerificationKey.read(path)
        assert str(refusal.value) == f"{path}: {message}"
    for path, message in (
        (tmp_path / "no.pem", "the key cannot be read (no such file or directory); name a PEM file"),
        (pair.public, "not a private key in PEM; write it with `openssl`"),
        (locked, "the private key has a password; decrypt it for the run, for example with `openssl pkey`"),
    ):
        with pytest.raises(UsageError) as refusal:
            SigningKey.read(path)
        assert str(refusal.value) == f"{path}: {message}"


def test_keys_of_an_unknown_kind_are_refused(tmp_path: Path) -> None:
    """PEM that is well formed, with an algorithm that the library does not know."""
    kind = bytes.fromhex("300506032a0304")  # a sequence of the object identifier 1.2.3.4
    public = bytes([0x30, len(kind) + 4]) + kind + bytes.fromhex("03020000")
    private = bytes([0x30, len(kind) + 6]) + bytes.fromhex("020100") + kind + bytes.fromhex("040100")
    path = tmp_path / "key.pem"

    path.write_bytes(_pem(b"PUBLIC KEY", public))
    with pytest.raises(UsageError, match="not a public key in PEM"):
        VerificationKey.read(path)
    path.write_bytes(_pem(b"PRIVATE KEY", private))
    with pytest.raises(UsageError, match="not a private key in PEM"):
        SigningKey.read(path)


def _pem(label: bytes, content: bytes) -> bytes:
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (label, base64.encodebytes(content), label)


def test_a_certificate_is_a_public_key(tmp_path: Path) -> None:
    """As OPA takes it."""
    pair, certificate = keys(tmp_path, "p256"), tmp_path / "certificate.pem"
    openssl = ["openssl", "req", "-x509", "-key", str(pair.private), "-subj", "/CN=x", "-out", str(certificate)]
    subprocess.run(openssl, check=True, capture_output=True)

    assert VerificationKey.read(certificate).public == VerificationKey.read(pair.public).public


@pytest.mark.parametrize("library", ["cryptography", "jwt"])
def test_each_side_needs_both_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """A missing one is reported before any key is read."""
    monkeypatch.setitem(sys.modules, library, None)

    for read in (VerificationKey.read, SigningKey.read):
        with pytest.raises(UsageError) as refusal:
            read(tmp_path / "no.pem")
        assert str(refusal.value) == (
            f"signatures need `{library}`, which is not installed; install `policyeng[signing]`"
        )


def test_without_the_libraries_the_message_names_what_to_install(tmp_path: Path) -> None:
    """The core is installed without cryptography; a configured key is never ignored for it."""
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from policyeng.cli import run\n"
        "sys.exit(run(['policies', 'list', '--policy', '.', '--verification-key', 'k.pem', '--require-signature']))\n"
    )
    (tmp_path / "k.pem").write_bytes(b"")
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 3
    assert "signatures need `cryptography`, which is not installed; install `policyeng[signing]`" in ran.stderr
