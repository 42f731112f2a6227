"""Law 3: a finding depends only on what its evaluation is observed to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from policyeng.evaluation import EvaluationContext
from policyeng.evaluation.matching import selectors_of
from policyeng.evaluation.pointers import has_value
from policyeng.evaluation.tracing import Differences, rows_of, touched_pairs
from policyeng.models import Finding, JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import (
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    place_of,
    places,
    put_value,
    remove,
)
from policyeng.verify.laws.field_perturbation import get_value, list_read_pointers
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, format_finding

#: The suffix of the id of a copied resource.
_COPY = "-copy"
#: How many resources are changed at once, drawn at random.
_AT_ONCE = (1, 1, 2, 4, 8)
_UNREAD = "the finding changes although nothing that the policy was observed to read changes"


class _Change(NamedTuple):
    """A resource that is added, deleted (`becomes` is None) or changed at one JSON Pointer."""

    key: str
    was: JsonObject | None
    becomes: JsonObject | None
    pointer: str = ""

    @property
    def description(self) -> str:
        """The change in one line."""
        if self.was is None:
            return f"added: {self.key}"
        return f"changed: {self.key}:{self.pointer}" if self.becomes is not None else f"deleted: {self.key}"


def _find_violations(trial: Trial) -> Violation | None:
    changes = _draw(trial.random("observed"), trial)
    if not changes:
        return None
    before, after = trial.prepared, trial.ready(_with(trial.snapshot, changes))
    rows = list(rows_of(before.estate.subjects, after.estate.subjects))
    wanted: dict[int, list[int]] = {}
    for entry in before.planned:
        wanted.setdefault(entry.pair.policy, []).append(entry.pair.subject)
    touched = touched_pairs(before, trial.example.as_of, wanted, Differences(rows, before.estate.view))
    # Whether a policy selects a changed resource is decided before it reads anything.
    changed = {lowered(side.reported_id) for row in rows for side in (row.before, row.after) if side is not None}
    skipped = {_key(before, *numbers) for numbers, is_touched in touched.items() if is_touched}
    found, again = by_pair(trial.evaluation), by_pair(trial.said(after))
    for pair in sorted({*found, *again} - skipped):
        one, other = found.get(pair), again.get(pair)
        is_own = pair[2] in changed and (one is None or other is None or _is_narrowed(trial, pair[0]))
        if not is_own and _outcome(one) != _outcome(other):
            shown = one or other
            lines = (
                *(change.description for change in changes),
                f"before: {format_finding(one)}",
                f"after:  {format_finding(other)}",
            )
            return Violation(_UNREAD, pair[0], shown.resource if shown else pair[2], lines)
    return None


LAW = Law(
    number=3,
    name="observed",
    sentence="a finding depends on nothing that the evaluation was not observed to read",
    reference="non-interference, as a metamorphic relation: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_violations,
)


def _key(prepared: EvaluationContext, number: int, at: int) -> tuple[str, str, str]:
    subject = prepared.estate.subjects[at]
    return prepared.bundle.policies[number].id, lowered(subject.reported_type), lowered(subject.reported_id)


def _is_narrowed(trial: Trial, identity: str) -> bool:
    """Check whether a policy selects only some of the resources of a type."""
    policy = next(policy for policy in trial.bundle.policies if policy.id == identity)
    return any(one.where for one in selectors_of(policy.header))


def _outcome(finding: Finding | None) -> object:
    return finding and (finding.outcome, finding.denials, finding.unknowns)


def _draw(random: Random, trial: Trial) -> list[_Change]:
    """Draw resources to delete, to change at one place, or to add."""
    known = {lowered(resource["id"]): resource for resource in trial.snapshot.resources if _is_named(resource)}
    changes: list[_Change] = []
    for key in random.sample(sorted(known), min(random.choice(_AT_ONCE), len(known))):
        kind, resource = random.randrange(4), known[key]
        copy = {**resource, "id": f"{resource['id']}{_COPY}"}
        if kind == 0:
            changes.append(_Change(key, resource, None))
        elif kind == 1 and lowered(copy["id"]) not in known:
            changes.append(_Change(lowered(copy["id"]), None, copy))
        else:
            changes += _edit(random, key, resource, list_read_pointers(trial.grounds))
    return changes


def _is_named(resource: JsonObject) -> bool:
    return all(isinstance(resource.get(name), str) and resource[name] for name in ("id", "type"))


def _edit(random: Random, key: str, resource: JsonObject, pointers: Sequence[str]) -> Iterator[_Change]:
    """Yield a change that replaces or removes the value at one place, often one that policies read."""
    document = copied_object(resource)
    stated = [pointer for pointer in pointers if has_value(document, pointer) and pointer not in ("/id", "/type")]
    open_places = [place for place in places(document) if place[0] not in ("id", "type")]
    if not open_places:
        return
    is_directed = bool(stated) and draw_boolean(random, 0.5)
    place = place_of(random, document, random.choice(stated)) if is_directed else random.choice(open_places)
    stands, value = get_value(document, place)
    if draw_boolean(random, 0.4):
        remove(document, place)
    elif stands and draw_boolean(random, 0.5):
        put_value(document, place, altered(random, copied(value)))
    else:
        put_value(document, place, draw_odd_value(random))
    yield _Change(key, resource, document, "".join(f"/{escaped(step)}" for step in place))


def _with(snapshot: Snapshot, changes: Iterable[_Change]) -> Snapshot:
    by_key = {change.key: change.becomes for change in changes if change.was is not None}
    remaining = [
        by_key.get(lowered(resource["id"]), resource) if _is_named(resource) else resource
        for resource in snapshot.resources
    ]
    added = [change.becomes for change in changes if change.was is None]
    resources = tuple(resource for resource in (*remaining, *added) if resource is not None)
    return snapshot.model_copy(update={"resources": resources})
