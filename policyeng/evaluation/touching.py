"""Whether what a policy looks at differs between two states: the policy is taken at its word on what that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Consulted
from policyeng.bundle.reaching import Reach
from policyeng.evaluation.affected import ALL, consults_of, workspace_reads_of
from policyeng.evaluation.changing import Changed
from policyeng.evaluation.consulted import name_below, scope_of
from policyeng.evaluation.differences import Difference
from policyeng.evaluation.estate import Subject
from policyeng.evaluation.readings import met, named_by, names_of
from policyeng.evaluation.rows import Row
from policyeng.evaluation.selectors import selector_of
from policyeng.facts.ids import covers, folded_id, workspace_of
from policyeng.models import Finding, JsonObject, lowered

#: What is no resource, so that no reference leads to it.
_STATED = ("workload", "approval", "document")


class Index:
    """The subjects of a state by the names that findings and references have for them."""

    def __init__(self, subjects: Iterable[Subject]) -> None:
        self._reported: dict[tuple[str, str], list[Subject]] = {}
        self._named: dict[str, list[Subject]] = {}
        self._inside: dict[str, list[Subject]] = {}
        for subject in subjects:
            reported = subject.reported_type, folded_id(subject.reported_id)
            self._reported.setdefault(reported, []).append(subject)
            if subject.judged_type not in _STATED and not subject.is_gap:
                self._named.setdefault(name_below(subject.reported_id), []).append(subject)
            if home := _workspace_key(subject):
                self._inside.setdefault(home, []).append(subject)

    def reported(self, finding: Finding) -> Sequence[Subject]:
        """Return what a finding is about: two where a workload has the id of the resource that it comes from."""
        return self._reported.get((finding.resource_type, folded_id(finding.resource)), ())

    def named(self, name: str) -> Sequence[Subject]:
        """Return the resources of a name, as `name_below` gives it."""
        return self._named.get(name, ())

    def inside(self, workspace: str) -> Sequence[Subject]:
        """Return what lies in a workspace, by its lower-case id."""
        return self._inside.get(workspace, ())


class ChangedIndex(Index):
    """The index of a state after changes; that of the state before them is shared."""

    def __init__(self, index: Index, rows: Iterable[Row]) -> None:
        rows = list(rows)
        super().__init__(row.after for row in rows if row.after is not None)
        self._index, self._gone = index, {id(row.before) for row in rows if row.before is not None}

    def reported(self, finding: Finding) -> Sequence[Subject]:
        """See `Index`."""
        return self._with(super().reported(finding), self._index.reported(finding))

    def named(self, name: str) -> Sequence[Subject]:
        """See `Index`."""
        return self._with(super().named(name), self._index.named(name))

    def inside(self, workspace: str) -> Sequence[Subject]:
        """See `Index`."""
        return self._with(super().inside(workspace), self._index.inside(workspace))

    def _with(self, fresh: Sequence[Subject], before: Sequence[Subject]) -> Sequence[Subject]:
        return [*(subject for subject in before if id(subject) not in self._gone), *fresh]


class Touching:
    """The differences between two states, to ask which policies look at them."""

    def __init__(self, bundle: Bundle, parameters: Sequence[JsonObject], rows: Sequence[Row], earlier: Index) -> None:
        """Take two states.

        Args:
            bundle: the policies.
            parameters: one object for each of them.
            rows: the subjects that may differ.
            earlier: the index of the earlier state.
        """
        self._bundle, self._parameters, self._earlier = bundle, parameters, earlier
        self._differences = [Difference(row) for row in rows]
        self._numbers = {policy.id: number for number, policy in enumerate(bundle.policies)}

    def touches(self, finding: Finding) -> bool:
        """Return whether what the policy of a finding looks at differs, or may.

        Args:
            finding: of the earlier state.
        """
        if not self._differences:
            return False
        number = self._numbers[finding.policy]
        policy, reach = self._bundle.policies[number], self._bundle.reaches[number]
        subjects = self._earlier.reported(finding)
        if not subjects:
            return True
        return any(self._touches(policy, reach, self._parameters[number], subject) for subject in subjects)

    def _touches(self, policy: Policy, reach: Reach, parameters: JsonObject, subject: Subject) -> bool:
        consults = consults_of(policy, reach)
        if consults is None:
            return True
        home = _workspace_key(subject)
        own = _own_reads(policy, subject)
        in_workspace = workspace_reads_of(policy, reach)
        for difference in self._differences:
            if difference.row.before is subject and difference.at(own):
                return True
            if home and difference.row.key == home and _is_resource(difference) and difference.at(in_workspace):
                return True
        return any(
            self._is_consulted(entry, subject, home)
            for entry in consults
            if lowered(entry.judging) in ("", subject.judged_type)
            and (not entry.parameter or parameters.get(entry.parameter))
        )

    def _is_consulted(self, entry: Consulted, subject: Subject, home: str) -> bool:
        """Return whether something differs that an entry of `consults` leads to from a subject."""
        steps = entry.through[1:]
        workspace = next(iter(self._earlier.named(name_below(home))), None) if home else None
        names, way = names_of(entry, subject, workspace, self._earlier.named)
        for difference in self._differences:
            if steps and difference.at(steps) and (names is None or not way.isdisjoint(_names(difference))):
                return True
            for one in met(entry, difference, self._earlier.inside(difference.row.key)):
                if _is_read(entry, subject, names, one):
                    return True
        return False


def _is_read(entry: Consulted, subject: Subject, names: set[str] | None, one: Subject) -> bool:
    """Return whether a subject leads to a resource that an entry is about; `names` are those of `names_of`."""
    if entry.through or entry.naming:
        named, anything = named_by(one, entry.naming)
        return names is None or anything or not names.isdisjoint(named)
    return not entry.within or covers(scope_of(subject, entry), one.home) is not False


def _own_reads(policy: Policy, subject: Subject) -> tuple[str, ...]:
    """Return the pointers at which a policy reads what it judges; all of it where it declares nothing."""
    header = policy.header
    if not header.inspects:
        return (ALL,)
    through = (entry.through[0] for entry in header.consults if entry.through and entry.through[0].startswith("/"))
    return (*selector_of(header).reads.get(subject.judged_type, ()), *through)


def _workspace_key(subject: Subject) -> str:
    """Return the lower-case id of the workspace that a subject lies in; of a workspace its own."""
    if subject.judged_type == "workload":
        return lowered(subject.document.get("workspaceId") or "")
    return "" if subject.judged_type in _STATED else workspace_of(lowered(subject.reported_id)) or ""


def _is_resource(difference: Difference) -> bool:
    side = difference.row.before or difference.row.after
    return side is not None and side.judged_type not in _STATED


def _names(difference: Difference) -> Iterator[str]:
    return (name_below(side.reported_id) for side in (difference.row.before, difference.row.after) if side is not None)


def rows_between(earlier: Changed | None, later: Changed | None) -> Iterator[Row]:
    """Return the subjects that may differ between two states that changes have made of one; None is that one."""
    for name in ("resources", "workloads"):
        known: dict[str, Row] = {row.key: row for row in (getattr(earlier, name) if earlier else ())}
        for row in getattr(later, name) if later else ():
            before = known.pop(row.key).after if row.key in known else row.before
            yield from _row(row.key, before, row.after)
        for row in known.values():
            yield from _row(row.key, row.after, row.before)


def rows_of(earlier: Sequence[Subject], later: Sequence[Subject]) -> Iterator[Row]:
    """Return the subjects that may differ between two states, found by comparing all of them."""
    were, are = _by_key(earlier), _by_key(later)
    for key in {**were, **are}:
        for before, after in zip_longest(were.get(key, ()), are.get(key, ())):
            yield from _row(key[1], before, after)


def _row(key: str, before: Subject | None, after: Subject | None) -> Iterator[Row]:
    """Return one row, which has no position; none where nothing can differ."""
    if before is not after and not (before and after and _is_same(before, after)):
        yield Row(-1, key, before, after)


def _is_same(before: Subject, after: Subject) -> bool:
    is_read_alike = (before.unreadable, before.carried) == (after.unreadable, after.carried)
    # As JSON: in Python 1 equals true.
    return is_read_alike and _json(before) == _json(after)


def _json(subject: Subject) -> bytes:
    return orjson.dumps(subject.document, option=orjson.OPT_SORT_KEYS)


def _by_key(subjects: Sequence[Subject]) -> Mapping[tuple[bool, str], Sequence[Subject]]:
    found: dict[tuple[bool, str], list[Subject]] = {}
    for subject in subjects:
        key = subject.judged_type in _STATED, lowered(subject.reported_id)
        found.setdefault(key, []).append(subject)
    return found
