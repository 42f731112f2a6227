"""The tables of a configuration file: parameters of policies, and the modes in which failures are enforced."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite

from policyeng.configuration.places import File
from policyeng.errors import UsageError, nearest
from policyeng.models import Enforcement, Mode, lowered

_KEYS = tuple(entry.name for entry in fields(Enforcement))
_TABLES = 'write `[[modes]]`, and below it `policy = "..."` and `mode = "warn"`'


def enforcements(value: object, file: File) -> list[Enforcement]:
    """How failures are enforced, from `[[modes]]` tables.

    Raises:
        UsageError: one of them is none; with its line.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UsageError("`modes` is not a list of tables", place=(file.place("modes"),), remedy=_TABLES)
    return [_enforcement(entry, file.place_of("modes", position)) for position, entry in enumerate(value)]


def _enforcement(entry: dict[str, object], place: str) -> Enforcement:
    for key, stated in entry.items():
        if key not in _KEYS:
            known = ", ".join(f"`{name}`" for name in _KEYS)
            raise UsageError(f"unknown key `{key}`{nearest(key, _KEYS)}", place=(place,), remedy=f"known are {known}")
        if not (isinstance(stated, str) and (stated.strip() or key == "scope")):
            raise UsageError(f"`{key}` of a mode is not text", place=(place,), remedy=_TABLES)
    names, given = list(map(str, Mode)), str(entry.get("mode", ""))
    remedy = "the modes are " + ", ".join(f"`{name}`" for name in names)
    if not given:
        raise UsageError("the table has no `mode`", place=(place,), remedy=remedy)
    if lowered(given) not in names:
        raise UsageError(f"there is no mode `{given}`{nearest(given, names)}", place=(place,), remedy=remedy)
    policy, scope = str(entry.get("policy", "*")), str(entry.get("scope", ""))
    return Enforcement(policy=policy, scope=scope, mode=Mode(lowered(given)))


def require_parameters(value: object, file: File) -> None:
    """Refuse parameters that are no table for each policy, or whose values JSON does not have.

    Raises:
        UsageError: they are not, with the line.
    """
    remedy = 'write `[parameters."AML-..."]` and its parameters below'
    if not isinstance(value, dict):
        raise UsageError("`parameters` is not a table", place=(file.place("parameters"),), remedy=remedy)
    for policy, chosen in value.items():
        if not isinstance(chosen, dict):
            message = f"the parameters of `{policy}` are not a table"
            raise UsageError(message, place=(file.place(policy),), remedy=remedy)
        for name, content in chosen.items():
            if not _is_json(content):
                message = f"the parameter `{name}` of `{policy}` is not a JSON value"
                raise UsageError(
                    message, place=(file.place(name),), remedy="write times in quotes, and numbers within 64 bits"
                )


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_json(part) for part in value.values())
    if isinstance(value, list):
        return all(_is_json(part) for part in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))
