"""The builtins of JSON web tokens."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from hashlib import new as new_hash
from math import isfinite
from typing import NamedTuple

from policyeng.rego.builtins.certificates import parse_certificate
from policyeng.rego.builtins.go_text import (
    decode_base64url,
    from_bytes,
    parse_first_members,
    parse_json,
    read_pem,
    write_json,
)
from policyeng.rego.builtins.keys import (
    ALGORITHMS,
    Key,
    NamedKey,
    coordinate_size,
    is_public,
    parse_any_public_key,
    parse_jwk,
    sign,
    verify_ec_halves,
    verify_ed,
    verify_rsa,
)
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_object, check_string
from policyeng.rego.numbers import to_fraction
from policyeng.rego.values import Value, is_number

_NESTED = "JWT"
_MOST_KEYS = 1000
_HEADERS = frozenset(("alg", "kid", "typ", "cty"))
_NANOSECONDS = 1_000_000_000
_UNVERIFIED: list[Value] = [False, {}, {}]


class _WebToken(NamedTuple):
    header: str
    payload: str
    signature: str

    @property
    def content(self) -> bytes:
        """What is signed."""
        return f"{self.header}.{self.payload}".encode()

    def decode_header(self) -> dict[str, Value]:
        """Return the header.

        Raises:
            BuiltinError: it is not valid, or that of an encrypted token.
        """
        header = _parse_object(from_bytes(decode_base64url(self.header)))
        if "enc" in header:
            raise BuiltinError("JWT is a JWE object, which is not supported")
        return header


@dataclass
class _TokenHeader:
    """The parts of a header that matter.

    Attributes:
        valid: whether it names an algorithm, and nothing critical that is unknown.
    """

    alg: str = ""
    kid: str = ""
    cty: str = ""
    valid: bool = False


def _split(text: Value) -> _WebToken:
    parts = check_string(1, text).split(".")
    if len(parts) != 3:
        raise BuiltinError(f"encoded JWT must have 3 sections, found {len(parts)}")
    return _WebToken(*parts)


def _parse_object(text: str) -> dict[str, Value]:
    value = parse_json(text)
    if type(value) is not dict:
        raise BuiltinError("decoded JSON type was not an Object")
    return value


def _parse_header(document: dict[str, Value]) -> _TokenHeader:
    for name in _HEADERS & set(document):
        if type(document[name]) is not str:
            raise BuiltinError(f"{name}: must be a string")
    critical: set[str] = set()
    if "crit" in document:
        if type(document["crit"]) is not list:
            raise BuiltinError("crit: must be a list")
        for each in document["crit"]:
            if type(each) is not str:
                break
            critical.add(each)
        if not critical:
            raise BuiltinError("crit: must be a nonempty list")
    unknown = set(document) - _HEADERS - {"crit"}
    alg, kid, cty = (document.get(name, "") for name in ("alg", "kid", "cty"))
    return _TokenHeader(alg, kid, cty, valid=bool(alg) and not critical & unknown)


@builtin("io.jwt.decode")
def decode_token(text: Value) -> Value:
    """Return the header, the payload and the signature of a token, without verifying it."""
    while True:
        token = _split(text)
        header = token.decode_header()
        payload = from_bytes(decode_base64url(token.payload))
        kind = header.get("cty", "")
        if type(kind) is not str:
            raise BuiltinError("cty: must be a string")
        if kind != _NESTED:
            return [header, _parse_object(payload), decode_base64url(token.signature).hex()]
        text = payload.strip("\"'")


def _parse_keys(text: str) -> list[NamedKey]:
    """Read the keys of a certificate, of a public key, or of a JWK or a set of them."""
    block, rest = read_pem(text.encode())
    if block is not None:
        if rest:
            raise BuiltinError("extra data after a PEM certificate block")
        if block.label == "CERTIFICATE":
            key = parse_certificate(block.content).key
            return [] if key is None else [NamedKey(key)]
        if block.label == "PUBLIC KEY":
            return [NamedKey(parse_any_public_key(block.content))]
        raise BuiltinError("failed to extract a Key from the PEM certificate")
    return [key for key in _parse_jwks(text) if not key.algorithm or key.algorithm in ALGORITHMS]


def _parse_jwks(text: str) -> list[NamedKey]:
    document = parse_json(text)
    if type(document) is not dict or "keys" not in document:
        return [parse_jwk(document)]
    keys = document["keys"]
    if type(keys) is not list or len(keys) > _MOST_KEYS:
        raise BuiltinError('jwk.Parse: failed to decode "keys"')
    return [parse_jwk(key) for key in keys]


def _choose_keys(keys: list[NamedKey], header: _TokenHeader) -> list[Key]:
    """Return the keys that may have signed: the one that the header names, or each of its algorithm or of any."""
    if header.kid:
        for key in keys:
            if key.identifier == header.kid:
                return [key.key]
    return [key.key for key in keys if key.algorithm in {"", header.alg}]


def _verify_with(verify: Callable[[Key, bytes, bytes], bool], text: Value, certificate: Value) -> bool:
    """Return whether a token has a signature of a key."""
    token = _split(text)
    keys = _parse_keys(check_string(2, certificate))
    signature = decode_base64url(token.signature)
    header = _parse_header(token.decode_header())
    # Go takes private keys for none here.
    return any(is_public(key) and verify(key, token.content, signature) for key in _choose_keys(keys, header))


def _digest(content: bytes, size: int) -> bytes:
    return new_hash(f"sha{size}", content).digest()


def _verify_rs(size: int) -> Callable[[Key, bytes, bytes], bool]:
    return lambda key, content, signature: verify_rsa(key, _digest(content, size), size, signature, None)


def _verify_ps(size: int) -> Callable[[Key, bytes, bytes], bool]:
    return lambda key, content, signature: verify_rsa(key, _digest(content, size), size, signature, -1)


def _verify_es(size: int) -> Callable[[Key, bytes, bytes], bool]:
    return lambda key, content, signature: verify_ec_halves(key, _digest(content, size), size, signature)


def _verify_hs(size: int, text: Value, secret: Value) -> bool:
    """Return whether a token has a signature of a secret."""
    check_string(1, text)
    key = check_string(2, secret).encode()
    token = _split(text)
    signature = decode_base64url(token.signature)
    return hmac.compare_digest(hmac.digest(key, token.content, f"sha{size}"), signature)


for _size in (256, 384, 512):
    for _family, _verify in (("rs", _verify_rs), ("ps", _verify_ps), ("es", _verify_es)):
        builtin(f"io.jwt.verify_{_family}{_size}")(partial(_verify_with, _verify(_size)))
    builtin(f"io.jwt.verify_hs{_size}")(partial(_verify_hs, _size))
builtin("io.jwt.verify_eddsa")(partial(_verify_with, verify_ed))


@dataclass
class _Constraints:
    """What a token has to meet."""

    keys: list[NamedKey] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    time: float | None = None


def _parse_constraints(document: dict[Value, Value]) -> _Constraints:
    constraints = _Constraints()
    for name, value in document.items():
        if type(name) is not str or name not in {"cert", "secret", "alg", "iss", "aud", "time"}:
            raise BuiltinError(f"unknown token validation constraint: {name}")
        if name == "time":
            constraints.time = _parse_time(value)
            continue
        if type(value) is not str:
            raise BuiltinError(f"{name} constraint: must be a string")
        if name == "cert":
            constraints.keys = _parse_keys(value)
        constraints.texts[name] = value
    if constraints.keys is not None and constraints.texts.get("secret"):
        raise BuiltinError("duplicate key constraints")
    if constraints.keys is None and not constraints.texts.get("secret"):
        raise BuiltinError("no key constraint")
    return constraints


def _parse_time(value: Value) -> float:
    if not is_number(value):
        raise BuiltinError("token time constraint: must be a number")
    try:
        time = float(value)
    except OverflowError:
        time = float("inf")
    if not isfinite(time):
        raise BuiltinError("token time constraint: unvalid float64")
    if time < 0:
        raise BuiltinError("token time constraint: must not be negative")
    return time


def _verify_any(key: Key, algorithm: str, content: bytes, signature: bytes) -> bool:
    """Verify a signature with the algorithm that the header names."""
    if algorithm in {"EdDSA", "Ed25519"}:
        return verify_ed(key, content, signature)
    if algorithm not in ALGORITHMS:
        return False
    family, size = algorithm[:2], int(algorithm[2:])
    if family == "HS":
        return type(key) is bytes and hmac.compare_digest(hmac.digest(key, content, f"sha{size}"), signature)
    digest = _digest(content, size)
    if family == "ES":
        return len(signature) == 2 * coordinate_size(key) and verify_ec_halves(key, digest, size, signature)
    return verify_rsa(key, digest, size, signature, size // 8 if family == "PS" else None)


@builtin("io.jwt.decode_verify")
def verify_token(text: Value, constraints: Value) -> Value:
    """Return whether a token meets constraints, and its header and its payload if it does."""
    wanted = _parse_constraints(check_object(2, constraints))
    while True:
        token = _split(text)
        document = token.decode_header()
        header = _parse_header(document)
        if not header.valid or wanted.texts.get("alg") not in {None, "", header.alg}:
            return _UNVERIFIED
        signature = decode_base64url(token.signature)
        keys = [wanted.texts["secret"].encode()] if wanted.keys is None else _choose_keys(wanted.keys, header)
        if not any(_verify_any(key, header.alg, token.content, signature) for key in keys):
            return _UNVERIFIED
        payload = from_bytes(decode_base64url(token.payload))
        if header.cty.lower() != _NESTED.lower():
            break
        text = payload
    claims = _parse_object(payload)
    return [True, document, claims] if _meets(claims, wanted) else _UNVERIFIED


def _meets(claims: dict[str, Value], wanted: _Constraints) -> bool:
    issuer, audience = wanted.texts.get("iss", ""), wanted.texts.get("aud", "")
    if issuer and claims.get("iss") != issuer:
        if type(claims.get("iss", "")) is not str:
            raise BuiltinError("iss value must be a string")
        return False
    given = claims.get("aud", "")
    if audience not in (given if type(given) is list else [given]):
        return False
    for name in ("exp", "nbf"):
        if name in claims:
            if not is_number(claims[name]):
                raise BuiltinError(f"{name} value must be a number")
            if wanted.time is None:
                raise BuiltinError(f"io.jwt.decode_verify needs the constraint time for a token with {name}: pass it")
            now = Fraction(repr(wanted.time / _NANOSECONDS))
            if now >= to_fraction(claims[name]) if name == "exp" else now < to_fraction(claims[name]):
                return False
    return True


@builtin("io.jwt.encode_sign")
def sign_token(headers: Value, payload: Value, key: Value) -> Value:
    """Return a signed token of values."""
    return _sign(write_json(headers), write_json(payload), write_json(key))


@builtin("io.jwt.encode_sign_raw")
def sign_token_of_text(headers: Value, payload: Value, key: Value) -> Value:
    """Return a signed token of texts of JSON."""
    check_string(3, key)
    check_string(1, headers)
    return _sign(headers, check_string(2, payload), key)


def _sign(headers: str, payload: str, key: str) -> Value:
    keys = _parse_jwks(key)
    if not keys:
        raise BuiltinError("no keys found in JWK set")
    header = parse_first_members(headers)
    algorithm = header.get("alg") if type(header) is dict else None
    if type(algorithm) is not str:
        raise BuiltinError("missing or invalid 'alg' header")
    if algorithm not in ALGORITHMS:
        raise BuiltinError(f"unknown JWS algorithm: {algorithm}")
    kind = header.get("typ")
    if type(kind) is not str or kind == _NESTED:
        parse_json(payload)
    content = b".".join(_encode(part.encode()) for part in (headers, payload))
    return b".".join((content, _encode(sign(keys[0].key, algorithm, content)))).decode()


def _encode(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
