"""The command that reproduces a counterexample, and the files that it refers to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from policyeng.models import JsonObject
from policyeng.verify.example_documents import snapshot_text
from policyeng.verify.generators.examples import Example


def is_sayable(value: object) -> bool:
    """Check whether TOML can express a value; it has no null."""
    if isinstance(value, dict):
        return all(map(is_sayable, value.values()))
    return all(map(is_sayable, value)) if isinstance(value, list) else value is not None


def toml_of(parameters: Mapping[str, JsonObject]) -> str:
    """Return a configuration with these parameters by policy id, which TOML can express; empty if there are none."""
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
    """Return a basic string; it has the escapes of JSON, and must not contain a bare delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


#: The path of a counterexample without a file: standard input.
_NO_FILE = Path("-")


def settings_of(example: Example) -> str:
    """Return the parameters of an example as a `policyeng.toml`; empty if it has none, or TOML cannot express them."""
    return toml_of(example.parameters) if is_sayable(dict(example.parameters)) else ""


def settings_path(path: Path) -> Path:
    """Return the path for the parameters of an example, next to its snapshot."""
    return path.with_name(f"{path.stem}.toml")


def command(example: Example, policy: str, given: Sequence[str] = (), path: Path | None = None) -> list[str]:
    """Return the words of the command that evaluates an example.

    Args:
        example: the example, with its clock and parameters.
        policy: the id of the policy to evaluate, or several with commas between them; all policies if empty.
        given: the options of the command line that name the policies, to repeat.
        path: the file of its snapshot; None if it is given on standard input.
    """
    chosen = ["--select", policy] if policy else []
    settings = ["--config", str(settings_path(path or Path("counterexample.json")))] if settings_of(example) else []
    moment = ["--as-of", example.as_of.isoformat()]
    return ["policyeng", "check", str(path or _NO_FILE), *given, *chosen, *moment, *settings]


def list_other_parts(example: Example, path: Path | None) -> Iterator[str]:
    """Yield the lines of the parts of an example that are not in files; `path` is the file of its snapshot, if any."""
    if path is None or not settings_of(example):
        yield from list_parameters(example)
    if path is None:
        yield from _lines_of(snapshot_text(example))


def list_parameters(example: Example) -> Iterator[str]:
    """Yield the parameters of an example as lines of a `policyeng.toml`, or as JSON if TOML cannot express them."""
    text = settings_of(example)
    if not text and example.parameters:
        text = json.dumps(dict(example.parameters), ensure_ascii=False)
    for at, line in enumerate(_lines_of(text)):
        yield f"{'' if at else 'parameters':12} {line}"


def _lines_of(text: str) -> list[str]:
    """Split a text at the line ends of JSON and TOML; other line ends can be part of strings."""
    return text.rstrip("\n").split("\n") if text else []
