"""The `[[notify]]` sections of a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import SecretStr

from policyeng.configuration.toml_positions import File
from policyeng.errors import UsageError, suggest_nearest
from policyeng.frozen import fields
from policyeng.models import UNCHECKED, Severity, lowered

if TYPE_CHECKING:
    from pydantic import SecretStr as Secret
else:  # the table is read apart, and pydantic is loaded then
    Secret = Annotated[object, UNCHECKED]
from policyeng.configuration.notification_targets import Notifying

_NAME = re.compile(r"[\w.-]+", re.ASCII)
#: A scheme and something after it, as apprise has them; what comes after is for apprise to judge when it sends.
_URL = re.compile(r"\$\{\w+\}|[A-Za-z][\w+.-]*://.+", re.ASCII | re.DOTALL)
_TABLES = 'write `[[notify]]`, followed by `name = "..."` and `url = "..."`'
_KEYS = tuple(entry.name for entry in fields(Notifying) if entry.name != "inherited_from")


def targets(value: object, file: File) -> list[Notifying]:
    """Read the `[[notify]]` tables.

    Raises:
        UsageError: a table is not valid; with the line.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UsageError("`notify` is not a list of tables", place=(file.place("notify"),), remedy=_TABLES)
    places = [file.place_of("notify", position) for position in range(len(value))]
    source = str(file.path) if file.inherited else ""
    read = [_target(entry, place, source) for entry, place in zip(value, places, strict=True)]
    _refuse_twice((target.name for target in read), places)
    return read


def _target(entry: dict[str, object], place: str, inherited_from: str) -> Notifying:
    for key in entry:
        if key not in _KEYS:
            known = ", ".join(f"`{name}`" for name in _KEYS)
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, _KEYS)}", place=(place,), remedy=f"choose from {known}"
            )
    return Notifying(
        name=_name(entry.get("name"), place),
        url=SecretStr(_url(entry.get("url"), place)),
        estates=tuple(_texts(entry, "estates", place)),
        owners=tuple(_texts(entry, "owners", place)),
        severity=_severity(entry.get("severity", "low"), place),
        per_hour=_per_hour(entry.get("per_hour", 20), place),
        inherited_from=inherited_from,
    )


def _name(stated: object, place: str) -> str:
    if not isinstance(stated, str) or not _NAME.fullmatch(stated):
        what = "target without a `name`" if stated is None else f"invalid value `{stated}` for `name`"
        raise UsageError(what, place=(place,), remedy="use letters, digits, `-`, `_` and `.`")
    return stated


def _url(stated: object, place: str) -> str:
    """Return the URL; messages do not quote it, since it may contain a password."""
    if not isinstance(stated, str) or not _URL.fullmatch(stated):
        what = "target without a `url`" if stated is None else "`url` is not an apprise URL"
        raise UsageError(what, place=(place,), remedy='write `url = "mailto://..."`, or `url = "${NAME}"`')
    return stated


def _texts(entry: dict[str, object], key: str, place: str) -> Iterator[str]:
    stated = entry.get(key, [])
    listed = [stated] if isinstance(stated, str) else stated
    if not isinstance(listed, list) or not all(isinstance(each, str) and each.strip() for each in listed):
        raise UsageError(f"`{key}` is not a list of strings", place=(place,), remedy=f'write `{key} = ["..."]`')
    yield from listed


def _severity(stated: object, place: str) -> Severity:
    names = list(map(str, Severity))
    if not isinstance(stated, str) or lowered(stated) not in names:
        remedy = "choose from " + ", ".join(f"`{name}`" for name in names)
        what = f"unknown severity `{stated}`{suggest_nearest(str(stated), names)}"
        raise UsageError(what, place=(place,), remedy=remedy)
    return Severity(lowered(stated))


def _per_hour(stated: object, place: str) -> int:
    if type(stated) is not int or stated < 1:
        raise UsageError(f"invalid value `{stated}` for `per_hour`", place=(place,), remedy="use a number from 1")
    return stated


def _refuse_twice(names: Iterable[str], places: list[str]) -> None:
    seen: set[str] = set()
    for name, place in zip(names, places, strict=True):
        if name in seen:
            raise UsageError(f"duplicate target name `{name}`", place=(place,), remedy="rename one of them")
        seen.add(name)
