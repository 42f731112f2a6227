"""Find the lists of resources that a snapshot contains completely, and those that it does not.

An entry `TYPE at ID` of `covers` states that all resources of the type at and below the id were read. A native
snapshot without `covers` has all resources of the types in `facts.coverage.LISTED`. Lines of `incomplete` in the
following forms, which collectors write, override it:

* `TYPE at ID: reason`: not all resources of the type at and below the id could be read, so more resources can exist.
  Policies that evaluate the type are unknown for that scope. Policies that consult it, or that can read anything, are
  unknown where a missing resource could change the result.
* `metrics at ID: reason` and `quotas at ID: reason`: the same for policies whose text names these.
* `TYPE at ID, as asked: reason`: not all resources were requested. Those that were requested are evaluated.

Policies do not see lines of these forms, because they would treat each as relevant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from policyeng.facts.coverage import FURTHER, NOUNS, SPELLED, is_whole, match_line, parse_entry
from policyeng.facts.ids import covers, extended_by, fold_id, is_open, scopes_of, segments
from policyeng.models import WORKSPACE_TYPE, Unknown, lowered
from policyeng.rego.markers import Cause
from policyeng.workloads.derive import DERIVED_FROM

#: The largest number of gaps that one unknown reports.
_MOST = 5
#: The most results of each kind that an index keeps; ids come from requests.
_MOST_CACHED = 1 << 16
_SUBSCRIPTION = ("subscriptions", "ID")
#: Lower-case types whose resources ARM also returns inside the resource above them: without a list, none is missing.
_INCLUDED = frozenset({f"{WORKSPACE_TYPE}/privateendpointconnections"})


class Gap(NamedTuple):
    """An incomplete list of the resources of a type at and below a scope.

    The type can also be `metrics` or `quotas`, which a snapshot contains in addition to resources.
    """

    kind: str
    scope: str
    reason: str

    @property
    def is_stated(self) -> bool:
        """Whether the list is not of resources, but of `metrics` or `quotas`."""
        return "/" not in self.kind and self.kind != "workload"

    @property
    def unknown(self) -> Unknown:
        """The unknown for a policy that needs the list."""
        return Unknown(msg=f"not all {self.kind} could be read: {self.reason}", path=f"{self.scope}:")

    def meets(self, scope: str) -> bool:
        """Check whether the scope of the gap can contain another scope or be part of it."""
        return covers(scope, self.scope) is not False or covers(self.scope, scope) is not False


class Gaps:
    """An index of gaps by scope, for snapshots with gaps in thousands of workspaces."""

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
        """Yield all gaps."""
        yield from (gap for gaps in self._at.values() for gap in gaps)
        yield from self._loose

    def near(self, scope: str) -> Iterator[Gap]:
        """Yield the gaps that meet a scope."""
        parts = _place(scope)
        if parts is None:
            yield from (gap for gaps in self._at.values() for gap in gaps if gap.meets(scope))
        else:
            for depth in range(len(parts) + 1):
                yield from self._at.get(parts[:depth], ())
            yield from self._below.get(parts, ())
        yield from (gap for gap in self._loose if gap.meets(scope))

    def on(self, arm_id: str) -> Iterator[Gap]:
        """Yield the gaps of an extension type that exactly a resource or scope can be extended by."""
        parts = _place(arm_id)
        if parts is None:
            yield from (gap for gaps in self._at.values() for gap in gaps if covers(gap.scope, arm_id) is not False)
        else:
            for depth in range(len(parts) + 1):
                yield from self._at.get(parts[:depth], ())
            yield from (gap for gap in self._below.get(parts, ()) if extended_by(gap.scope) == (fold_id(arm_id) or "/"))
        yield from (gap for gap in self._loose if gap.meets(arm_id))


def _causes(gaps: Iterable[Gap]) -> tuple[Cause, ...]:
    """Return the causes that the first of some gaps are."""
    return tuple((gap.unknown.path, gap.unknown.msg) for gap in islice(gaps, _MOST))


def _place(scope: str) -> tuple[str, ...] | None:
    """Return the segments of an id if they alone determine the scopes that contain it; None otherwise."""
    parts = segments(scope)
    return parts if parts is not None and parts[:1] in ((), ("subscriptions",)) and not is_open(scope) else None


def gaps_in(lines: Iterable[str]) -> tuple[Gap, ...]:
    """Return the gaps that lines of `incomplete` state, sorted, with each type and scope once.

    An incomplete list of jobs or deployments also makes the list of workloads incomplete.
    """
    found: dict[tuple[str, str], Gap] = {}
    for match in filter(None, map(match_line, sorted(lines))):
        if not match["asked"]:
            for kind in (match["kind"], *(["workload"] if lowered(match["kind"]) in DERIVED_FROM else [])):
                gap = Gap(kind, match["scope"], match["reason"])
                found.setdefault((lowered(kind), lowered(gap.scope)), gap)
    return tuple(sorted(found.values()))


def list_untyped_gaps(lines: Iterable[str]) -> list[str]:
    """Return the lines that policies see, which are not in the form of a gap."""
    return [line for line in lines if match_line(line) is None]


def list_bounded(lines: Iterable[str]) -> list[str]:
    """Return the entries of `covers` for lists that were limited on request, which count as complete."""
    return [f"{one['kind']} at {one['scope']}" for one in filter(None, map(match_line, lines)) if one["asked"]]


class Homes(NamedTuple):
    """The subscriptions that a list for any scope must cover.

    Attributes:
        subscriptions: those with workspaces, or all if there are no workspaces; others contain only resources to which
            workspaces refer. `/` if there are no subscriptions.
        has_others: whether there are resources in no subscription.
        is_open: whether it is not stated in which scope some resources are.
    """

    subscriptions: tuple[str, ...]
    has_others: bool
    is_open: bool

    @classmethod
    def of(cls, by_scope: Mapping[str, Collection[str]]) -> Homes:
        """Return them from the lower-case types of the resources in each scope."""
        subscriptions = [one for one in by_scope if len(segments(one) or ()) == len(_SUBSCRIPTION)]
        homes = [one for one in subscriptions if WORKSPACE_TYPE in by_scope[one]] or subscriptions or ["/"]
        return cls(tuple(homes), bool(by_scope.get("/")), any(map(is_open, by_scope)))


def unplaced(arm_id: str) -> tuple[Cause, ...]:
    """Return why it is not known what is at an id that has open parts."""
    return ((f"{arm_id}:", "the resource group of the deployment is not stated; give it with `--scope`"),)


class Coverage:
    """An index of the lists of resources that were read, by type and scope.

    Attributes:
        has_holes: whether a list is missing or incomplete.
        is_open: whether it is not stated in which scope some resources are.
        kinds: the lower-case types whose lists can be incomplete.
        lacks: a function of a lower-case type and an id (or the empty string for any scope) that returns why resources
            of the type at and below the id can be missing.
        lacks_on: the same of extension resources of the type on exactly an id.
        lacks_above: the same of resources of the type in no subscription, as a function of the type alone.
    """

    def __init__(
        self,
        covers: tuple[str, ...] | None,
        homes: Homes,
        gaps: Iterable[Gap],
        named: frozenset[str] = frozenset(),
    ) -> None:
        """Build the index.

        Args:
            covers: as in `Snapshot`.
            homes: what a list for any scope must cover.
            gaps: the incomplete lists.
            named: lower-case types and namespaces outside `LISTED` that policies read. If the snapshot has all of
                `LISTED`, other types count as read, because no policy reads them.
        """
        self._named = named if is_whole(covers) else None
        self._covered = _list_places(covers or ())
        self._subscriptions = homes.subscriptions
        by_kind: dict[str, list[Gap]] = {}
        for gap in gaps:
            by_kind.setdefault(lowered(gap.kind), []).append(gap)
        self._gaps = {kind: Gaps(several) for kind, several in by_kind.items()}
        further = sorted({*self._gaps, *(self._named or ())} - SPELLED.keys())
        self.kinds = (*SPELLED, *further)
        self.lacks = lru_cache(_MOST_CACHED)(self._lacks)
        self.lacks_on = lru_cache(_MOST_CACHED)(self._lacks_on)
        self.lacks_above = lru_cache(_MOST_CACHED)(self._lacks_above)
        # Resources outside subscriptions can be extended by others, which the lists of subscriptions do not have.
        scopes = ("", "/") if homes.has_others else ("",)
        self.is_open = homes.is_open
        self.has_holes = (
            self._named is None
            or bool(self._gaps)
            or any(self.lacks(kind, scope) for kind in self._named for scope in scopes)
        )

    @property
    def anywhere(self) -> Cause:
        """The cause if a loop over an index is undecided."""
        return (f"{self._subscriptions[0]}:", "not all resources were collected")

    def _lacks(self, kind: str, scope: str) -> tuple[Cause, ...]:
        gaps = self._gaps.get(kind)
        causes = _causes(gaps.near(scope) if scope else gaps) if gaps else ()
        return causes or self._uncovered(kind, scope)

    def _lacks_on(self, arm_id: str, kind: str) -> tuple[Cause, ...]:
        """Return why extension resources of a type on exactly an id can be missing.

        A list at or above it has them; one for a compute says nothing of its workspace. If it is not stated to which
        resource group or subscription something is deployed, extension resources may be there.
        """
        if is_open(arm_id):
            return unplaced(arm_id)
        causes = _causes(self._gaps[kind].on(arm_id)) if kind in self._gaps else ()
        return causes or self._uncovered(kind, arm_id)

    def _lacks_above(self, kind: str) -> tuple[Cause, ...]:
        """Return why resources in no subscription can be missing.

        The lists of a subscription have the resources above it that affect it, so they decide. Those of a resource
        group do not, as the lists of its subscription have these resources, too.
        """
        causes = _causes(gap for gap in self._gaps.get(kind, ()) if self._is_above(gap.scope))
        return causes or self._uncovered(kind, "")

    def _is_above(self, scope: str) -> bool:
        """Check whether a list at a scope can have resources that are in no subscription and affect a workspace."""
        return (segments(scope) or ())[:1] != ("subscriptions",) or any(
            one == "/" or covers(scope, one) is not False for one in self._subscriptions
        )

    def _uncovered(self, kind: str, scope: str) -> tuple[Cause, ...]:
        """Return why the list of a type was not read, apart from gaps."""
        if kind == "workload":
            return next(filter(None, (self.lacks(source, scope) for source in DERIVED_FROM)), ())
        if kind in _INCLUDED:
            return ()
        if self._named is not None and self._named.isdisjoint((kind, kind.partition("/")[0])):
            return ()
        for required in [scope] if scope else self._subscriptions:
            if not self._is_covered(kind, required):
                place = next(reversed(scopes_of(required)), "/")
                return ((f"{place}:", _describe_unread(kind)),)
        return ()

    def _is_covered(self, kind: str, scope: str) -> bool:
        parts, places = segments(scope), self._covered.get(kind, ())
        return parts is not None and any(parts[:depth] in places for depth in range(len(parts) + 1 if places else 0))


#: Changes of a snapshot rarely change what is covered: one index for each group of policies serves all of them.
coverage_of = lru_cache(maxsize=128)(Coverage)


@lru_cache(maxsize=16)
def _list_places(covers: tuple[str, ...]) -> dict[str, set[tuple[str, ...]]]:
    """Return the segments of the ids that entries cover, by lower-case type."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for covered in filter(None, map(parse_entry, covers)):
        found.setdefault(lowered(covered.kind), set()).add(segments(covered.scope) or ())
    return found


@cache
def _describe_unread(kind: str) -> str:
    """Return the reason for an unknown that the list of a lower-case type causes, with the remedy."""
    if kind in SPELLED:
        noun, remedy = NOUNS[SPELLED[kind]], "add what `policyeng snapshot collect` or `az rest` gives"
    else:
        noun, command = FURTHER.get(kind, (f"resources of type {kind}", ""))
        remedy = f"add `{command or 'az rest'}`, or state in `covers` that there are no others"
    return f"not all {noun} were collected; {remedy}"
