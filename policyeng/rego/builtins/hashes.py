"""The builtins of hashes, which need the standard library alone."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial

from policyeng.rego.builtins.registry import builtin, check_string
from policyeng.rego.values import Value


def _hash(algorithm: str, text: Value) -> Value:
    """Return the digest of a string in hexadecimal."""
    return hashlib.new(algorithm, check_string(1, text).encode(), usedforsecurity=False).hexdigest()


def _authenticate(algorithm: str, message: Value, key: Value) -> Value:
    """Return the HMAC of a message in hexadecimal."""
    content = check_string(1, message).encode()
    return hmac.digest(check_string(2, key).encode(), content, algorithm).hex()


for _algorithm in ("md5", "sha1", "sha256"):
    builtin(f"crypto.{_algorithm}")(partial(_hash, _algorithm))
for _algorithm in ("md5", "sha1", "sha256", "sha512"):
    builtin(f"crypto.hmac.{_algorithm}")(partial(_authenticate, _algorithm))


@builtin("crypto.hmac.equal")
def compare_digests(left: Value, right: Value) -> Value:
    """Return whether two strings are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(check_string(1, left).encode(), check_string(2, right).encode())
