"""The keys of signatures: what they may be, and what is said of those that may not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from policyeng.bundle.signing_keys import SigningKey, VerificationKey
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
    ("kind", "algorithm", "said"),
    [
        ("p256", "RS256", "does not go with `RS256`"),
        ("p256", "ES384", "does not go with `ES384`"),
        ("rsa", "ES256", "does not go with `ES256`"),
        ("rsa", "HS256", "no algorithm is called `HS256`"),
        ("rsa", "none", "no algorithm is called `none`"),
        ("rsa", "rs256", "did you mean `RS256`"),
        ("rsa1024", "", "1024 bits is too short"),
        ("k1", "", "not signed with this type of key"),
        ("ed25519", "", "not signed with this type of key"),
    ],
)
def test_an_algorithm_that_does_not_fit_is_refused(tmp_path: Path, kind: str, algorithm: str, said: str) -> None:
    """A short key, a foreign type, `none` and shared secrets are refused on both sides."""
    pair = keys(tmp_path, kind)

    with pytest.raises(UsageError, match=said):
        VerificationKey.read(pair.public, algorithm)
    with pytest.raises(UsageError, match=said):
        SigningKey.read(pair.private, algorithm)


def test_keys_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file, a directory, no PEM, a key on the wrong side, a password: each with what to do."""
    pair = keys(tmp_path, "p256")
    locked, broken = tmp_path / "locked.pem", tmp_path / "broken.pem"
    openssl = ["openssl", "pkey", "-in", str(pair.private), "-aes256", "-passout", "pass:x", "-out", str(locked)]
    subprocess.run(openssl, check=True)
    broken.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")

    for path, said in (
        (tmp_path / "no.pem", "cannot be read"),
        (tmp_path, "cannot be read"),
        (broken, "not a public key"),
    ):
        with pytest.raises(UsageError, match=said):
            VerificationKey.read(path)
    with pytest.raises(UsageError, match="holds a private key"):
        VerificationKey.read(pair.private)
    with pytest.raises(UsageError, match="not a private key"):
        SigningKey.read(pair.public)
    with pytest.raises(UsageError, match="has a password"):
        SigningKey.read(locked)


def test_a_certificate_is_a_public_key(tmp_path: Path) -> None:
    """As OPA takes it."""
    pair, certificate = keys(tmp_path, "p256"), tmp_path / "certificate.pem"
    openssl = ["openssl", "req", "-x509", "-key", str(pair.private), "-subj", "/CN=x", "-out", str(certificate)]
    subprocess.run(openssl, check=True, capture_output=True)

    assert VerificationKey.read(certificate).public == VerificationKey.read(pair.public).public


def test_without_the_libraries_it_is_said_how_to_get_them(tmp_path: Path) -> None:
    """The core is installed without cryptography; a configured key is never ignored for it."""
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from policyeng.cli import run\n"
        "sys.exit(run(['policies', 'list', '--policy', '.', '--verification-key', 'k.pem', '--require-signature']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 3
    assert "signatures need `cryptography`, which is not installed; install `policyeng[signing]`" in ran.stderr
