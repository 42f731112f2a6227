"""Sign bundles and verify their signatures, in OPA's form: `.signatures.json` with one JSON Web Token over all files.

Source: openpolicyagent.org/docs/management-bundles, "Signing", and OPA's v1/bundle/sign.go and verify.go. The algorithm
comes from the configuration or from the type of the key, never from the token.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import orjson

from policyeng.bundle.files import DATA_NAMES
from policyeng.bundle.manifest import MANIFEST, bundle_json, bundle_yaml
from policyeng.bundle.signature_policy import SIGNATURES, Signature, Verification
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
            UsageError: the file cannot be read or has no such key, or the algorithm does not fit the key.
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
        """Return the header and the claims of a token, once its signature and its times are valid.

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
            UsageError: the file cannot be read or has no such key, or the algorithm does not fit the key.
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
    """Return the algorithm to use with a key: the requested one, if its type allows it."""
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


#: OPA's names of the algorithms that are accepted, and hashlib's; MD5 and SHA-1 are left out, they no longer bind.
ALGORITHMS = {
    "SHA-224": "sha224",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
    "SHA-512-224": "sha512_224",
    "SHA-512-256": "sha512_256",
}

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Number(NamedTuple):
    """A number as its document writes it."""

    text: str


def file_hash(path: PurePosixPath, content: bytes, algorithm: str, place: str) -> str:
    """Return the hash of a file, as hexadecimal; `algorithm` is a key of `ALGORITHMS`.

    Raises:
        BundleError: a document is neither JSON nor YAML.
    """
    if path.name in DATA_NAMES or path.name == MANIFEST.name:
        content = "".join(_canonical(_document(content, place))).encode()
    return hashlib.new(ALGORITHMS[algorithm], content, usedforsecurity=True).hexdigest()


def _document(content: bytes, place: str) -> object:
    try:
        text = content.decode("utf-8-sig")
        try:
            return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)
        except ValueError:
            return bundle_yaml(text, place)
    except (UnicodeDecodeError, RecursionError) as error:
        raise BundleError("the document cannot be read", place=(place,), remedy="write JSON in UTF-8") from error


def _no_constant(name: str) -> object:
    raise ValueError(f"`{name}` is not JSON")


