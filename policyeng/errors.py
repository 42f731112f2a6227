"""The errors that policyeng raises on purpose.

PolicyengError              exit 2   no decision is possible
├── InputError              exit 2   a document cannot be read; has the file, the place and the remedy
├── BundleError             exit 2   a bundle or one of its policies is not well formed
├── EngineError             exit 2   an engine could not evaluate at all (a single failed pair is an `error` finding)
├── StoreError              exit 2   an audit store cannot be used, or is not consistent
└── UsageError              exit 3   a wrong option, configuration key, policy id or parameter

Messages start in lower case and have no final period; user input is in backticks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from policyeng.redaction import masked_message


class PolicyengError(Exception):
    """The base class of all errors that policyeng raises on purpose; secrets in its texts are masked.

    Args:
        message: what is wrong.
        place: where, most general first (a file, a line, a JSON Pointer); empty parts are omitted.
        remedy: how to fix it.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, place: tuple[str, ...] = (), remedy: str = "") -> None:
        self.message = masked_message(message)
        self.place = tuple(masked_message(part) for part in place if part)
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        text = ": ".join((*self.place, self.message))
        return f"{text}; {self.remedy}" if self.remedy else text


class InputError(PolicyengError):
    """A snapshot, exemption file or report that cannot be read."""


class BundleError(PolicyengError):
    """A bundle, a policy header or a case that is not well formed."""


class EngineError(PolicyengError):
    """An engine that cannot compile the bundle or cannot be reached."""


class StoreError(PolicyengError):
    """An audit store that cannot be opened or written, or whose rows were altered."""


class UsageError(PolicyengError):
    """An option, configuration key, policy id or parameter that does not exist or is not valid."""

    exit_code: ClassVar[int] = 3


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean …` with the known word closest to an unknown one, or an empty string."""
    from difflib import get_close_matches

    spelled = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean `{spelled[close[0]]}`" if close else ""
