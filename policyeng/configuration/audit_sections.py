"""The `[[estates]]` and `[[notify]]` sections of a configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

from msgspec.structs import fields
from pydantic import SecretStr, TypeAdapter, ValidationError

from policyeng.configuration.settings import EstateSettings, Notifying
from policyeng.configuration.toml_file import File
from policyeng.errors import UsageError, suggest_nearest
from policyeng.models import UNCHECKED, Severity, lowered

_KEYS = tuple(entry.name for entry in fields(EstateSettings))
_DURATIONS = ("every", "jitter", "grace", "deadline")
_TEXTS = tuple(name for name in _KEYS if name not in (*_DURATIONS, "inputs", "together"))
_TABLES = 'write `[[estates]]`, followed by `name = "..."` and `inputs = ["..."]`'
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_FIELDS_OF_CRON = 5


def estates_of(value: object, file: File) -> list[EstateSettings]:
    """Read the `[[estates]]` tables.

    Raises:
        UsageError: a table is not valid, or two have the same name; with the line.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UsageError("`estates` is not a list of tables", place=(file.place("estates"),), remedy=_TABLES)
    estates: dict[str, EstateSettings] = {}
    for position, entry in enumerate(value):
        place = file.place_of("estates", position)
        estate = _estate(entry, place, file.path.parent)
        if estate.name in estates:
            raise UsageError(f"duplicate estate name `{estate.name}`", place=(place,), remedy="rename one of them")
        estates[estate.name] = estate
    return [*estates.values()]


def require_name(name: str, place: str = "") -> None:
    """Refuse an invalid estate name.

    Raises:
        UsageError: the name is not valid.
    """
    if not _NAME.fullmatch(name):
        remedy = "use up to 100 letters, digits, `-`, `_` and `.`"
        raise UsageError(f"invalid estate name `{name}`", place=(place,), remedy=remedy)


def input_of(given: str, folder: Path, place: str = "") -> str:
    """Return an input as it is read: a URL unchanged, a path relative to the folder.

    Raises:
        UsageError: the input is neither.
    """
    if scheme := _URL.match(given):
        if scheme[1].lower() not in ("http", "https"):
            message = f"unsupported URL scheme `{scheme[1]}`"
            raise UsageError(message, place=(place,), remedy="use an `https://` or `http://` URL, or a path")
        return given
    if given.strip() in ("", "-"):
        raise UsageError(
            f"invalid input `{given}` of an estate", place=(place,), remedy="use a directory, a file or a URL"
        )
    return str(folder / given)


def _estate(entry: Mapping[str, object], place: str, folder: Path) -> EstateSettings:
    for key, stated in entry.items():
        if key not in _KEYS:
            known = ", ".join(f"`{name}`" for name in _KEYS)
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, _KEYS)}", place=(place,), remedy=f"choose from {known}"
            )
        if key in (*_TEXTS, *_DURATIONS) and not (isinstance(stated, str) and stated.strip()):
            raise UsageError(f"`{key}` of an estate is not a string", place=(place,), remedy=_TABLES)
        if key == "together" and not isinstance(stated, bool):
            raise UsageError("`together` is not a boolean", place=(place,), remedy="use true or false")
    if "name" not in entry:
        raise UsageError("estate without a `name`", place=(place,), remedy=_TABLES)
    fields = {key: str(entry[key]) for key in _TEXTS if key in entry}
    require_name(fields["name"], place)
    _require_source(entry, place)
    _require_times(fields, entry, place)
    inputs = tuple(input_of(given, folder, place) for given in _inputs(entry.get("inputs", []), place))
    durations = {key: _duration(key, str(entry[key]), place) for key in _DURATIONS if key in entry}
    return EstateSettings.model_validate(
        {**fields, **durations, "inputs": inputs, "together": entry.get("together", False)}
    )


def _inputs(value: object, place: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(given, str) for given in value):
        raise UsageError("`inputs` is not a list of strings", place=(place,), remedy='write `inputs = ["..."]`')
    return value


