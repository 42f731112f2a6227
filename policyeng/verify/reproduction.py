"""How a reader sees a counterexample again: the command, and the files that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policyeng.models import JsonObject
from policyeng.verify.example_documents import snapshot_text
from policyeng.verify.generators.examples import Example


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


#: Where a counterexample lies when no file was asked for: on standard input.
_NO_FILE = Path("-")


def settings_of(example: Example) -> str:
    """The parameters of an example as a `policyeng.toml`; empty where it needs none, or TOML cannot say them."""
    return toml_of(example.parameters) if is_sayable(dict(example.parameters)) else ""


def settings_path(path: Path) -> Path:
    """Where the parameters of an example are written, beside its snapshot."""
    return path.with_name(f"{path.stem}.toml")


def command(example: Example, policy: str, given: Sequence[str] = (), path: Path | None = None) -> list[str]:
    """The words of the command that judges an example.

    Args:
        example: with its clock and parameters.
        policy: the id of the one that is to be judged, or of several with commas between; all where it is empty.
        given: the options of the command line that name the policies, to be repeated.
        path: the file of its snapshot, or None where it is given on standard input.
    """
    chosen = ["--select", policy] if policy else []
    settings = ["--config", str(settings_path(path or Path("counterexample.json")))] if settings_of(example) else []
    moment = ["--as-of", example.as_of.isoformat()]
    return ["policyeng", "check", str(path or _NO_FILE), *given, *chosen, *moment, *settings]


def unwritten(example: Example, path: Path | None) -> Iterator[str]:
    """The lines of an example for a reader who has not all of it in files; `path` is that of its snapshot, if any."""
    if path is None or not settings_of(example):
        yield from stated_parameters(example)
    if path is None:
        yield from _lines_of(snapshot_text(example))


def stated_parameters(example: Example) -> Iterator[str]:
    """The lines of the parameters of an example: of a `policyeng.toml`, or JSON where TOML cannot say them."""
    text = settings_of(example)
    if not text and example.parameters:
        text = json.dumps(dict(example.parameters), ensure_ascii=False)
    for at, line in enumerate(_lines_of(text)):
        yield f"{'' if at else 'parameters':12} {line}"


def _lines_of(text: str) -> list[str]:
    """The lines of a text as JSON and TOML end them: what else ends a line may stand in their texts."""
    return text.rstrip("\n").split("\n") if text else []
