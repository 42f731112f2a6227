"""Which resources a snapshot has all of, and of which it does not have all.

`covers` has entries `TYPE at ID`: all resources of the type at and below the id were read. A snapshot without it has
all of the types that policies look up. Lines of `incomplete` in one form, that collectors write, override that:

`TYPE at ID: reason` says that not all resources of the type at and below the id could be read. What is not there may
exist then: policies that judge the type are unknown of that scope, and those that consult it of what it may be about;
so are those that may read anything. `metrics at ID: reason` and `quotas at ID: reason` are for policies whose text
names these. `TYPE at ID, as asked: reason` says that not all were asked for, which keeps nobody from judging what was.

Lines of this form policies do not see: they would take one for what concerns them, whatever it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from policyeng.facts.coverage import SPELLED
from policyeng.facts.ids import covers, is_open, scopes_of, segments
from policyeng.models import Unknown, lowered, made
from policyeng.rego.markers import Cause
from policyeng.sources.arm_entry import types_of
from policyeng.workloads.derive import DERIVED_FROM

_LINE = re.compile(
    r"(?P<kind>metrics|quotas|[A-Za-z]\w*(?:\.\w+)+(?:/\w+)+)"
    r" at (?P<scope>/\S*?)(?P<asked>, as asked)?: (?P<reason>.+)",
    re.S,
)
#: No more gaps than these are named as the reason of one unknown.
_MOST = 5
_SCOPE = re.compile(r"/(?:subscriptions/[^/]+(?:/resourceGroups/[^/]+)?)?", re.IGNORECASE)


class Gap(NamedTuple):
    """Resources of a type, as it is spelled, at and below a scope, of which not all are in the snapshot.

    The type may also be `metrics` or `quotas`: what a snapshot states beside resources.
    """

    kind: str
    scope: str
    reason: str

    @property
    def is_stated(self) -> bool:
        """Whether it is of what a snapshot states beside resources."""
        return "/" not in self.kind and self.kind != "workload"

    @property
    def unknown(self) -> Unknown:
        """What a policy that needs it says."""
        return made(Unknown, msg=f"not all {self.kind} could be read: {self.reason}", path=f"{self.scope}:")

    def meets(self, scope: str) -> bool:
        """Whether it may be about what lies at and below a scope, or about what that lies in."""
        return covers(scope, self.scope) is not False or covers(self.scope, scope) is not False


class Gaps:
    """Gaps by where they are: there may be one in each of thousands of workspaces."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self._at: dict[tuple[str, ...], list[Gap]] = {}
        self._below: dict[tuple[str, ...], list[Gap]] = {}
        self._loose: list[Gap] = []
        for gap in gaps:
            parts = _place(gap.scope)
            if parts is None:
                self._loose.append(gap)
                continue
            self._at.setdefault(parts, []).append(gap)
            for depth in range(len(parts)):
                self._below.setdefault(parts[:depth], []).append(gap)

    def __iter__(self) -> Iterator[Gap]:
        """All of them."""
        yield from (gap for gaps in self._at.values() for gap in gaps)
        yield from self._loose

    def near(self, scope: str) -> Iterator[Gap]:
        """Those that meet a scope."""
        parts = _place(scope)
        if parts is None:
            yield from (gap for gaps in self._at.values() for gap in gaps if gap.meets(scope))
        else:
            for depth in range(len(parts) + 1):
                yield from self._at.get(parts[:depth], ())
            yield from self._below.get(parts, ())
        yield from (gap for gap in self._loose if gap.meets(scope))


def _place(scope: str) -> tuple[str, ...] | None:
    """The segments of an id of which these alone say what it lies in; None for others."""
    parts = segments(scope)
    return parts if parts is not None and parts[:1] in ((), ("subscriptions",)) and not is_open(scope) else None


def gaps_in(lines: Iterable[str]) -> tuple[Gap, ...]:
    """What lines of `incomplete` say in the form of a gap, each type and scope once, sorted.

    Where nobody knows of all jobs or deployments, nobody does of all workloads.
    """
    found: dict[tuple[str, str], Gap] = {}
    for said in filter(None, map(_said, sorted(lines))):
        if not said["asked"]:
            for kind in (said["kind"], *(["workload"] if lowered(said["kind"]) in DERIVED_FROM else [])):
                gap = Gap(kind, said["scope"], said["reason"])
                found.setdefault((lowered(kind), lowered(gap.scope)), gap)
    return tuple(sorted(found.values()))


def meant_for_all(lines: Iterable[str]) -> list[str]:
    """The lines that policies see: those of another form."""
    return [line for line in lines if _said(line) is None]


def is_as_asked(line: str) -> bool:
    """Whether a line tells of what was not asked for."""
    said = _said(line)
    return said is not None and bool(said["asked"])


def _said(line: str) -> re.Match[str] | None:
    """A line taken apart; None where it has another form."""
    said = _LINE.fullmatch(line)
    return said if said and (_SCOPE.fullmatch(said["scope"]) or types_of(said["scope"])) else None


class Coverage:
    """Which lists of resources were read, asked by type and place.

    Attributes:
        has_holes: not all lists were.
        kinds: the types that may have been read in part, in lower case.
        lacks: by a lower-case type and an id, or the empty text for anywhere: why there may be others at and below it.
    """

    def __init__(self, stated: Iterable[str] | None, ids: Iterable[str], gaps: Iterable[Gap]) -> None:
        """Take the entries of `covers`, None for all that policies look up; the ids of the resources; and the gaps."""
        self._is_whole = stated is None
        self._stated: dict[str, list[str]] = {}
        for entry in stated or ():
            kind, _, scope = entry.partition(" at ")
            self._stated.setdefault(lowered(kind), []).append(scope)
        self._subscriptions = sorted({scope for one in ids for scope in scopes_of(one)[:1]}) or ["/"]
        by_kind: dict[str, list[Gap]] = {}
        for gap in gaps:
            by_kind.setdefault(lowered(gap.kind), []).append(gap)
        self._gaps = {kind: Gaps(several) for kind, several in by_kind.items()}
        self.kinds = (*SPELLED, *(kind for kind in self._gaps if kind not in SPELLED))
        self.has_holes = not self._is_whole or bool(self._gaps)
        self.lacks = cache(self._lacks)

    def _lacks(self, kind: str, scope: str) -> tuple[Cause, ...]:
        if kind in self._gaps:
            found = islice(self._gaps[kind].near(scope) if scope else self._gaps[kind], _MOST)
            if causes := tuple((gap.unknown.path, gap.unknown.msg) for gap in found):
                return causes
        if self._is_whole:
            return ()
        if kind == "workload":
            return next(filter(None, (self.lacks(source, scope) for source in DERIVED_FROM)), ())
        stated = self._stated.get(kind, ())
        if all(any(covers(entry, asked) for entry in stated) for asked in ([scope] if scope else self._subscriptions)):
            return ()
        remedy = "add what `policyeng snapshot collect` or `az rest` gives"
        return (("", f"the inputs do not list all {SPELLED.get(kind, kind)}; {remedy}"),)
