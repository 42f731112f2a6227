"""Values as files of the Azure CLI spell them; for what they cannot spell nothing is written instead."""

from __future__ import annotations

import json
import re
from typing import Any

from policyeng.models import JsonObject


def plain(value: object) -> object:
    """A JSON value that shares nothing with any other, so that YAML has no anchors."""
    return json.loads(json.dumps(value))


def snake(word: object) -> object:
    """`LowPriority` as `low_priority`; what is no word as it is."""
    if not isinstance(word, str):
        return word
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).lstrip("_")


def at(value: object, *keys: str) -> Any:
    """Return the value below some keys; None if there is none.

    Raises:
        TypeError: a value above it is not an object, which the files of the CLI cannot express.
    """
    for key in keys:
        if value is not None and not isinstance(value, dict):
            raise TypeError(f"not an object: {value!r}")
        value = None if value is None else value.get(key)
    return value


def filled(**members: object) -> JsonObject | None:
    """An object of the members that are there; None without any."""
    return {key: value for key, value in members.items() if value is not None} or None


def seconds(duration: str | None) -> int | None:
    """The seconds of `P1DT2H3M4S`.

    Raises:
        ValueError: it is another text.
    """
    if duration is None:
        return None
    spelled = re.fullmatch(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", duration, re.ASCII)
    if spelled is None or not any(spelled.groups()):
        raise ValueError(f"no duration: {duration}")
    days, hours, whole, rest = (int(part or 0) for part in spelled.groups())
    return ((days * 24 + hours) * 60 + whole) * 60 + rest


def minutes(duration: str | None) -> int | None:
    """The minutes of a duration.

    Raises:
        ValueError: it is none of whole minutes.
    """
    long = seconds(duration)
    if long is not None and long % 60:
        raise ValueError(f"no whole minutes: {duration}")
    return None if long is None else long // 60


def opened(word: str | None) -> bool | None:
    """`Enabled` and `Disabled` as booleans.

    Raises:
        KeyError: it is another word.
    """
    return None if word is None else {"Enabled": True, "Disabled": False}[word]
