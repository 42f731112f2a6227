"""The builtins of hashes, which need the standard library alone."""

from __future__ import annotations

import hashlib
import hmac

from policyeng.rego.builtins.registry import builtin, check_string
from policyeng.rego.values import Value


@builtin("crypto.md5")
def hash_md5(text: Value) -> Value:
    """Return the MD5 of a string in hexadecimal."""
    return hashlib.md5(check_string(1, text).encode(), usedforsecurity=False).hexdigest()


@builtin("crypto.sha1")
def hash_sha1(text: Value) -> Value:
    """Return the SHA-1 of a string in hexadecimal."""
    return hashlib.sha1(check_string(1, text).encode(), usedforsecurity=False).hexdigest()


@builtin("crypto.sha256")
def hash_sha256(text: Value) -> Value:
    """Return the SHA-256 of a string in hexadecimal."""
    return hashlib.sha256(check_string(1, text).encode()).hexdigest()


def _authenticate(message: Value, key: Value, algorithm: str) -> Value:
    content = check_string(1, message).encode()
    return hmac.digest(check_string(2, key).encode(), content, algorithm).hex()


@builtin("crypto.hmac.md5")
def authenticate_md5(message: Value, key: Value) -> Value:
    """Return the HMAC of a message with MD5 in hexadecimal."""
    return _authenticate(message, key, "md5")


@builtin("crypto.hmac.sha1")
def authenticate_sha1(message: Value, key: Value) -> Value:
    """Return the HMAC of a message with SHA-1 in hexadecimal."""
    return _authenticate(message, key, "sha1")


@builtin("crypto.hmac.sha256")
def authenticate_sha256(message: Value, key: Value) -> Value:
    """Return the HMAC of a message with SHA-256 in hexadecimal."""
    return _authenticate(message, key, "sha256")


@builtin("crypto.hmac.sha512")
def authenticate_sha512(message: Value, key: Value) -> Value:
    """Return the HMAC of a message with SHA-512 in hexadecimal."""
    return _authenticate(message, key, "sha512")


@builtin("crypto.hmac.equal")
def compare_digests(left: Value, right: Value) -> Value:
    """Return whether two strings are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(check_string(1, left).encode(), check_string(2, right).encode())
