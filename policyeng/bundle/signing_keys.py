"""The keys of bundle signatures: read from PEM, and used with one algorithm that their type allows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.models import JsonObject

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from jwt import PyJWS

#: By the type of the key, the algorithms that it can be used with; the first is the default.
_ALGORITHMS = {
    "secp256r1": ("ES256",),
    "secp384r1": ("ES384",),
    "secp521r1": ("ES512",),
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
}
_LEAST_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key and the one algorithm that it verifies with."""

    public: EllipticCurvePublicKey | RSAPublicKey
    algorithm: str

    @classmethod
    def read(cls, path: Path, algorithm: str = "") -> Self:
        """Return a public key, or that of a certificate, in PEM.

        Raises:
            UsageError: the file cannot be read or holds no such key, or the algorithm does not fit the key.
        """
        _require_libraries()
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        content = _content(path)
        if b"PRIVATE KEY-----" in content:
            remedy = "use the public key; keep the private key with the signer"
            raise UsageError("the file contains a private key", place=(str(path),), remedy=remedy)
        certificate = b"BEGIN CERTIFICATE" in content
        try:
            public: Any = (
                x509.load_pem_x509_certificate(content).public_key() if certificate else load_pem_public_key(content)
            )
        except (ValueError, UnsupportedAlgorithm):
            raise UsageError("not a public key in PEM", place=(str(path),), remedy="write it with `openssl`") from None
        return cls(public, _algorithm(public, algorithm, path))

    def claims(self, token: str, place: str) -> tuple[JsonObject, JsonObject]:
        """Return the header and the claims of a token, once its signature and its times hold.

        Raises:
            BundleError: the signature is not this key's with this algorithm, or the token has expired.
        """
        import jwt

        remedy = "get the bundle from its author again, or name the key that it was signed with"
        options: Any = {"verify_aud": False, "verify_iss": False, "verify_sub": False, "verify_jti": False}
        try:
            whole = jwt.decode_complete(token, self.public, algorithms=[self.algorithm], options=options)
        except jwt.ExpiredSignatureError:
            raise BundleError("the signature has expired", place=(place,), remedy="get a newer bundle") from None
        except jwt.InvalidAlgorithmError:
            what = f"the signature is not made with `{self.algorithm}`"
            raise BundleError(what, place=(place,), remedy="set `--verification-algorithm`, if it should be") from None
        except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
            what = f"the signature does not hold ({str(error)[:1].lower()}{str(error)[1:]})"
            raise BundleError(what, place=(place,), remedy=remedy) from None
        return whole["header"], whole["payload"]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key, the algorithm that it signs with, and the name under which verifiers know it."""

    private: EllipticCurvePrivateKey | RSAPrivateKey
    algorithm: str
    key_id: str = ""

    @classmethod
    def read(cls, path: Path, algorithm: str = "", key_id: str = "") -> Self:
        """Return a private key in PEM, without a password.

        Raises:
            UsageError: the file cannot be read or holds no such key, or the algorithm does not fit the key.
        """
        _require_libraries()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            private: Any = load_pem_private_key(_content(path), password=None)
        except TypeError:
            remedy = "decrypt it for the run, for example with `openssl pkey`"
            raise UsageError("the private key has a password", place=(str(path),), remedy=remedy) from None
        except (ValueError, UnsupportedAlgorithm):
            raise UsageError("not a private key in PEM", place=(str(path),), remedy="write it with `openssl`") from None
        return cls(private, _algorithm(private, algorithm, path), key_id)

    def token(self, payload: bytes) -> str:
        """Return a JSON Web Token over a payload; the same payload gives the same token."""
        headers = {"kid": self.key_id} if self.key_id else None
        return _deterministic().encode(payload, self.private, self.algorithm, headers)


def _deterministic() -> PyJWS:
    """PyJWT with ECDSA nonces derived from key and payload (RFC 6979), so that an archive is built the same twice."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt import PyJWS
    from jwt.algorithms import ECAlgorithm
    from jwt.utils import der_to_raw_signature

    class Deterministic(ECAlgorithm):
        def sign(self, msg: bytes, key: EllipticCurvePrivateKey) -> bytes:
            way = ec.ECDSA(self.hash_alg(), deterministic_signing=True)
            return der_to_raw_signature(key.sign(msg, way), key.curve)

    jws = PyJWS()
    for name in ("256", "384", "512"):
        jws.unregister_algorithm(f"ES{name}")
        jws.register_algorithm(f"ES{name}", Deterministic(getattr(ECAlgorithm, f"SHA{name}")))
    return jws


def _require_libraries() -> None:
    try:
        import cryptography
        import jwt
    except ImportError as error:
        remedy = "install `policyeng[signing]`"
        raise UsageError(f"signatures need `{error.name}`, which is not installed", remedy=remedy) from None
    del cryptography, jwt


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise UsageError(f"the key cannot be read ({reason})", place=(str(path),), remedy="name a PEM file") from None


def _algorithm(key: object, wanted: str, path: Path) -> str:
    """Return the algorithm to use with a key: the one that is asked for, when its type allows it."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        allowed = _ALGORITHMS.get(key.curve.name, ())
    elif isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey):
        if key.key_size < _LEAST_RSA_BITS:
            what = f"an RSA key of {key.key_size} bits is too short"
            raise UsageError(what, place=(str(path),), remedy=f"use one of {_LEAST_RSA_BITS} bits or more")
        allowed = _ALGORITHMS["RSA"]
    else:
        allowed = ()
    if not allowed:
        remedy = "use an RSA key, or an elliptic curve key on P-256, P-384 or P-521"
        raise UsageError("bundles are not signed with this type of key", place=(str(path),), remedy=remedy)
    if wanted and wanted not in allowed:
        known = [name for names in _ALGORITHMS.values() for name in names]
        if wanted not in known:
            remedy = f"the algorithms are {', '.join(known)}"
            raise UsageError(f"no algorithm is called `{wanted}`{suggest_nearest(wanted, known)}", remedy=remedy)
        remedy = f"it goes with {', '.join(allowed)}"
        raise UsageError(f"the key does not go with `{wanted}`", place=(str(path),), remedy=remedy)
    return wanted or allowed[0]
