"""Groups of options that commands receive as one argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import get_type_hints


def with_group(command: Callable[..., int], name: str, gather: Callable[..., object]) -> Callable[..., int]:
    """Add a group of options to a command.

    Args:
        command: receives the group as its argument `name`.
        name: that argument, which is not an option itself.
        gather: a function whose keyword parameters are the options and that returns the argument.
    """
    own, ours = _parameters(command), _parameters(gather)

    @wraps(command)
    def wrapped(**arguments: object) -> int:
        gathered = gather(**{option: arguments.pop(option) for option in ours})
        return command(**arguments, **{name: gathered})

    del own[name]
    shown = {**own, **ours}
    wrapped.__signature__ = Signature([*shown.values()], return_annotation=int)  # type: ignore[attr-defined]  # functions take attributes
    wrapped.__annotations__ = {option: parameter.annotation for option, parameter in shown.items()}
    return wrapped


def _parameters(function: Callable[..., object]) -> dict[str, Parameter]:
    """Return parameters by name with resolved annotations."""
    hints = get_type_hints(function, include_extras=True)
    given = signature(function).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in given.items()}
