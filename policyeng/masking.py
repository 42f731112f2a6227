"""Mask what looks like a secret before it reaches a report: by the name it stands under, or by its own shape.

Only text is masked, and always the whole of it. What merely points to a secret (the id of a vault, a public key) or
describes one (its type, its name) stays, because policies deny on it and people must read it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from policyeng.secret_shapes import SHAPES, WORDS

if TYPE_CHECKING:
    import re2

MASK = "***"

# How a name ends, in lower case without separators, when a secret stands under it.
_SECRET_NAME = re.compile(
    r"(?:passw(?:or)?d|passphrase|passcode|secret|token|credential|connectionstring|webhookurl|sasur[il]|securevalue"
    r"|kubeconfig"
    r"|(?:account|api|access|shared|primary|secondary|private|storage|master|signing|instrumentation|function|host"
    r"|auth|client|subscription|admin|query|encryption|decryption|license|service|session)key)s?(?:value|base64)?\d*$"
    r"|^key\d+$|^(?:proxy)?authorization$"
)
_SECRET_WORDS = frozenset({"cookie", "jwt", "pass", "pat", "pwd", "sas"})
# Names of secrets and of much else: text under them is secret if it is random, as keys are.
_DOUBTFUL_NAMES = frozenset({"auth", "key", "signature"})
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/_-]{20,}={0,2}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# How a name ends when it only describes or points, although it stands inside an object of secrets.
_DESCRIBING_NAME = re.compile(r"(?:type|id|identifier|ur[il]|name|version|mode)$")
_SEPARATORS = re.compile(r"[^a-z0-9]+")

_PUBLIC_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/]+={0,3}(?: [^\s=:]*)?\s*")
_WORD_END = re.compile(rb"[\s`\"']")
# What every text of a shape has, to find out quickly that a text has none.
_ASSIGNMENTS = re.compile("|".join({shape.mark: None for shape in SHAPES if shape.mark.startswith("(?i:")}))
_TOKENS = re.compile("|".join(shape.mark for shape in SHAPES if not shape.mark.startswith("(?i:")))
# No shape is shorter but those with one of these signs.
_SHORTEST, _SIGNS = 15, re.compile("[=: ]")
# Characters from which on all shapes are searched for at once: RE2 reads fifty times as many in a second as `re`, which
# lets no other thread run meanwhile.
_LONG = 1 << 12
# Characters from which on it is not remembered whether a name is one of secrets.
_LONGEST_KEPT = 100


def masked(value: object, path: str = "") -> object:
    """Give the JSON value with every text in it that looks like a secret replaced by `***`.

    Args:
        value: a JSON value; not changed. Numbers, booleans, null and empty text are never masked.
        path: the JSON Pointer where it stands (`workspace:/...` too); its names count as those inside the value do.

    Idempotent: masking twice is masking once.
    """
    if value is None or isinstance(value, int | float):
        return value
    secret = doubtful = False
    for segment in path.split("/")[1:]:
        name = segment.replace("~1", "/").replace("~0", "~")
        doubtful = _is_doubtful(name, doubtful)
        secret = _is_secret(name, secret)
    return _masked(value, secret, doubtful)


def masked_message(text: str) -> str:
    """Give a sentence with what looks like a secret in it replaced by `***`, each up to the next space.

    Idempotent, as `masked` is.
    """
    if not _has_mark(text) or _PUBLIC_KEY.fullmatch(text):
        return text
    content, parts, position = _encoded(text), [], 0
    # Each search begins behind the last word, so that no part of the text is read for every secret in it.
    while found := _shapes().search(content, position):
        start, end = found.span()
        start += not content[start : start + 1].isalnum() and content[start : start + 1] != b"-"  # the sign before it
        parts += [content[position:start], MASK.encode()]
        space = None if b"PRIVATE KEY" in content[start:end] else _WORD_END.search(content, end)
        position = space.start() if space else len(content)
    return b"".join((*parts, content[position:])).decode("utf-8", "surrogatepass")


def _masked(value: object, secret: bool, doubtful: bool) -> object:
    if isinstance(value, dict):
        named = _names_a_secret(value)
        return {
            key: _masked(
                below, _is_secret(str(key), secret or (named and key == "value")), _is_doubtful(str(key), False)
            )
            for key, below in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(below, secret, doubtful) for below in value]
    return MASK if isinstance(value, str) and _hides(value, secret, doubtful) else value


def _hides(text: str, secret: bool, doubtful: bool) -> bool:
    if secret:
        return text != "" and not text.lower().startswith("/subscriptions/")
    if doubtful and _RANDOM.fullmatch(text):
        return True
    return _has_mark(text) and _shapes().search(_encoded(text)) is not None and _PUBLIC_KEY.fullmatch(text) is None


def _has_mark(text: str) -> bool:
    """Whether a text may have one of the shapes; this is all that is asked of most texts."""
    if len(text) > _LONG:
        return True
    if not _SIGNS.search(text):
        return len(text) >= _SHORTEST and _TOKENS.search(text) is not None
    if _TOKENS.search(text):
        return True
    lower = text.lower()
    for word in WORDS:
        if word in lower:
            return _ASSIGNMENTS.search(text) is not None
    return False


@cache
def _shapes() -> re2._Regexp:
    """All shapes as one expression of RE2, which takes linear time; compiled at the first text with a mark."""
    import re2

    options = re2.Options()
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1  # every shape is of ASCII characters, and bytes have fewer states
    options.max_mem = 1 << 26  # its automaton has room, so that it need not fall back to a slower one
    return re2.compile("|".join(shape.pattern for shape in SHAPES).encode(), options)


def _encoded(text: str) -> bytes:
    """The text as RE2 reads it: places in bytes need no counting of characters."""
    return text.encode("utf-8", "surrogatepass")


def _names_a_secret(value: dict[object, object]) -> bool:
    """Whether the object is a pair such as `{"name": "DB_PASSWORD", "value": "..."}`."""
    return any(isinstance(name := value.get(key), str) and _is_secret(name, False) for key in ("name", "key"))


def _is_secret(name: str, above: bool) -> bool:
    """Whether text under this name is secret, given whether text beside the name is; an array index changes nothing."""
    return _is_known_secret(name, above) if len(name) < _LONGEST_KEPT else _is_new_secret(name, above)


def _is_new_secret(name: str, above: bool) -> bool:
    plain = _SEPARATORS.sub("", name.lower())
    if _SECRET_NAME.search(plain) or _last_word(name) in _SECRET_WORDS:
        return True
    return above and _DESCRIBING_NAME.search(plain) is None


_is_known_secret = lru_cache(maxsize=4096)(_is_new_secret)


def _is_doubtful(name: str, above: bool) -> bool:
    """Whether random text under this name is secret; an array index changes nothing."""
    return above if name.isdecimal() else name.lower() in _DOUBTFUL_NAMES


def _last_word(name: str) -> str:
    words = _WORD.findall(name)
    return words[-1].lower() if words else ""
