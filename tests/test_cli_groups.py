"""Groups of options: shown one by one, handed over together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated

import pytest
import typer
from typer.exceptions import TyperException

from policyeng.cli.app import COMMANDS, app
from policyeng.cli.audit.app import COMMANDS as AUDIT_COMMANDS
from policyeng.cli.commands import Late, group_of
from policyeng.cli.option_groups import with_group

SEEN: list[tuple[str, object, object]] = []


def _pair(*, left: Annotated[int, typer.Option()] = 1, right: Annotated[str, typer.Option()] = "r") -> tuple[int, str]:
    return left, right


def _deep(*, depth: Annotated[int, typer.Option("--deep", min=0)] = 0) -> int:
    if depth > 9:
        raise ValueError(depth)
    return -depth


def _command(name: str, own: Annotated[bool, typer.Option("--own")] = False, *, pair: object, deep: object) -> int:
    """Print the arguments."""
    SEEN.append((f"{name} {own}", pair, deep))
    return 7


def _run(*words: str) -> object:
    grouped = typer.Typer()
    grouped.command()(with_group("deep", _deep)(with_group("pair", _pair)(_command)))
    SEEN.clear()
    return grouped(args=words, standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("n",), ("n False", (1, "r"), 0)),
        (("n", "--own", "--left", "2", "--deep", "3"), ("n True", (2, "r"), -3)),
        (("--right", "x", "n"), ("n False", (1, "x"), 0)),
    ],
)
def test_every_group_reaches_the_command_as_one_argument(words: tuple[str, ...], seen: object) -> None:
    """With the defaults of its options, and next to another group and options of its own."""
    assert _run(*words) == 7
    assert [seen] == SEEN


@pytest.mark.parametrize("words", [("n", "--pair", "x"), ("n", "--deep", "-1"), ("n", "--left", "x")])
def test_what_is_no_option_or_does_not_fit_never_reaches_the_command(words: tuple[str, ...]) -> None:
    """The argument of the group is no option, and its options are validated as declared."""
    with pytest.raises(TyperException):
        _run(*words)
    assert SEEN == []


def test_what_gathering_refuses_is_raised_before_the_command_runs() -> None:
    """As a file of a token that cannot be read."""
    with pytest.raises(ValueError, match="10"):
        _run("n", "--deep", "10")
    assert SEEN == []


def test_the_command_itself_stays_as_it_was() -> None:
    """It keeps its name and its help, and can be called without typer."""
    grouped = with_group("pair", _pair)(_command)

    assert (grouped.__name__, grouped.__doc__) == ("_command", "Print the arguments.")
    assert list(inspect.signature(grouped).parameters) == ["name", "own", "deep", "left", "right"]
    assert list(inspect.signature(_command).parameters) == ["name", "own", "pair", "deep"]


def test_no_command_shows_the_argument_of_a_group() -> None:
    """Only the options in it."""
    groups = [typer.main.get_command(app)]
    names: dict[str, set[str | None]] = {}
    for group in groups:
        for name, command in getattr(group, "commands", {}).items():
            groups.append(command)
            names[f"{group.name} {name}"] = {parameter.name for parameter in command.params}

    assert {name for name, shown in names.items() if shown & {"args", "server"}} == set()
    evaluating = {f"policyeng {name}" for name in ("admit", "check", "diff", "verify")}
    evaluating |= {f"audit {name}" for name in ("ahead", "evidence", "history", "impact", "replay", "run", "schedule")}
    assert {name for name, shown in names.items() if "opa_url" in shown} == evaluating


@pytest.mark.parametrize("places", [COMMANDS, AUDIT_COMMANDS])
def test_the_help_of_a_group_has_the_help_of_its_commands(places: Mapping[str, Late]) -> None:
    """Both are written, so that the help of a group need not import its commands."""
    commands = group_of(places)(name="group").commands

    assert {name: str(command.help).split("\n\n")[0].replace("\n", " ") for name, command in commands.items()} == {
        name: place.help for name, place in places.items()
    }
