"""What a plain YAML word means, in two dialects.

YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema) is what our own documents are read by. Kubernetes,
and Conftest with it, reads YAML 1.1: `yes`, `on` and `y` are true, `0644` is octal, `1_000` is a thousand
(https://yaml.org/type/bool.html, https://yaml.org/type/int.html).
"""

from __future__ import annotations

import re

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_KUBERNETES_WORDS: dict[str, bool | None] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"([-+]?)(?:0b([01]{1,300})|0o?([0-7]{1,300})|0x([0-9a-fA-F]{1,300}))")


def core(text: str) -> bool | int | float | str | None:
    """The value of a plain word in YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 8) if text.startswith("0o") else int(text, 16) if text.startswith("0x") else int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def kubernetes(text: str) -> bool | int | float | str | None:
    """The value of a plain word as Kubernetes and Conftest read it."""
    if text in _KUBERNETES_WORDS:
        return _KUBERNETES_WORDS[text]
    digits = text.replace("_", "") if text[:1] in "+-.0123456789" else text
    based = _BASED.fullmatch(digits)
    if based is None:
        number = core(digits) if _DECIMAL.fullmatch(digits) else text
        return int(number) if isinstance(number, float) and number.is_integer() else number
    value = int(based[2] or based[3] or based[4], 2 if based[2] else 8 if based[3] else 16)
    return -value if based[1] == "-" else value


def kubernetes_key(text: str) -> str | None:
    """The key that a plain word is as Kubernetes and Conftest read it; None for one that means null."""
    value = kubernetes(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)
