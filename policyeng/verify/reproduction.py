"""How a reader sees a counterexample again: the command, and the files that it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from policyeng.verify.drawing.examples import Example
from policyeng.verify.toml_text import is_sayable, toml_of

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
        policy: the id of the one that is to be judged; all where it is empty.
        given: the options of the command line that name the policies, to be repeated.
        path: the file of its snapshot, or None where it is given on standard input.
    """
    chosen = ["--select", policy] if policy else []
    settings = ["--config", str(settings_path(path or Path("counterexample.json")))] if settings_of(example) else []
    moment = ["--as-of", example.as_of.isoformat()]
    return ["policyeng", "check", str(path or _NO_FILE), *given, *chosen, *moment, *settings]
