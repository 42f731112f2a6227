"""Keys of certificates, PEM blocks and JWKs."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_der_private_key

from policyeng.rego.builtins.go_text import decode_base64
from policyeng.rego.builtins.registry import BuiltinError
from policyeng.rego.values import Value

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OBJECT_IDENTIFIER = 0x01, 0x02, 0x03, 0x04, 0x06
UTC_TIME, GENERALIZED_TIME, SEQUENCE, SET = 0x17, 0x18, 0x30, 0x31
_TIMES = {
    UTC_TIME: re.compile(rb"([0-9]{2})([0-9]{8})([0-9]{2})?(Z|[+-][0-9]{4})"),
    GENERALIZED_TIME: re.compile(rb"([0-9]{4})([0-9]{8})([0-9]{2})(Z|[+-][0-9]{4})"),
}
_LARGEST_ARC = (1 << 31) - 1


class DerError(BuiltinError):
    """Bytes that are no DER, or no such DER."""


class Der:
    """What is left to read of some DER."""

    __slots__ = ("rest",)

    def __init__(self, content: bytes) -> None:
        """Read from the beginning."""
        self.rest = content

    def __bool__(self) -> bool:
        """Return whether something is left."""
        return bool(self.rest)

    def next_tag(self) -> int:
        """Return the tag of the next element, -1 at the end."""
        return self.rest[0] if self.rest else -1

    def read_element(self, tag: int) -> bytes:
        """Take an element with its header."""
        if self.next_tag() != tag:
            raise DerError(f"x509: malformed ASN.1: tag {self.next_tag()} where {tag} is due")
        start, end = self._span()
        del start
        element, self.rest = self.rest[:end], self.rest[end:]
        return element

    def read_any(self) -> tuple[int, bytes]:
        """Take an element: its tag and its content."""
        tag = self.next_tag()
        start, end = self._span()
        content, self.rest = self.rest[start:end], self.rest[end:]
        return tag, content

    def read(self, tag: int) -> Der:
        """Take an element: its content."""
        if self.next_tag() != tag:
            raise DerError(f"x509: malformed ASN.1: tag {self.next_tag()} where {tag} is due")
        return Der(self.read_any()[1])

    def read_optional(self, tag: int) -> Der | None:
        """Take an element if it has a tag."""
        return self.read(tag) if self.next_tag() == tag else None

    def read_integer(self, tag: int = INTEGER) -> int:
        """Take an integer."""
        content = self.read(tag).rest
        if not content or (len(content) > 1 and content[0] in {0, 0xFF} and content[0] >> 7 == content[1] >> 7):
            raise DerError("x509: malformed integer")
        return int.from_bytes(content, "big", signed=True)

    def read_boolean(self) -> bool:
        """Take a boolean."""
        content = self.read(BOOLEAN).rest
        if content not in {b"\0", b"\xff"}:
            raise DerError("x509: malformed boolean")
        return content == b"\xff"

    def read_bits(self) -> tuple[bytes, int]:
        """Take a bit string: its bytes and how many bits of the last are padding."""
        content = self.read(BIT_STRING).rest
        padding = content[0] if content else 8
        bits = content[1:]
        if padding > 7 or (padding and not bits) or (bits and bits[-1] & ((1 << padding) - 1)):
            raise DerError("x509: malformed bit string")
        return bits, padding

    def read_identifier(self) -> list[int]:
        """Take an object identifier."""
        arcs = split_identifier(self.read(OBJECT_IDENTIFIER).rest)
        if max(arcs) > _LARGEST_ARC:
            raise DerError("x509: malformed OID")
        return arcs

    def read_time(self) -> datetime:
        """Take a time."""
        tag, content = self.read_any()
        found = _TIMES[tag].fullmatch(content) if tag in _TIMES else None
        if not found or found[4][1:] == b"0000":
            raise DerError("x509: malformed time")
        year, zone = int(found[1]), found[4].decode()
        if tag == UTC_TIME:
            year += 1900 if year >= 50 else 2000
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:])) if zone != "Z" else timedelta()
        digits = found[2].decode() + (found[3] or b"00").decode()
        month, day, hour, minute, second = (int(digits[index : index + 2]) for index in range(0, 10, 2))
        try:
            place = timezone(-offset if zone[0] == "-" else offset) if offset else UTC
            return datetime(year, month, day, hour, minute, second, tzinfo=place)
        except ValueError:
            raise DerError("x509: malformed time") from None

    def _span(self) -> tuple[int, int]:
        """Return where the content of the next element starts and ends."""
        rest = self.rest
        if len(rest) < 2 or rest[0] & 0x1F == 0x1F:
            raise DerError("x509: malformed ASN.1")
        start, length = 2, rest[1]
        if length & 0x80:
            start += length & 0x7F
            count = rest[2:start]
            if not 0 < len(count) <= 4 or len(count) < start - 2 or count[0] == 0:
                raise DerError("x509: malformed ASN.1 length")
            length = int.from_bytes(count, "big")
            if length < 0x80:
                raise DerError("x509: malformed ASN.1 length")
        if start + length > len(rest):
            raise DerError("x509: malformed ASN.1: truncated")
        return start, start + length


def split_identifier(content: bytes) -> list[int]:
    """Return the arcs of an encoded object identifier."""
    arcs, value, started = [], 0, False
    for byte in content:
        if byte == 0x80 and not started:
            raise DerError("x509: malformed OID")
        value, started = value << 7 | byte & 0x7F, byte >= 0x80
        if not started:
            arcs.append(value)
            value = 0
    if started or not arcs:
        raise DerError("x509: malformed OID")
    first = min(arcs[0] // 40, 2)
    return [first, arcs[0] - 40 * first, *arcs[1:]]


_CURVES: dict[str, ec.EllipticCurve] = {
    "P-224": ec.SECP224R1(),
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}
_CURVE_NAMES = {curve.name: name for name, curve in _CURVES.items()}
_CURVE_IDENTIFIERS = {
    (1, 3, 132, 0, 33): "P-224",
    (1, 2, 840, 10045, 3, 1, 7): "P-256",
    (1, 3, 132, 0, 34): "P-384",
    (1, 3, 132, 0, 35): "P-521",
}
#: The numbers of Go for the algorithms of public keys.
KEY_ALGORITHMS = {
    (1, 2, 840, 113549, 1, 1, 1): 1,
    (1, 2, 840, 10040, 4, 1): 2,
    (1, 2, 840, 10045, 2, 1): 3,
    (1, 3, 101, 112): 4,
}
#: Go verifies nothing with RSA keys beyond these.
_FEWEST_RSA_BITS = 1024
_LARGEST_EXPONENT = (1 << 31) - 1
#: The algorithms of JWS that OPA verifies.
ALGORITHMS = frozenset(
    (*(f"{family}{size}" for family in ("RS", "PS", "ES", "HS") for size in (256, 384, 512)), "EdDSA"),
)
#: Those that a JWK may also name.
_OTHER_ALGORITHMS = frozenset(
    (
        *("ES256K", "Ed25519", "none", "dir", "RSA1_5", "RSA-OAEP", "RSA-OAEP-256", "RSA-OAEP-384", "RSA-OAEP-512"),
        *("A128KW", "A192KW", "A256KW", "A128GCMKW", "A192GCMKW", "A256GCMKW", "A128GCM", "A192GCM", "A256GCM"),
        *("ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"),
        *("PBES2-HS256+A128KW", "PBES2-HS384+A192KW", "PBES2-HS512+A256KW"),
        *("A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512"),
    )
)
HASHES: dict[int, hashes.HashAlgorithm] = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}


@dataclass(frozen=True)
class RsaKey:
    """An RSA key; `private` if it is one."""

    n: int
    e: int
    private: rsa.RSAPrivateNumbers | None = None


@dataclass(frozen=True)
class EcKey:
    """A key on a curve, with its secret `d` if it is a private one."""

    curve: str
    x: int
    y: int
    d: int | None = None


@dataclass(frozen=True)
class EdKey:
    """An Ed25519 key, with its seed if it is a private one."""

    public: bytes
    seed: bytes | None = None


@dataclass(frozen=True)
class OtherKey:
    """A key that signs nothing: X25519 with its bytes, DSA with its JSON."""

    public: bytes = b""
    secret: bytes | None = None
    document: Value = None


Key = RsaKey | EcKey | EdKey | OtherKey | bytes


def parse_public_key(content: bytes) -> tuple[int, Key | None]:
    """Read the public key of a certificate.

    Args:
        content: DER of a SubjectPublicKeyInfo.

    Returns:
        the number of Go for its algorithm, and the key, None of an algorithm that Go does not know.
    """
    info = Der(content).read(SEQUENCE)
    algorithm = info.read(SEQUENCE)
    identifier = tuple(algorithm.read_identifier())
    parameters = algorithm.rest
    data = info.read_bits()[0]
    number = KEY_ALGORITHMS.get(identifier, 0)
    if number == 1:
        return number, _parse_rsa(parameters, data)
    if number == 2:
        return number, _parse_dsa(parameters, data)
    if number == 3:
        curve = _CURVE_IDENTIFIERS.get(tuple(Der(parameters).read_identifier()))
        if curve is None:
            raise DerError("x509: unsupported elliptic curve")
        return number, _parse_point(curve, data)
    if number == 4:
        if parameters or len(data) != 32:
            raise DerError("x509: malformed Ed25519 key")
        return number, EdKey(data)
    return number, None


def parse_any_public_key(content: bytes) -> Key:
    """Read a public key of PEM.

    Args:
        content: DER of a SubjectPublicKeyInfo.
    """
    outer = Der(content)
    outer.read_element(SEQUENCE)
    if outer:
        raise DerError("x509: trailing data after ASN.1 of public-key")
    key = parse_public_key(content)[1]
    if key is not None:
        return key
    info = Der(content).read(SEQUENCE)
    algorithm = info.read(SEQUENCE)
    if algorithm.read_identifier() == [1, 3, 101, 110] and not algorithm:
        data = info.read_bits()[0]
        if len(data) == 32:
            return OtherKey(data)
    raise DerError("x509: unknown public key algorithm")


def _parse_rsa(parameters: bytes, data: bytes) -> RsaKey:
    if parameters != b"\x05\x00":
        raise DerError("x509: RSA key missing NULL parameters")
    numbers = Der(data).read(SEQUENCE)
    key = RsaKey(numbers.read_integer(), numbers.read_integer())
    if key.n <= 0 or not 0 < key.e < 1 << 63:
        raise DerError("x509: invalid RSA public key")
    return key


def _parse_dsa(parameters: bytes, data: bytes) -> OtherKey:
    numbers = Der(parameters).read(SEQUENCE)
    document = {"Y": Der(data).read_integer(), **{name: numbers.read_integer() for name in "PQG"}}
    if min(document.values()) <= 0:
        raise DerError("x509: zero or negative DSA parameter")
    return OtherKey(document={name: document[name] for name in "GPQY"})


def _parse_point(curve: str, data: bytes) -> EcKey:
    size = (_CURVES[curve].key_size + 7) // 8
    if len(data) != 2 * size + 1 or data[0] != 4:
        raise DerError("x509: invalid ECDSA public key")
    key = EcKey(curve, int.from_bytes(data[1 : size + 1], "big"), int.from_bytes(data[size + 1 :], "big"))
    _build_ec(key)
    return key


def _build_ec(key: EcKey) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicNumbers(key.x, key.y, _CURVES[key.curve]).public_key()
    except ValueError:
        raise DerError("x509: the point of the public key is not on its curve") from None


def parse_private_key(content: bytes, second_tag: int | None = None) -> Key:
    """Read a private key.

    Args:
        content: DER of PKCS#1, PKCS#8 or SEC 1.
        second_tag: of its second member, by which these differ; None for any.
    """
    members = Der(content).read(SEQUENCE)
    members.read_integer()
    if second_tag is not None and members.next_tag() != second_tag:
        raise BuiltinError("x509: failed to parse private key")
    try:
        key = load_der_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BuiltinError("x509: failed to parse private key") from None
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.private_numbers()
        return RsaKey(numbers.public_numbers.n, numbers.public_numbers.e, numbers)
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVE_NAMES:
        private = key.private_numbers()
        public = private.public_numbers
        return EcKey(_CURVE_NAMES[key.curve.name], public.x, public.y, private.private_value)
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return EdKey(key.public_key().public_bytes_raw(), key.private_bytes_raw())
    if isinstance(key, x25519.X25519PrivateKey):
        return OtherKey(key.public_key().public_bytes_raw(), key.private_bytes_raw())
    raise BuiltinError("x509: PKCS#8 wrapping contained private key with unknown algorithm")


def public_document(key: Key | None) -> Value:
    """Return a public key as JSON of Go."""
    match key:
        case RsaKey():
            return {"E": key.e, "N": key.n}
        case EcKey():
            return {"Curve": {}, "X": key.x, "Y": key.y}
        case EdKey():
            return base64.b64encode(key.public).decode()
        case OtherKey():
            return key.document or {}
        case _:
            return None


def private_document(key: Key) -> Value:
    """Return a private key as JSON of Go."""
    match key:
        case RsaKey(private=rsa.RSAPrivateNumbers() as private):
            precomputed = {"CRTValues": [], "Dp": private.dmp1, "Dq": private.dmq1, "Qinv": private.iqmp}
            document = {"D": private.d, "Precomputed": precomputed, "Primes": [private.p, private.q]}
            return document | public_document(key)
        case EcKey():
            return {"D": key.d, **public_document(key)}
        case EdKey(seed=bytes() as seed):
            return base64.b64encode(seed + key.public).decode()
        case _:
            return {}


def to_jwk(key: Key) -> Value:
    """Return a private key as a JWK."""
    match key:
        case RsaKey(private=rsa.RSAPrivateNumbers() as private):
            numbers = {"n": key.n, "e": key.e, "d": private.d, "p": private.p, "q": private.q}
            numbers |= {"dp": private.dmp1, "dq": private.dmq1, "qi": private.iqmp}
            return {"kty": "RSA", **{name: _encode_number(number) for name, number in numbers.items()}}
        case EcKey(d=int() as d) if key.curve != "P-224":
            size = (_CURVES[key.curve].key_size + 7) // 8
            coordinates = {"x": key.x, "y": key.y, "d": d}
            encoded = {name: _encode(number.to_bytes(size, "big")) for name, number in coordinates.items()}
            return {"kty": "EC", "crv": key.curve, **encoded}
        case EdKey(seed=bytes() as secret):
            curve = "Ed25519"
        case OtherKey(secret=bytes() as secret):
            curve = "X25519"
        case _:
            raise BuiltinError("the key has no JWK")
    return {"kty": "OKP", "crv": curve, "d": _encode(secret), "x": _encode(key.public)}


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _encode_number(number: int) -> str:
    return _encode(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@dataclass(frozen=True)
class NamedKey:
    """A key of a JWK with its algorithm and identifier, empty if it names none."""

    key: Key
    algorithm: str = ""
    identifier: str = ""


def parse_jwk(document: Value) -> NamedKey:
    """Read a JWK.

    Raises:
        BuiltinError: it is not valid.
    """
    if type(document) is not dict:
        raise BuiltinError("jwk.Parse: a key is not an object")
    algorithm = _text(document, "alg")
    if "alg" in document and algorithm not in ALGORITHMS | _OTHER_ALGORITHMS:
        raise BuiltinError(f"jwk.Parse: invalid key value: {algorithm!r}")
    if "x5c" in document:
        raise BuiltinError("a JWK with x5c is not supported")
    operations = document.get("key_ops") or []
    if type(operations) is not list or not all(each is None or type(each) is str for each in operations):
        raise BuiltinError("jwk.Parse: invalid key_ops")
    for name in ("use", "x5t", "x5t#S256", "x5u"):
        _text(document, name)
    read = _JWK_TYPES.get(_text(document, "kty"))
    if read is None:
        raise BuiltinError(f"jwk.Parse: invalid key type from JSON ({_text(document, 'kty')})")
    return NamedKey(read(document), algorithm, _text(document, "kid"))


def _text(document: dict[str, Value], name: str) -> str:
    value = document.get(name)
    if value is not None and type(value) is not str:
        raise BuiltinError(f"jwk.Parse: failed to decode value for key {name}")
    return value or ""


def _bytes(document: dict[str, Value], name: str) -> bytes:
    text = _text(document, name)
    url = not any(char in text for char in "+/")
    padded = text if text.endswith("=") else text + "=" * (-len(text.replace("\n", "").replace("\r", "")) % 4)
    content = decode_base64(padded, url=url)
    if not content:
        raise BuiltinError(f'jwk.Parse: missing "{name}" value')
    return content


def _number(document: dict[str, Value], name: str) -> int:
    return int.from_bytes(_bytes(document, name), "big")


def _read_rsa(document: dict[str, Value]) -> RsaKey:
    n, e = _number(document, "n"), _number(document, "e")
    if not n or not e & 1 or e.bit_length() > 63:
        raise BuiltinError("jwk.Parse: invalid RSA key")
    if "d" not in document:
        return RsaKey(n, e)
    p, q, d = (_number(document, name) for name in "pqd")
    if document.keys() >= {"dp", "dq", "qi"}:
        dp, dq, qi = (_number(document, name) for name in ("dp", "dq", "qi"))
    else:
        try:
            dp, dq, qi = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
        except (ValueError, ZeroDivisionError):
            raise BuiltinError("jwk.Parse: invalid RSA key") from None
    return RsaKey(n, e, rsa.RSAPrivateNumbers(p, q, d, dp, dq, qi, rsa.RSAPublicNumbers(e, n)))


def _read_ec(document: dict[str, Value]) -> EcKey:
    curve = _text(document, "crv")
    if curve not in _CURVES or curve == "P-224":
        raise BuiltinError(f"jwk.Parse: invalid curve algorithm {curve!r}")
    size = (_CURVES[curve].key_size + 7) // 8
    coordinates = [_bytes(document, name) for name in ("x", "y", *("d" if "d" in document else ""))]
    if any(len(each) != size for each in coordinates):
        raise BuiltinError(f"jwk.Parse: invalid length for curve {curve!r}")
    key = EcKey(curve, *(int.from_bytes(each, "big") for each in coordinates))
    _build_ec(key)
    return key


def _read_okp(document: dict[str, Value]) -> EdKey | OtherKey:
    curve, public = _text(document, "crv"), _bytes(document, "x")
    secret = _bytes(document, "d") if "d" in document else None
    if curve not in {"Ed25519", "X25519"} or len(public) != 32 or (secret is not None and len(secret) != 32):
        raise BuiltinError(f"jwk.Parse: invalid OKP key of {curve!r}")
    if curve == "X25519":
        return OtherKey(public, secret)
    if secret is not None:
        private = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
        if private.public_key().public_bytes_raw() != public:
            raise BuiltinError("ed25519: invalid x value given d value")
    return EdKey(public, secret)


def _read_secret(document: dict[str, Value]) -> bytes:
    return _bytes(document, "k")


_JWK_TYPES: dict[str, Callable[[dict[str, Value]], Key]] = {
    "RSA": _read_rsa,
    "EC": _read_ec,
    "OKP": _read_okp,
    "oct": _read_secret,
}


def verify_rsa(key: Key, digest: bytes, size: int, signature: bytes, salt: int | None) -> bool:
    """Verify a signature with RSA.

    Args:
        key: an RSA key, or any other, with which nothing verifies.
        digest: of what is signed.
        size: of the digest, in bits.
        signature: what is verified.
        salt: length of the salt of PSS, -1 for any, None for PKCS#1.
    """
    if not isinstance(key, RsaKey) or key.n.bit_length() < _FEWEST_RSA_BITS or key.e > _LARGEST_EXPONENT:
        return False
    scheme: padding.AsymmetricPadding = padding.PKCS1v15()
    if salt is not None:
        scheme = padding.PSS(padding.MGF1(HASHES[size]), padding.PSS.AUTO if salt < 0 else salt)
    try:
        public = rsa.RSAPublicNumbers(key.e, key.n).public_key()
        public.verify(signature, digest, scheme, Prehashed(HASHES[size]))
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


def verify_ec(key: Key, digest: bytes, size: int, signature: bytes) -> bool:
    """Verify a signature, in DER, on a curve."""
    if not isinstance(key, EcKey):
        return False
    try:
        _build_ec(key).verify(signature, digest, ec.ECDSA(Prehashed(HASHES[size])))
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


def verify_ec_halves(key: Key, digest: bytes, size: int, signature: bytes) -> bool:
    """Verify a signature on a curve whose two numbers are the halves."""
    middle = len(signature) // 2
    halves = int.from_bytes(signature[:middle], "big"), int.from_bytes(signature[middle:], "big")
    return all(halves) and verify_ec(key, digest, size, encode_dss_signature(*halves))


def verify_ed(key: Key, content: bytes, signature: bytes) -> bool:
    """Verify a signature of Ed25519."""
    if not isinstance(key, EdKey):
        return False
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key.public).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_public(key: Key) -> bool:
    """Return whether a key has no secret part."""
    secrets = (getattr(key, name, None) for name in ("private", "d", "seed", "secret"))
    return type(key) is not bytes and all(secret is None for secret in secrets)


def coordinate_size(key: Key) -> int:
    """Return the number of bytes of a coordinate of a key on a curve, 0 of any other key."""
    return (_CURVES[key.curve].key_size + 7) // 8 if isinstance(key, EcKey) else 0


def sign(key: Key, algorithm: str, content: bytes) -> bytes:
    """Sign with an algorithm whose result is always the same.

    Raises:
        BuiltinError: the algorithm needs another key, or gives random results.
    """
    if algorithm[:2] in {"ES", "PS"}:
        raise BuiltinError(f"io.jwt.encode_sign with {algorithm} is not supported: its result is random")
    # Go takes the bytes of an Ed25519 key for those of a secret.
    secret = (key.seed or b"") + key.public if isinstance(key, EdKey) else key
    if algorithm[:2] == "HS" and isinstance(secret, bytes):
        return hmac.digest(secret, content, f"sha{algorithm[2:]}")
    if algorithm[:2] == "RS" and isinstance(key, RsaKey) and key.private and key.n.bit_length() >= _FEWEST_RSA_BITS:
        try:
            return key.private.private_key().sign(content, padding.PKCS1v15(), HASHES[int(algorithm[2:])])
        except ValueError:
            raise BuiltinError("crypto/rsa: invalid private key") from None
    if algorithm == "EdDSA" and isinstance(key, EdKey) and key.seed:
        return ed25519.Ed25519PrivateKey.from_private_bytes(key.seed).sign(content)
    raise BuiltinError(f"jwsbb.Sign: invalid key type for {algorithm}")
