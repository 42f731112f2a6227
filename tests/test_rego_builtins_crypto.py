"""The builtins of hashes and of JSON web tokens give what OPA gives."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.rego_oracle import Call, call_ours, find_differences, seeded

_SECRET = "shared" * 2
_SIZES = (256, 384, 512)
_JUNK = (None, 5, {"a": 1}, ["x"], {1}, "x", True, "", "é")
_ODD_HEADERS: tuple[dict[str, Any], ...] = (
    *({"crit": ["x"], "x": 1}, {"crit": []}, {"enc": "x"}, {"alg": "none"}, {"alg": 5}, {"kid": 5}, {"typ": 5}, {}),
    *({"cty": "JWT"}, {"cty": "jwt"}, {"cty": "x"}, {"cty": 5}),
)
_ODD_TEXTS = ("[]", "x", "", '{"a": 1, "a": 2}', '{"a": "\\ud800"}', " {} ", "{} x", "null", '"x"', '{"n": 1.50}')
_ODD_TOKENS = ("", "a", "a.b", "a.b.c.d", "..", "a.a.a", "é.é.é")


def _encode(content: str | bytes) -> str:
    content = content.encode() if isinstance(content, str) else content
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _draw_token(random: Random, size: int) -> str:
    if random.random() < 0.05:
        return random.choice(_ODD_TOKENS)
    header: dict[str, Any] = {"alg": f"HS{size}"}
    if random.random() < 0.3:
        header |= random.choice(_ODD_HEADERS)
    texts = [json.dumps(header), json.dumps({"iss": "me", "exp": 100.5, "é": [1.5, "\u2028", None]})]
    if header.get("cty") == "JWT" and random.random() < 0.8:
        texts[1] = random.choice(('"%s"', "%s")) % _draw_token(random, size)
    elif random.random() < 0.2:
        texts[random.randrange(2)] = random.choice(_ODD_TEXTS)
    content = ".".join(map(_encode, texts))
    signature = hmac.digest(_SECRET.encode(), content.encode(), f"sha{size}")
    if random.random() < 0.2:
        signature = bytes([signature[0] ^ 1]) + signature[1:]
    token = f"{content}.{_encode(signature)}"
    return token if random.random() < 0.9 else random.choice((token + "!", token[:-1], token + "=", f" {token}"))


def test_hashes_are_those_of_opa(opa: Path) -> None:
    """Of text, and of other values."""
    texts = (*_JUNK, "x" * 200, "\0", "\U0001f600")
    calls: list[Call] = [(f"crypto.{name}", (each,)) for name in ("md5", "sha1", "sha256") for each in texts]
    names = ("md5", "sha1", "sha256", "sha512", "equal")
    calls += [(f"crypto.hmac.{name}", pair) for name in names for each in texts for pair in ((each, "x"), ("x", each))]
    calls.append(("crypto.hmac.equal", ("é", "é")))
    assert find_differences(opa, calls) == []


@pytest.mark.slow
def test_tokens_are_read_and_verified_as_opa_does(opa: Path) -> None:
    """Good and bad tokens with good and bad secrets."""
    random = seeded(6)
    calls: list[Call] = []
    for _ in range(1000):
        size = random.choice(_SIZES)
        token = _draw_token(random, size)
        secret = random.choice((_SECRET, _SECRET, "", "other"))
        calls.append(random.choice((("io.jwt.decode", (token,)), (f"io.jwt.verify_hs{size}", (token, secret)))))
    assert find_differences(opa, calls) == []
    results = [call_ours(*call) for call in calls]
    assert sum(outcome.value is True for outcome in results) > 100
    assert sum(outcome.kind == "array" for outcome in results) > 100


def test_operands_are_refused_as_by_opa(opa: Path) -> None:
    """Values of every type at every place."""
    calls: list[Call] = [("io.jwt.decode", (each,)) for each in _JUNK]
    for size in _SIZES:
        calls += [(f"io.jwt.verify_hs{size}", pair) for each in _JUNK for pair in ((each, "x"), ("a.b.c", each))]
    assert find_differences(opa, calls) == []
