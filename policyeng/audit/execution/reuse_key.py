"""What the evaluation of a part depends on: stored with the part, and compared at the next run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from policyeng.audit.store.digests import canonical
from policyeng.errors import StoreError
from policyeng.rego.clock import Unchanged
from policyeng.sources.file_dependencies import FileDependency


class ReuseKey(NamedTuple):
    """What an evaluation depends on.

    Attributes:
        grounds: the digest of all that is the same for every part, but for the clock; see `taking_over.grounds_of`.
        asked: what was asked of files to read it.
        in_force: the ids of the exemptions that were in force.
        again: the policies that are evaluated again at every other clock.
        used: the ids of the exemptions that cover something in the part.
        unchanged: between which clocks these come to the same; None where that is not known.
    """

    grounds: str
    asked: Sequence[FileDependency]
    in_force: Sequence[str]
    again: Sequence[str]
    used: Sequence[str]
    unchanged: Unchanged | None = None


def written(basis: ReuseKey) -> str:
    """A basis as JSON; empty where the name of a file is no text, so that nothing is known later."""
    try:
        return canonical(
            {
                **basis._asdict(),
                "asked": [(one.question, str(one.path), one.answer) for one in basis.asked],
                "unchanged": basis.unchanged and tuple(basis.unchanged),
            }
        ).decode()
    except TypeError:
        return ""


def read_back(text: str) -> ReuseKey | None:
    """The basis of its JSON; None for that of an earlier version, which is not comparable.

    Raises:
        StoreError: it is none.
    """
    try:
        stated = orjson.loads(text)
        if "unchanged" not in stated:
            return None
        asked = [FileDependency(question, Path(path), answer) for question, path, answer in stated["asked"]]
        unchanged = stated["unchanged"] and Unchanged(*stated["unchanged"])
        return ReuseKey(**{**stated, "asked": asked, "unchanged": unchanged})
    except (KeyError, TypeError, ValueError):
        remedy = "`policyeng audit verify-history` says which run it concerns"
        raise StoreError("what a part rests on was altered", place=("parts",), remedy=remedy) from None


def rests_on(basis: ReuseKey | None, grounds: str) -> str:
    """What is kept of a basis; empty where there is none."""
    return written(basis._replace(grounds=grounds)) if basis else ""
