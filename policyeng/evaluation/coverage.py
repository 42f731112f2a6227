"""Which resources a snapshot has all of, and of which it does not have all.

`covers` has entries `TYPE at ID`: all resources of the type at and below the id were read. A native snapshot without it
has all of the types in `facts.coverage.LISTED`. Lines of `incomplete` in one form, which collectors write, override it:

`TYPE at ID: reason` says that not all resources of the type at and below the id could be read. What is not there may
exist then: policies that judge the type are unknown of that scope, and those that consult it of what it may be about;
so are those that may read anything. `metrics at ID: reason` and `quotas at ID: reason` are for policies whose text
names these. `TYPE at ID, as asked: reason` says that not all were asked for, which keeps nobody from judging what was.

Lines of this form policies do not see: they would take one for what concerns them, whatever it is about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice

from policyeng.facts.coverage import SPELLED, TYPE, is_whole, parse_entry
from policyeng.facts.ids import covers, is_open, scopes_of, segments, types_of
from policyeng.later import lazy_pattern
from policyeng.models import WORKSPACE_TYPE, Unknown, lowered
from policyeng.named import NamedTuple
from policyeng.rego.markers import Cause
from policyeng.workloads.derive import DERIVED_FROM

_LINE = lazy_pattern(
    rf"(?P<kind>metrics|quotas|{TYPE}) at (?P<scope>/\S*?)(?P<asked>, as asked)?: (?P<reason>.+)",
    re.S,
)
#: No more gaps than these are named as the reason of one unknown.
_MOST = 5
_SUBSCRIPTION = ("subscriptions", "ID")
#: How to know all of a type, by whether it is one of `LISTED`.
_REMEDIES = (
    "add what `az rest` lists of them, or state in `covers` that there are no others",
    "add what `policyeng snapshot collect` or `az rest` gives",
)
_SCOPE = lazy_pattern(r"/(?:subscriptions/[^/]+(?:/resourceGroups/[^/]+)?)?", re.IGNORECASE)


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
        return Unknown(msg=f"not all {self.kind} could be read: {self.reason}", path=f"{self.scope}:")

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


def bounded_in(lines: Iterable[str]) -> list[str]:
    """The entries of lists of which lines of `incomplete` say that no more was asked for: what was counts as all."""
    return [f"{one['kind']} at {one['scope']}" for one in filter(None, map(_said, lines)) if one["asked"]]


class Coverage:
    """Which lists of resources were read, asked by type and place.

    Attributes:
        has_holes: not all lists were.
        kinds: the types that may have been read in part, in lower case.
        lacks: by a lower-case type and an id, or the empty text for anywhere: why there may be others at and below it.
    """

    def __init__(
        self,
        covers: Collection[str] | None,
        by_scope: Mapping[str, Collection[str]],
        gaps: Iterable[Gap],
        named: frozenset[str] = frozenset(),
    ) -> None:
        """Take what a snapshot covers, and which types policies ask for.

        Args:
            covers: as in `Snapshot`.
            by_scope: by scope, the lower-case types of the resources there. A list without a place is that of all
                subscriptions with workspaces, if there are any: in others lies what these name.
            gaps: lists that could not be read.
            named: lower-case types, and namespaces, outside `LISTED`. Where the snapshot has all of `LISTED`, no other
                type counts as not read: nothing asks for it.
        """
        self._named = named if is_whole(covers) else None
        self._covered: dict[str, set[tuple[str, ...]]] = {}
        for covered in filter(None, map(parse_entry, covers or ())):
            self._covered.setdefault(lowered(covered.kind), set()).add(segments(covered.scope) or ())
        subscriptions = [one for one in by_scope if len(segments(one) or ()) == len(_SUBSCRIPTION)]
        self._subscriptions = (
            [one for one in subscriptions if WORKSPACE_TYPE in by_scope[one]] or subscriptions or ["/"]
        )
        by_kind: dict[str, list[Gap]] = {}
        for gap in gaps:
            by_kind.setdefault(lowered(gap.kind), []).append(gap)
        self._gaps = {kind: Gaps(several) for kind, several in by_kind.items()}
        further = sorted({*self._gaps, *(self._named or ())} - SPELLED.keys())
        self.kinds = (*SPELLED, *further)
        self.lacks = cache(self._lacks)
        self.has_holes = self._named is None or bool(self._gaps) or any(self.lacks(kind, "") for kind in self._named)

    @property
    def anywhere(self) -> Cause:
        """Why a loop over an index is not decided."""
        return (f"{self._subscriptions[0]}:", "the inputs do not list all resources")

    def _lacks(self, kind: str, scope: str) -> tuple[Cause, ...]:
        if kind in self._gaps:
            found = islice(self._gaps[kind].near(scope) if scope else self._gaps[kind], _MOST)
            if causes := tuple((gap.unknown.path, gap.unknown.msg) for gap in found):
                return causes
        if kind == "workload":
            return next(filter(None, (self.lacks(source, scope) for source in DERIVED_FROM)), ())
        if self._named is not None and self._named.isdisjoint((kind, kind.partition("/")[0])):
            return ()
        for asked in [scope] if scope else self._subscriptions:
            if not self._is_covered(kind, asked):
                place = next(reversed(scopes_of(asked)), "/")
                message = f"the inputs do not list all {SPELLED.get(kind, kind)}; {_REMEDIES[kind in SPELLED]}"
                return ((f"{place}:", message),)
        return ()

    def _is_covered(self, kind: str, asked: str) -> bool:
        parts, places = segments(asked), self._covered.get(kind, ())
        return parts is not None and any(parts[:depth] in places for depth in range(len(parts) + 1 if places else 0))
