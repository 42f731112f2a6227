"""Keys for tests that are the same every time, unlike those that are made for use."""

from __future__ import annotations

from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519

from tests.rego_oracle import seeded

_EXPONENT = 65537
_SMALL = [number for number in range(3, 2000, 2) if all(number % each for each in range(3, 45, 2) if each < number)]


def _draw_prime(random: Random, bits: int) -> int:
    while True:
        candidate = random.getrandbits(bits) | 3 << bits - 2 | 1
        if all(candidate % each for each in _SMALL) and pow(2, candidate - 1, candidate) == 1:
            return candidate


def _make_rsa(random: Random, bits: int) -> rsa.RSAPrivateKey:
    p, q = _draw_prime(random, bits // 2), _draw_prime(random, bits // 2)
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    rests = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
    return rsa.RSAPrivateNumbers(p, q, d, *rests, rsa.RSAPublicNumbers(_EXPONENT, p * q)).private_key()


def make_keys() -> dict[str, Any]:
    """One key of each kind that the builtins know, and one that they do not."""
    random = seeded(9)
    curves = {"p256": ec.SECP256R1(), "p384": ec.SECP384R1(), "p521": ec.SECP521R1(), "p224": ec.SECP224R1()}
    return {
        "rsa": _make_rsa(random, 2048),
        "rsa1024": _make_rsa(random, 1024),
        **{name: ec.derive_private_key(random.getrandbits(200), curve) for name, curve in curves.items()},
        "k256": ec.derive_private_key(random.getrandbits(200), ec.SECP256K1()),
        "ed": ed25519.Ed25519PrivateKey.from_private_bytes(random.randbytes(32)),
        "x": x25519.X25519PrivateKey.from_private_bytes(random.randbytes(32)),
    }
