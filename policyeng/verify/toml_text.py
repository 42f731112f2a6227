"""Parameters as a `policyeng.toml`: what `policyeng check` reads them from. Source: TOML 1.0.0."""

from __future__ import annotations

import json
from collections.abc import Mapping

from policyeng.models import JsonObject


def is_sayable(value: object) -> bool:
    """Whether TOML has the value: it knows no null."""
    if isinstance(value, dict):
        return all(map(is_sayable, value.values()))
    return all(map(is_sayable, value)) if isinstance(value, list) else value is not None


def toml_of(parameters: Mapping[str, JsonObject]) -> str:
    """The configuration with these parameters by policy id, all of which TOML has; empty without any."""
    lines: list[str] = []
    for policy, own in parameters.items():
        lines += [f"[parameters.{_text(policy)}]", *(f"{_text(name)} = {_toml(value)}" for name, value in own.items())]
    return "".join(f"{line}\n" for line in lines)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)} = {_toml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """A basic string; it has the escapes of JSON, and may not hold a bare delete."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