def _canonical(value: object) -> Iterator[str]:
    if isinstance(value, _Number):
        yield value.text
    elif isinstance(value, dict):
        yield "{"
        for position, key in enumerate(sorted(value)):
            yield f"{',' if position else ''}{_quoted(key)}:"
            yield from _canonical(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for position, element in enumerate(value):
            if position:
                yield ","
            yield from _canonical(element)
        yield "]"
    elif isinstance(value, str):
        yield _quoted(value)
    elif isinstance(value, float):
        yield _as_go(value)
    else:
        yield json.dumps(value)


def _quoted(text: str) -> str:
    """Return a string as Go writes it in JSON: line separators escaped, and what is no character replaced."""
    sound = text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
    return json.dumps(sound, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _as_go(value: float) -> str:
    """Return a number of a YAML document as Go writes it in JSON: shortest digits, exponent only if large."""
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        from decimal import Decimal

        digits = format(Decimal(repr(value)), "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    mantissa, _, exponent = repr(value).partition("e")
    sign, digits = exponent[:1], exponent[1:].lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{sign}{digits.rjust(2, '0') if sign == '+' else digits}"


_LAST = 253_402_300_800  # the first second of the year 10000, which `datetime` does not have
_RESIGN = "get the bundle from its author again, or sign it anew if the change is meant"


def verify(files: Mapping[PurePosixPath, bytes], place: str, verification: Verification) -> Signature:
    """Verify the signature among the files of a bundle, and every file by it.

    Raises:
        BundleError: there is no signature, it is not the key's, has expired or is for another key or scope, or a file
            was altered, added or removed; names the file.
        UsageError: the key or the algorithm of the configuration cannot be used.
    """
    key = VerificationKey.read(verification.require_key(), verification.algorithm)
    if SIGNATURES not in files:
        remedy = "sign an archive with `policyeng bundle build --signing-key FILE`, a directory with `bundle sign`"
        if Path(place).is_dir():
            remedy = "sign it with `policyeng bundle sign --signing-key FILE`, or add `--allow-unsigned-directory`"
        raise BundleError("the bundle is not signed", place=(place,), remedy=remedy)
    token = _token(files[SIGNATURES], f"{place}/{SIGNATURES}")
    header, claims = key.claims(token, f"{place}/{SIGNATURES}")
    signature = _signature(header, claims, key.algorithm)
    _require_identity(signature, verification, f"{place}/{SIGNATURES}")
    _require_files(_list_signed_files(claims, place), files, place)
    return signature


def signed(files: Mapping[PurePosixPath, bytes], key: SigningKey) -> bytes:
    """Return the `.signatures.json` over the files of a bundle; the same files and key give the same bytes."""
    listed = [
        {"name": str(path), "hash": file_hash(path, content, "SHA-256", str(path)), "algorithm": "SHA-256"}
        for path, content in sorted(files.items())
        if path != SIGNATURES
    ]
    claims: JsonObject = {"files": listed, **({"keyid": key.key_id} if key.key_id else {})}
    return orjson.dumps({"signatures": [key.token(orjson.dumps(claims))]}, option=orjson.OPT_INDENT_2) + b"\n"


def _token(content: bytes, place: str) -> str:
    document = bundle_json(content, place)
    tokens = document.get("signatures") if isinstance(document, dict) else None
    if not isinstance(tokens, list) or len(tokens) != 1 or not isinstance(tokens[0], str):
        raise BundleError("exactly one signature is expected", place=(place,), remedy="sign the bundle anew")
    if isinstance(document, dict) and document.get("plugin") not in (None, "", "_default"):
        remedy = "sign it with OPA's default, or with `policyeng bundle build`"
        raise BundleError(f"the signature is of the plugin `{document['plugin']}`", place=(place,), remedy=remedy)
    return tokens[0]


def _signature(header: JsonObject, claims: JsonObject, algorithm: str) -> Signature:
    until = claims.get("exp")
    expires = datetime.fromtimestamp(until, UTC).isoformat() if isinstance(until, int) and until < _LAST else ""
    key_id = header.get("kid") or claims.get("keyid") or ""
    return Signature(algorithm, str(key_id), str(claims.get("scope") or ""), expires)


def _require_identity(signature: Signature, verification: Verification, place: str) -> None:
    pairs = (("key", signature.key_id, verification.key_id), ("scope", signature.scope, verification.scope))
    for what, stated, wanted in pairs:
        if stated == wanted or (what == "key" and not wanted):
            continue
        actual = f"the signature has the {what} `{stated}`" if stated else f"the signature has no {what}"
        configured = f"`{wanted}` is configured" if wanted else "none is configured"
        option = "`--verification-key-id`" if what == "key" else "`--verification-scope`"
        raise BundleError(f"{actual}, but {configured}", place=(place,), remedy=f"set {option} to the expected value")


def _list_signed_files(claims: JsonObject, place: str) -> dict[str, tuple[str, str]]:
    """Return the signed files: hash and algorithm by name."""
    entries = claims.get("files")
    listed: dict[str, tuple[str, str]] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        name, hexadecimal, algorithm = _fields(entry)
        if not name:
            raise BundleError("the signature lists no files", place=(place, str(SIGNATURES)), remedy=_RESIGN)
        if algorithm not in ALGORITHMS:
            known = f"sign it with one of {', '.join(ALGORITHMS)}"
            raise BundleError(f"the hash algorithm `{algorithm}` is not accepted", place=(place, name), remedy=known)
        if name in listed:
            raise BundleError("the signature lists the file twice", place=(place, name), remedy=_RESIGN)
        listed[name] = (hexadecimal.lower(), algorithm)
    return listed


def _fields(entry: object) -> tuple[str, str, str]:
    """Name, hash and algorithm of a signed file; empty where they are no text."""
    members = entry if isinstance(entry, dict) else {}
    name, hexadecimal, algorithm = (members.get(key) for key in ("name", "hash", "algorithm"))
    return (
        name if isinstance(name, str) else "",
        hexadecimal if isinstance(hexadecimal, str) else "",
        algorithm if isinstance(algorithm, str) else "",
    )


def _require_files(listed: Mapping[str, tuple[str, str]], files: Mapping[PurePosixPath, bytes], place: str) -> None:
    """Check that every file is signed and every signed file exists with the content that was signed."""
    present = {str(path): path for path in files if path != SIGNATURES}
    prefix = _prefix(listed, present)
    names = {name.removeprefix(prefix): entry for name, entry in listed.items()}
    for what, there, wanted in (("was added after signing", present, names), ("is missing", names, present)):
        if surplus := sorted(set(there) - set(wanted)):
            raise BundleError(f"the file {what}", place=(place, surplus[0]), remedy=_RESIGN)
    for name, (hexadecimal, algorithm) in sorted(names.items()):
        path = present[name]
        if file_hash(path, files[path], algorithm, f"{place}/{name}") != hexadecimal:
            raise BundleError("the file was altered after signing", place=(place, name), remedy=_RESIGN)


def _prefix(listed: Iterable[str], present: Iterable[str]) -> str:
    """Return what `opa sign --bundle DIR` puts before the name of each file of a directory: the directory."""
    names, paths = set(listed), set(present)
    first = min(paths, default="")
    for name in sorted(names):
        prefix = name.removesuffix(first)
        if prefix.endswith("/") and names == {prefix + path for path in paths}:
            return prefix
    return ""
