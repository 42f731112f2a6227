"""The builtins of JSON web tokens that need no keys but a shared secret; the others are refused."""

from __future__ import annotations

import hmac
from functools import partial
from typing import NamedTuple

from policyeng.rego.builtins.encoding import decode_utf8, read_base64_url
from policyeng.rego.builtins.go_text import parse_json
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string
from policyeng.rego.values import Value

_NESTED = "JWT"


class _WebToken(NamedTuple):
    header: str
    payload: str
    signature: str


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


@builtin("io.jwt.decode")
def decode_token(text: Value) -> Value:
    """Return the header, the payload and the signature of a token, without verifying it."""
    while True:
        token = _split(text)
        header = _parse_object(decode_utf8(read_base64_url(token.header)))
        if "enc" in header:
            raise BuiltinError("JWT is a JWE object, which is not supported")
        payload = decode_utf8(read_base64_url(token.payload))
        kind = header.get("cty", "")
        if type(kind) is not str:
            raise BuiltinError("cty: must be a string")
        if kind != _NESTED:
            return [header, _parse_object(payload), read_base64_url(token.signature).hex()]
        text = payload.strip("\"'")


def _verify(size: int, text: Value, secret: Value) -> bool:
    """Return whether a token has a signature of a secret."""
    check_string(1, text)
    key = check_string(2, secret).encode()
    token = _split(text)
    signature = read_base64_url(token.signature)
    content = f"{token.header}.{token.payload}".encode()
    return hmac.compare_digest(hmac.digest(key, content, f"sha{size}"), signature)


for _size in (256, 384, 512):
    builtin(f"io.jwt.verify_hs{_size}")(partial(_verify, _size))
