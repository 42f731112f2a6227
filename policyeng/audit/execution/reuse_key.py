"""The key for reusing the evaluation of a part, stored with the part and compared at the next run."""

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
    """Everything that an evaluation depends on.

    Attributes:
        grounds: the digest of what all parts share, except for the clock; see `reuse.grounds_of`.
        asked: the file queries for reading the part.
        in_force: the ids of the active exemptions.
        again: the policies to evaluate again at another clock.
        used: the ids of the exemptions that cover a finding of the part.
        unchanged: the range of clocks with the same results; None if it is not known.
    """

    grounds: str
    asked: Sequence[FileDependency]
    in_force: Sequence[str]
    again: Sequence[str]
    used: Sequence[str]
    unchanged: Unchanged | None = None


def encode_key(basis: ReuseKey) -> str:
    """Return a key as JSON; empty if the name of a file is not text, which prevents reuse."""
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
    """Return the key of its JSON; None for one of an earlier version.

    Raises:
        StoreError: the JSON is not a key.
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


def decode_key(basis: ReuseKey | None, grounds: str) -> str:
    """Return the stored form of a key; empty without one."""
    return encode_key(basis._replace(grounds=grounds)) if basis else ""
