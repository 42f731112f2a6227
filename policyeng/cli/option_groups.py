"""Groups of options that commands receive as one argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import get_args, get_type_hints

from policyeng.cli import options


def with_options(kind: Callable[..., object]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options of a command, declared as the fields of a class, as its argument `args`."""
    return with_group("args", kind)


def with_group(name: str, gather: Callable[..., object]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add a group of options to a command; help shows the options in the order of `options.PANELS`.

    Args:
        name: the argument of the command that receives the group, which is not an option itself.
        gather: a dataclass whose fields are the options, or a function whose keyword parameters are the options and
            that returns the argument.
    """

    def add(command: Callable[..., int]) -> Callable[..., int]:
        own, ours = _parameters(command), _parameters(gather)

        @wraps(command)
        def wrapped(**arguments: object) -> int:
            gathered = gather(**{option: arguments.pop(option) for option in ours})
            return command(**arguments, **{name: gathered})

        del own[name]
        shown = sorted([*own.values(), *ours.values()], key=_panel)
        wrapped.__signature__ = Signature(shown, return_annotation=int)  # type: ignore[attr-defined]  # functions take attributes
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return wrapped

    return add


def _parameters(function: Callable[..., object]) -> dict[str, Parameter]:
    """Return parameters by name with resolved annotations, as keyword parameters."""
    # Classes that a plain run of `check` loads import `options` for type checking only, since it needs typer.
    if isinstance(function, type):
        hints = get_type_hints(function, localns={"options": options}, include_extras=True)
        defaults = {entry.name: entry.default for entry in fields(function)}
    else:
        hints = get_type_hints(function, include_extras=True)
        defaults = {name: parameter.default for name, parameter in signature(function).parameters.items()}
    return {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=_default(default), annotation=hints[name])
        for name, default in defaults.items()
    }


def _default(given: object) -> object:
    """Return the default for a signature; required fields of dataclasses have a marker of their own."""
    return Parameter.empty if given is MISSING else given


def _panel(parameter: Parameter) -> int:
    """Return the place of a parameter in the help; arguments and the options of one command come first."""
    panels = [getattr(extra, "rich_help_panel", None) for extra in get_args(parameter.annotation)[1:]]
    return max((options.PANELS.index(panel) + 1 for panel in panels if panel in options.PANELS), default=0)
