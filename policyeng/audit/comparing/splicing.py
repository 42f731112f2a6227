"""A snapshot that was made ready once, with some of its resources as they are elsewhere: what stays is shared.

Making thousands of resources ready takes seconds, and the search for causes asks for many states that differ in one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace

import orjson

from policyeng.audit.comparing.items import Entry, Item
from policyeng.bundle.spellings import Spellings
from policyeng.evaluation import EvaluationContext
from policyeng.evaluation.changing import ChangingSnapshot
from policyeng.evaluation.estate import Becomes, Notes, Resource
from policyeng.evaluation.narrowing import Taking
from policyeng.evaluation.plan import Planned, plan
from policyeng.evaluation.selectors import selectors_of
from policyeng.facts.ids import folded_id
from policyeng.models import lowered
from policyeng.sources.spelling import as_arm_reads

#: What is asked about: the id of a policy, the lower-case type and the folded id of what it judges.
Asked = Collection[tuple[str, str, str]]
#: What stands under an item, or nothing.
Entries = tuple[Entry, ...]


class Splicing:
    """One snapshot that was made ready, of which resources change; only what is asked about is judged."""

    def __init__(self, prepared: EvaluationContext, asked: Asked) -> None:
        """Take what was made ready with all of its pairs; `fits` says whether it can be spliced."""
        self._snapshot = ChangingSnapshot(prepared)
        self._spellings = prepared.bundle.spellings
        numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._policies: dict[tuple[str, str], list[int]] = {}
        for policy, kind, identity in asked:
            if policy in numbers:
                self._policies.setdefault((kind, identity), []).append(numbers[policy])
        subjects = prepared.estate.subjects
        self._positions = {at for at, subject in enumerate(subjects) if _key(subject) in self._policies}

    @staticmethod
    def fits(prepared: EvaluationContext) -> bool:
        """Return whether a snapshot can be spliced: it has no error, each id once, and no documents are evaluated."""
        snapshot, estate = prepared.snapshot, prepared.estate
        if any(problem.level == "error" for problem in estate.problems):
            return False
        if snapshot.documents or estate.gaps or any(one.input_form != "policy" for one in prepared.bundle.policies):
            return False
        view = estate.view
        held = {folded_id(str(resource.get("id"))) for resource in snapshot.resources}
        others = [folded_id(one.reported_id) for one in estate.subjects[len(view.resources) :]]
        workloads = others[: len(view.workloads)]
        whole = len(snapshot.resources) == len(view.resources) == len(held)
        return whole and len({*workloads}) == len(workloads) and held.isdisjoint(others[len(view.workloads) :])

    @contextmanager
    def after(self, changes: Mapping[Item, Entries]) -> Iterator[EvaluationContext | None]:
        """Have the snapshot with these resources, ready to be judged; None where one of them cannot be judged."""
        becomes: dict[str, Becomes] = {}
        for item, entries in changes.items():
            made = _becomes(entries, self._spellings)
            if made is None:
                yield None
                return
            becomes[item.key] = made
        rows = self._snapshot.rows(becomes)
        with self._snapshot.changed(rows, self._snapshot.differences(rows)) as context:
            yield replace(context, planned=tuple(self._planned(context, {row.position for row in rows.all})))

    def _planned(self, context: EvaluationContext, changed: Set[int]) -> Iterator[Planned]:
        """The pairs that are asked about, of subjects that stay and of those that changed."""
        wanted = dict[int, set[int]]()
        for at in self._positions | changed:
            subject = context.estate.subjects[at]
            numbers = self._policies.get(_key(subject), ())
            taking = Taking(subject)
            for number in numbers:
                judges = selectors_of(context.bundle.policies[number].header)
                if any(one.kind == subject.judged_type and taking.takes(one) for one in judges):
                    wanted.setdefault(number, set()).add(at)
        return plan(context.bundle, context.estate, wanted)


def _key(subject: Resource) -> tuple[str, str]:
    return lowered(subject.reported_type), folded_id(subject.reported_id)


def _becomes(entries: Entries, spellings: Spellings) -> Becomes | None:
    if not entries:
        return Becomes(None)
    if len(entries) > 1:
        return None
    (entry,) = entries
    named = all(isinstance(entry.document.get(name), str) and entry.document[name] for name in ("id", "type"))
    try:
        orjson.dumps(entry.document)
    except TypeError:  # a number that JSON has no room for
        return None
    if not named:
        return None
    spelled = as_arm_reads(entry.document, entry.document["type"], spellings)
    if spelled.twice or spelled.part is not entry.document:  # what is made ready notes the places of such members
        return None
    return Becomes(entry.document, Notes(entry.unreadable, entry.carried))