def _require_source(entry: Mapping[str, object], place: str) -> None:
    """Refuse an estate without a source, or with both inputs and a subscription."""
    if bool(entry.get("inputs")) == ("subscription" in entry):
        message = (
            "estate with both `inputs` and `subscription`" if "subscription" in entry else "estate without `inputs`"
        )
        remedy = "set either `inputs`, or `subscription` to read live Azure"
        raise UsageError(message, place=(place,), remedy=remedy)
    for key, above in (("workspace", "resource_group"), ("resource_group", "subscription")):
        if key in entry and above not in entry:
            raise UsageError(f"`{key}` without `{above}`", place=(place,), remedy=f"add `{above}`")


def _require_times(fields: Mapping[str, str], entry: Mapping[str, object], place: str) -> None:
    if "cron" in fields and "every" in entry:
        raise UsageError("estate with both `cron` and `every`", place=(place,), remedy="remove one of them")
    if "cron" in fields and len(fields["cron"].split()) != _FIELDS_OF_CRON:
        remedy = 'use five fields (minute, hour, day, month, day of the week), such as "0 3 * * *"'
        raise UsageError(f"invalid value `{fields['cron']}` for `cron`", place=(place,), remedy=remedy)
    if "timezone" in fields:
        try:
            ZoneInfo(fields["timezone"])
        except (
            OSError,
            ValueError,
            KeyError,
        ):  # for a directory, an invalid path, and an unknown name, respectively
            message = f"unknown time zone `{fields['timezone']}`"
            raise UsageError(message, place=(place,), remedy='use an IANA name such as "Europe/Berlin"') from None


def _duration(key: str, text: str, place: str) -> timedelta:
    remedy = 'use an ISO 8601 duration such as "PT6H" or "P1D"'
    try:
        duration = TypeAdapter(timedelta).validate_python(text)
    except ValidationError:
        duration = None
    if (
        duration is None
        or not text.startswith("P")
        or duration < timedelta(0)
        or (key in ("every", "deadline") and not duration)
    ):
        raise UsageError(f"invalid value `{text}` for `{key}`", place=(place,), remedy=remedy)
    return duration


if TYPE_CHECKING:
    from pydantic import SecretStr as Secret
else:  # the table is read apart, and pydantic is loaded then
    Secret = Annotated[object, UNCHECKED]

_TARGET_NAME = re.compile(r"[\w.-]+", re.ASCII)
#: A scheme and something after it, as apprise has them; what comes after is for apprise to check when it sends.
_TARGET_URL = re.compile(r"\$\{\w+\}|[A-Za-z][\w+.-]*://.+", re.ASCII | re.DOTALL)
_NOTIFY_TABLES = 'write `[[notify]]`, followed by `name = "..."` and `url = "..."`'
_TARGET_KEYS = tuple(entry.name for entry in fields(Notifying) if entry.name != "inherited_from")


def targets(value: object, file: File) -> list[Notifying]:
    """Read the `[[notify]]` tables.

    Raises:
        UsageError: a table is not valid; with the line.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UsageError("`notify` is not a list of tables", place=(file.place("notify"),), remedy=_NOTIFY_TABLES)
    places = [file.place_of("notify", position) for position in range(len(value))]
    source = str(file.path) if file.inherited else ""
    read = [_target(entry, place, source) for entry, place in zip(value, places, strict=True)]
    _refuse_twice((target.name for target in read), places)
    return read


def _target(entry: dict[str, object], place: str, inherited_from: str) -> Notifying:
    for key in entry:
        if key not in _TARGET_KEYS:
            known = ", ".join(f"`{name}`" for name in _TARGET_KEYS)
            raise UsageError(
                f"unknown key `{key}`{suggest_nearest(key, _TARGET_KEYS)}",
                place=(place,),
                remedy=f"choose from {known}",
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
    if not isinstance(stated, str) or not _TARGET_NAME.fullmatch(stated):
        what = "target without a `name`" if stated is None else f"invalid value `{stated}` for `name`"
        raise UsageError(what, place=(place,), remedy="use letters, digits, `-`, `_` and `.`")
    return stated


def _url(stated: object, place: str) -> str:
    """Return the URL; messages do not quote it, since it may contain a password."""
    if not isinstance(stated, str) or not _TARGET_URL.fullmatch(stated):
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
