"""Mask what looks like a secret before it reaches a report: by the name it stands under, or by its own shape.

Only text is masked, and always the whole of it. What merely points to a secret (the id of a vault, a public key) or
describes one (its type, its name) stays, because policies deny on it and people must read it.
"""

from __future__ import annotations

import re

from policyeng.strict.json_pointer import unescaped

MASK = "***"

# How a name ends, in lower case without separators, when a secret stands under it.
_SECRET_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|credential|connectionstring|webhookurl|sasur[il]|securevalue"
    r"|(?:account|api|access|shared|primary|secondary|private|storage|master|signing|instrumentation|function|host"
    r"|auth|client|subscription|admin|query)key)s?(?:value|base64)?\d*$"
    r"|^key\d+$"
)
_SECRET_WORDS = frozenset({"pat", "pwd", "sas"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# How a name ends when it only describes or points, although it stands inside an object of secrets.
_DESCRIBING_NAME = re.compile(r"(?:type|id|identifier|ur[il]|name|version|mode)$")
_SEPARATORS = re.compile(r"[^a-z0-9]")

_SECRET_SHAPE = re.compile(
    "|".join(
        (
            r"(?i:\b(?:account|api|access|shared|sharedaccess|primary|secondary)[-_ ]?key\s*=\s*[^\s;])",
            r"(?i:\b(?:password|passwd|pwd|secret|token)\s*=\s*[^\s;])",
            r"(?i:--(?:\w+-)*(?:password|secret|token|(?:api|access|account)-key)[ =]\S)",
            r"(?i:\bsharedaccesssignature(?:\s*=|\s+s[a-z]=))",
            r"(?i:(?:^|[?&;`\s])sig=[a-z0-9%+/=_-]{16,})",
            r"(?i:\bbearer\s+[a-z0-9._~+/-]{20,})",
            r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.",  # a JSON Web Token
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY",
            r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])",  # 64 bytes: keys of storage, Cosmos DB, Batch
            r"\b[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@?#]*:[^/\s@?#]+@",  # user and password in a URL
            r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{26}(?![A-Za-z0-9])",  # keys of Azure AI services
            r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~.-])",  # client secrets of Entra ID
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22}|dapi[0-9a-f]{32}|hf_[A-Za-z0-9]{30})",
        )
    )
)
_PUBLIC_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/]+={0,3}(?: [^\s=:]*)?\s*")


def masked(value: object, path: str = "") -> object:
    """Give the JSON value with every text in it that looks like a secret replaced by `***`.

    Args:
        value: a JSON value; not changed. Numbers, booleans, null and empty text are never masked.
        path: the JSON Pointer where it stands (`workspace:/...` too); its names count as those inside the value do.

    Idempotent: masking twice is masking once.
    """
    secret = False
    for segment in path.split("/")[1:]:
        secret = _is_secret(unescaped(segment), secret)
    return _masked(value, secret)


def _masked(value: object, secret: bool) -> object:
    if isinstance(value, dict):
        named = _names_a_secret(value)
        return {
            key: _masked(below, _is_secret(str(key), secret or (named and key == "value")))
            for key, below in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(below, secret) for below in value]
    return MASK if isinstance(value, str) and _hides(value, secret) else value


def _hides(text: str, secret: bool) -> bool:
    if secret:
        return text != "" and not text.lower().startswith("/subscriptions/")
    return _SECRET_SHAPE.search(text) is not None and _PUBLIC_KEY.fullmatch(text) is None


def _names_a_secret(value: dict[object, object]) -> bool:
    """Whether the object is a pair such as `{"name": "DB_PASSWORD", "value": "..."}`."""
    return any(isinstance(name := value.get(key), str) and _is_secret(name, False) for key in ("name", "key"))


def _is_secret(name: str, above: bool) -> bool:
    """Whether text under this name is secret, given whether text beside the name is; an array index changes nothing."""
    if name.isdecimal():
        return above
    plain = _SEPARATORS.sub("", name.lower())
    if _SECRET_NAME.search(plain) or _last_word(name) in _SECRET_WORDS:
        return True
    return above and _DESCRIBING_NAME.search(plain) is None


def _last_word(name: str) -> str:
    words = _WORD.findall(name)
    return words[-1].lower() if words else ""
