"""The builtins of JSON web tokens give what OPA gives."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from policyeng.rego.builtins import BuiltinError, load_function
from tests.rego_keys import make_keys
from tests.rego_oracle import Call, call_ours, find_differences, seeded

_KEYS = {name: key for name, key in make_keys().items() if name != "k256"}
_SECRET = "shared" * 2
_ALGORITHMS = (*(f"{family}{size}" for family in ("RS", "PS", "ES", "HS") for size in (256, 384, 512)), "EdDSA")
#: The keys of each family.
_NATURAL = {
    **dict.fromkeys(("RS", "PS"), ("rsa", "rsa1024")),
    "ES": ("p256", "p384", "p521", "p224"),
    "HS": ("oct",),
    "Ed": ("ed",),
}
_SECOND = 10**9


def _encode(content: str | bytes) -> str:
    content = content.encode() if isinstance(content, str) else content
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _private_pem(name: str) -> str:
    return str(_KEYS[name].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _certificate(name: str) -> str:
    issuer, times = x509.Name([]), (datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC))
    builder = x509.CertificateBuilder(issuer, issuer, _KEYS[name].public_key(), 1, *times)
    return builder.sign(_KEYS["rsa"], hashes.SHA256()).public_bytes(Encoding.PEM).decode()


_to_jwk = load_function("crypto.x509.parse_rsa_private_key")
_PRIVATE: dict[str, Any] = {name: _to_jwk(_private_pem(name)) for name in _KEYS if name != "p224"}
_PRIVATE["oct"] = {"kty": "oct", "k": _encode(_SECRET)}
_SECRET_PARTS = {"d", "p", "q", "dp", "dq", "qi"}
_PUBLIC = {name: {each: key[each] for each in key if each not in _SECRET_PARTS} for name, key in _PRIVATE.items()}
_CERTIFICATES = {name: _certificate(name) for name in _KEYS}
_PEMS: dict[str, str] = {
    name: key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    for name, key in _KEYS.items()
}
_RSA = _PUBLIC["rsa"]
_ODD_KEYS = (
    *("", "x", "{}", "[]", '{"keys": []}', '{"keys": 5}', "null", _CERTIFICATES["rsa"] + "x", _private_pem("rsa")),
    *('{"kty": "oct", "k": ""}', '{"kty": "RSA", "n": "AQ", "e": "AQAB"}', _CERTIFICATES["x"], _PEMS["x"]),
    *(
        json.dumps(key)
        for key in (
            *(
                _PUBLIC["p256"] | {"x": "AAAA"},
                _PUBLIC["p256"] | {"x": _PUBLIC["p256"]["y"]},
                _PUBLIC["ed"] | {"x": "AA"},
            ),
            *(_RSA | {"alg": "other"}, _RSA | {"alg": None}, _RSA | {"kid": None, "use": None}, _RSA | {"e": "AQ" * 8}),
            *(
                _RSA | {"key_ops": ["verify", "x"]},
                _RSA | {"key_ops": "x"},
                _RSA | {"key_ops": ["verify"], "other": [1]},
            ),
        )
    ),
)


def _sign(random: Random, algorithm: str, name: str, content: bytes) -> bytes:
    family = algorithm[:2]
    if family == "HS":
        return hmac.digest(_SECRET.encode(), content, f"sha{algorithm[2:]}")
    key = _KEYS[name]
    if family == "Ed":
        return bytes(key.sign(content))
    hashed = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[2:]]
    if family == "RS":
        return bytes(key.sign(content, padding.PKCS1v15(), hashed))
    if family == "PS":
        salt = random.choice((hashed.digest_size, hashed.digest_size, 10))
        fits = key.key_size // 8 >= hashed.digest_size + salt + 2
        return bytes(key.sign(content, padding.PSS(padding.MGF1(hashed), salt), hashed)) if fits else b"x"
    size = (key.curve.key_size + 7) // 8
    halves = decode_dss_signature(key.sign(content, ec.ECDSA(hashed, deterministic_signing=True)))
    return b"".join(half.to_bytes(size, "big") for half in halves)


_CLAIMS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("iss", ("me", "you")),
    ("aud", ("x", ["x", "y"], ["y"], [], 5, "y", {"a": 1})),
    ("exp", (100, 50, 100.5, 1000, "x", 99.999999999)),
    ("nbf", (100, 50, 99, "x", 100.0000001)),
    ("other", (1.5, "é\u2028", None)),
)
_ODD_HEADERS: tuple[dict[str, Any], ...] = (
    *({"crit": ["x"], "x": 1}, {"crit": ["b64"]}, {"crit": []}, {"crit": 5}, {"crit": [5, "x"]}, {"enc": "x"}),
    *({"alg": "none"}, {"alg": 5}, {"alg": "Ed25519"}, {"alg": ""}, {"kid": 5}, {"typ": 5}, {"alg": "ES256K"}),
)
_ODD_TEXTS = ("[]", "x", "", '{"a": 1, "a": 2}', '{"a": "\\ud800"}', " {} ", "{} x", "null", '"x"')
_ODD_TOKENS = ("", "a", "a.b", "a.b.c.d", "..", "a.a.a", "é.é.é")


def _join(random: Random, algorithm: str, name: str, header: str, payload: str) -> str:
    content = f"{_encode(header)}.{_encode(payload)}"
    signature = _sign(random, algorithm, name, content.encode())
    if random.random() < 0.1:
        signature = bytes([signature[0] ^ 1]) + signature[1:]
    return f"{content}.{_encode(signature)}{'=' * (random.random() < 0.05)}"


def _draw_token(random: Random) -> tuple[str, str, str]:
    """A token, its algorithm and its key."""
    algorithm = random.choice(_ALGORITHMS)
    name = random.choice(_NATURAL[algorithm[:2]])
    header: dict[str, Any] = {"alg": algorithm, "kid": random.choice(("a", "b", "c"))}
    header = dict(random.sample(list(header.items()), 2) if random.random() < 0.3 else [("alg", algorithm)])
    if random.random() < 0.15:
        header |= random.choice(_ODD_HEADERS)
    claims = {name: random.choice(values) for name, values in _CLAIMS if random.random() < 0.35}
    texts = [json.dumps(header), json.dumps(claims, ensure_ascii=False)]
    if random.random() < 0.05:
        texts[random.randrange(2)] = random.choice(_ODD_TEXTS)
    token = _join(random, algorithm, name, texts[0], texts[1])
    if random.random() < 0.05:
        outer = json.dumps(header | {"cty": random.choice(("JWT", "jwt", "x", 5))})
        token = _join(random, algorithm, name, outer, random.choice(('"%s"', "%s")) % token)
    elif random.random() < 0.03:
        token = random.choice((*_ODD_TOKENS, token + "!", token[:-1], token + "="))
    return token, algorithm, name


def _draw_key(random: Random, name: str) -> str:
    chance = random.random()
    if chance < 0.1:
        return random.choice(_ODD_KEYS)
    if name == "oct" and chance < 0.5:
        return _SECRET
    if name in _CERTIFICATES and (chance < 0.4 or name not in _PUBLIC):
        return random.choice((_CERTIFICATES, _PEMS))[name]
    if chance < 0.65:
        return json.dumps(random.choice((_PUBLIC, _PUBLIC, _PRIVATE))[name])
    keys = []
    for each in (*random.sample(list(_PUBLIC), 2), name):
        key = dict(random.choice((_PUBLIC, _PUBLIC, _PRIVATE))[each])
        if random.random() < 0.4:
            key["kid"] = random.choice(("a", "b", "c", ""))
        if random.random() < 0.4:
            key["alg"] = random.choice((*_ALGORITHMS, "ECDH-ES", "RSA-OAEP"))
        keys.append(key)
    random.shuffle(keys)
    return json.dumps({"keys": keys})


def _draw_verification(random: Random) -> Call:
    token, algorithm, name = _draw_token(random)
    if random.random() < 0.1:
        algorithm, name = random.choice(_ALGORITHMS), random.choice(list(_PUBLIC))
    kind = random.random()
    if kind < 0.2:
        return ("io.jwt.decode", (token,))
    if kind < 0.55:
        return (f"io.jwt.verify_{algorithm.lower()}", (token, _draw_key(random, name)))
    wanted: dict[str, Any] = {"time": random.choice((100 * _SECOND, 99.999999999e9, 0, 100.5e9, 10**20))}
    secret = name == "oct" and random.random() < 0.7
    wanted["secret" if secret else "cert"] = _SECRET if secret else _draw_key(random, name)
    for claim, values in (("alg", (algorithm, "RS256", "")), ("iss", ("me", "")), ("aud", ("x", ""))):
        if random.random() < 0.4:
            wanted[claim] = random.choice(values)
    if random.random() < 0.05:
        wanted[random.choice(("other", "time", "secret", "cert", "alg"))] = random.choice((5, -5, "x", ""))
    return ("io.jwt.decode_verify", (token, wanted))


_ODD_SIGNERS: tuple[Any, ...] = (
    *({}, {"keys": []}, _RSA, 5, {"kty": "RSA"}, _PRIVATE["rsa"] | {"dp": "AQ"}, _PRIVATE["rsa"] | {"p": "AQ"}),
    *({"keys": [_PRIVATE["oct"], _PRIVATE["ed"]]}, {name: _PRIVATE["rsa"][name] for name in ("kty", "n", "e", "d")}),
    {name: _PRIVATE["rsa"][name] for name in ("kty", "n", "e", "d", "p", "q")},
)
_PAYLOADS = ({"a": 1, "B": "<é>&\u2028"}, "x", [1, 2.5], None, {"z": {"s": [True]}}, 12345678901234567890, {1, 2})
_ODD_HEADER_TEXTS = (
    *('{"alg": "HS256", "typ": "x", "typ": "JWT"}', '{"alg": "HS256", "typ": "JWT", "typ": "x"}', "[]", ""),
    *('{"alg": "HS256", "alg": "XX"}', '{"alg": "HS256" , "typ" :"J\\u0057T"}'),
)


def _draw_signing(random: Random) -> Call:
    algorithm = random.choice(("RS256", "RS384", "RS512", "HS256", "HS384", "HS512", "EdDSA"))
    name = random.choice(_NATURAL[algorithm[:2]]) if random.random() < 0.9 else random.choice(list(_PRIVATE))
    header: dict[str, Any] = {"alg": algorithm, "typ": random.choice(("JWT", "text/plain", 5))}
    if random.random() < 0.1:
        header["alg"] = random.choice(("XX", None, 5, "none"))
    key = random.choice(_ODD_SIGNERS) if random.random() < 0.15 else _PRIVATE[name]
    if random.random() < 0.5:
        return ("io.jwt.encode_sign", (header, random.choice(_PAYLOADS), key))
    text = json.dumps(header) if random.random() < 0.8 else random.choice(_ODD_HEADER_TEXTS)
    payload = random.choice(('{"a" : 1}', "5", '"é"', "x", ""))
    return ("io.jwt.encode_sign_raw", (text, payload, json.dumps(key)))


@pytest.mark.slow
def test_tokens_are_verified_as_opa_does(opa: Path) -> None:
    """Good and bad tokens with keys of every form."""
    random = seeded(6)
    calls: list[Call] = [_draw_verification(random) for _ in range(1500)]
    assert find_differences(opa, calls) == []
    results = [call_ours(*call) for call in calls if "verify" in call[0]]
    assert sum(outcome.value is True for outcome in results) > 100
    assert sum(outcome.kind == "array" and outcome.value[0] for outcome in results) > 30


@pytest.mark.slow
def test_tokens_are_signed_as_opa_does(opa: Path) -> None:
    """With the algorithms whose result is always the same."""
    random = seeded(7)
    assert find_differences(opa, [_draw_signing(random) for _ in range(300)]) == []


def test_operands_are_refused_as_by_opa(opa: Path) -> None:
    """Values of every type at every place."""
    junk = (None, 5, {"a": 1}, ["x"], {1}, "x", True)
    counts = {"decode": 1, "decode_verify": 2, "encode_sign_raw": 3, "encode_sign": 3}
    counts |= {f"verify_{algorithm.lower()}": 2 for algorithm in _ALGORITHMS}
    calls: list[Call] = []
    for name, count in counts.items():
        for place in range(count):
            for each in junk:
                arguments: list[Any] = ["a.b.c", "x", "x"][:count]
                arguments[place] = each
                calls.append((f"io.jwt.{name}", tuple(arguments)))
    assert find_differences(opa, calls) == []


@pytest.mark.parametrize("claim", ["exp", "nbf"])
def test_a_time_is_needed_only_for_a_token_with_one(claim: str) -> None:
    """There is no clock."""
    random = seeded(8)
    texts = [_join(random, "HS256", "oct", '{"alg": "HS256"}', payload) for payload in ("{}", f'{{"{claim}": 5}}')]
    verify = load_function("io.jwt.decode_verify")
    assert verify(texts[0], {"secret": _SECRET}) == [True, {"alg": "HS256"}, {}]
    with pytest.raises(BuiltinError, match="needs the constraint time"):
        verify(texts[1], {"secret": _SECRET})


@pytest.mark.parametrize(("algorithm", "name"), [("ES256", "p256"), ("PS256", "rsa")])
def test_random_signatures_are_refused(algorithm: str, name: str) -> None:
    """The same input must give the same result."""
    with pytest.raises(BuiltinError, match="its result is random"):
        load_function("io.jwt.encode_sign")({"alg": algorithm}, {}, _PRIVATE[name])
