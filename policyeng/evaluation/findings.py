"""Turn the results of engines into sorted findings, with secrets masked and with source locations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from msgspec.structs import replace

from policyeng._performance import IdentityKey
from policyeng.bundle import Policy
from policyeng.bundle.header import WORKSPACE
from policyeng.engines import Column, Judgement
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot
from policyeng.later import lazy_pattern
from policyeng.models import (
    Denial,
    FilePlaces,
    Finding,
    FindingColumn,
    Findings,
    JsonObject,
    Origin,
    Outcome,
    Place,
    Resource,
    Snapshot,
    SubjectRef,
    Unknown,
    lowered,
)
from policyeng.ownership import owner_in_tags
from policyeng.redaction import masked, masked_message
from policyeng.rego.markers import Undecided


class SubjectOwners:
    """The owners of the subjects of a snapshot, each looked up when a finding needs it."""

    def __init__(self, estate: PreparedSnapshot) -> None:
        self._subjects = estate.subjects
        self._by_id = estate.view.by_id
        self._above: dict[str, str] = {}

    def owner(self, subject: Resource) -> str:
        """Return the owner in the tags of a subject or of the nearest resource above it; empty without one.

        A workload without a tag belongs to the owner of its workspace. Empty, too, if tags are unknown.
        """
        try:
            return self._find(subject)
        except Undecided:
            return ""

    def _find(self, subject: Resource) -> str:
        document = subject.document
        if isinstance(document, dict) and (own := owner_in_tags(document.get("tags"))):
            return own
        if subject.reported_id.startswith("/"):
            return self._at(lowered(subject.reported_id).rpartition("/")[0])
        workspace = subject.workspace
        return self._at(lowered(self._subjects[workspace].reported_id)) if workspace >= 0 else ""

    def _at(self, key: str) -> str:
        """Return the owner of the resource with a lower-case id, or of the nearest one above it."""
        known = self._above.get(key)
        if known is None:
            resource = self._by_id.get(key)
            known = owner_in_tags(resource.get("tags")) if resource is not None else ""
            self._above[key] = known = known or (self._at(key.rpartition("/")[0]) if key else "")
        return known


#: Ends the path of a finding about a complete scope; the scope's id comes before it.
WHOLE = ":"
#: Between the id of another resource and the JSON Pointer into it.
NEIGHBOUR = ":/"


def with_places(findings: Sequence[tuple[Finding, int]], estate: PreparedSnapshot, snapshot: Snapshot) -> list[Finding]:
    """Return findings with the source locations of their denials and unknowns.

    Args:
        findings: findings, each with the position of its subject.
        estate: the subjects.
        snapshot: the origins of resources, and the texts of files.
    """
    if not snapshot.texts:
        return [finding for finding, _ in findings]
    wanted: dict[str, dict[str, Place | None]] = {}
    fields_of: dict[int, list[tuple[str, Origin, str, str]]] = {}
    for number, (finding, position) in enumerate(findings):
        fields = fields_of[number] = list(_fields(finding, estate.subjects[position], estate.subjects, snapshot))
        for _, origin, _, pointer in fields:
            wanted.setdefault(origin.file, {})[pointer] = None
    for file, pointers in wanted.items():
        text: FilePlaces = snapshot.texts[file]
        shown = masked_message(file)
        places = text.places(list(pointers))
        for pointer, (line, column) in zip(pointers, places, strict=True):
            pointers[pointer] = Place(file=shown, line=line, column=column)
    placed = [finding for finding, _ in findings]
    for number, fields in fields_of.items():
        found = ((path, wanted[origin.file][pointer], origin.name_of(inner)) for path, origin, inner, pointer in fields)
        placed[number] = _add_fields(
            placed[number],
            {path: replace(place, address=name) if name else place for path, place, name in found if place},
        )
    return placed


def _add_fields(finding: Finding, fields: dict[str, Place]) -> Finding:
    if not fields:
        return finding
    at = finding.location
    return finding.model_copy(update={"location": replace(at, fields=fields)})


def _fields(
    finding: Finding, subject: Resource, subjects: Sequence[Resource], snapshot: Snapshot
) -> Iterator[tuple[str, Origin, str, str]]:
    """Yield each path in a finding, the origin of its resource, the pointer into that, and the pointer in the file."""
    for path in dict.fromkeys(reason.path for reason in (*finding.denials, *finding.unknowns)):
        holder, inner = find_holder(path, subject, subjects)
        origin = snapshot.origins.get(lowered(holder))
        if origin is not None and inner.startswith("/") and origin.file in snapshot.texts:
            yield path, origin, inner, origin.pointer_to(inner)


def find_holder(path: str, subject: Resource, subjects: Sequence[Resource]) -> tuple[str, str]:
    """Return the id of the resource to which a path in a finding refers, and the pointer into that resource."""
    if path.startswith(WORKSPACE) and subject.workspace >= 0:
        return subjects[subject.workspace].reported_id, path.removeprefix(WORKSPACE)
    if NEIGHBOUR in path:
        holder, _, pointer = path.partition(NEIGHBOUR)
        return holder, f"/{pointer}"
    if path.endswith(WHOLE):
        return path.removesuffix(WHOLE), ""
    return subject.reported_id, path


#: The end of a sentence: its mark, a closing quote or parenthesis, and the space before the next sentence.
_SENTENCE_END = lazy_pattern(r"[.!?][\"')]?\s+(?=[\"'`(]?[A-Z])")


def findings_of(prepared: EvaluationContext, columns: Iterable[Column]) -> Findings:
    """Return the sorted findings of all planned pairs.

    Args:
        prepared: the planned pairs.
        columns: the results of the pairs that are not decided yet.
    """
    estate, policies, controls = prepared.estate, prepared.bundle.policies, prepared.bundle.controls
    evaluated = {column.policy: column for column in columns}
    planned = sorted(prepared.planned, key=lambda column: policies[column.policy].id)
    in_order = order_subjects(estate.subjects)
    owners = SubjectOwners(estate)
    references: dict[int, SubjectRef] = {}
    explained: list[FindingColumn] = []
    builtin_errors: dict[tuple[str, str], int] = {}
    for plan in planned:
        number = plan.policy
        _, passes, judgements, errors = evaluated[number] if plan.positions else Column(number, (), {})
        judgements = {
            **judgements,
            **{position: Judgement(unknowns=reasons) for position, reasons in plan.undecided.items()},
        }
        order = in_order((*passes, *judgements) if judgements else passes)
        for position in order:
            if position not in references:
                references[position] = reference_of(estate.subjects[position], owners)
        template = template_of(policies[number], controls)
        others = {
            position: _finding(template, references[position], judgements[position])
            for position in order
            if position in judgements
        }
        if order:
            explained.append(FindingColumn(number, template, order, others, references))
        builtin_errors.update({(policies[number].id, name): count for name, count in errors.items()})
    return Findings(_add_places(explained, prepared), builtin_errors)


def order_subjects(subjects: Sequence[Resource]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return a function that sorts positions of subjects by the ids that findings report."""

    @cache
    def key_of(position: int) -> tuple[str, str, int]:
        identity = subjects[position].reported_id
        return lowered(identity), identity, position

    return lambda positions: sorted(positions, key=key_of)


def findings_by_pair(prepared: EvaluationContext, columns: Iterable[Column]) -> list[tuple[Finding, tuple[int, int]]]:
    """Return the sorted findings of the planned pairs that do not pass, each with its policy and subject by number."""
    return [
        (finding, (column.policy, position))
        for column in findings_of(prepared, columns).columns
        for position, finding in column.others.items()
    ]


def _add_places(columns: Sequence[FindingColumn], prepared: EvaluationContext) -> list[FindingColumn]:
    """Add source locations to the findings of columns that do not pass."""
    unlocated = [(finding, position) for column in columns for position, finding in column.others.items()]
    located = iter(with_places(unlocated, prepared.estate, prepared.snapshot))
    return [column._replace(others={position: next(located) for position in column.others}) for column in columns]


def order_of(finding: Finding) -> tuple[str, str, str]:
    """Return the sort key of a finding."""
    return finding.policy, lowered(finding.resource), finding.resource


def reference_of(subject: Resource, owners: SubjectOwners) -> SubjectRef:
    """Return the fields of a finding that depend on its resource."""
    return SubjectRef(subject.reported_id, subject.reported_type, owners.owner(subject), subject.location)


def template_of(policy: Policy, controls: Mapping[str, tuple[str, ...]]) -> JsonObject:
    """Return the fields of a finding that depend on its policy; `controls` are those of policies by id."""
    return _template(IdentityKey(policy), IdentityKey(controls))


@lru_cache(maxsize=1024)
def _template(policy_key: IdentityKey[Policy], controls_key: IdentityKey[Mapping[str, tuple[str, ...]]]) -> JsonObject:
    policy, controls = policy_key.value, controls_key.value
    header = policy.header
    return {
        "policy": header.id,
        "title": header.title,
        "severity": header.severity,
        "remediation": header.remediation.text if header.remediation else "",
        "source": header.source,
        "area": policy.area,
        "controls": controls.get(header.id, ()),
        "why": _first_sentence(header.description),
        "url": header.related_resources[0].ref if header.related_resources else "",
    }


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description, with a quotation that continues after it closed."""
    words = " ".join(text.split())
    end = _SENTENCE_END.search(words)
    sentence = words[: end.end()].rstrip() if end else words
    return f'{sentence}"' if sentence.count('"') % 2 else sentence


def _finding(template: JsonObject, subject: SubjectRef, judgement: Judgement) -> Finding:
    outcome, exemption = Outcome.ERROR, None
    denials: tuple[Denial, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    if judgement.error is not None:
        unknowns = (Unknown(masked_message(judgement.error)),)
    else:
        if judgement.unknowns:
            outcome, unknowns = Outcome.UNKNOWN, _sort_unknowns(judgement.unknowns)
        if judgement.denials:
            outcome, denials, exemption = Outcome.FAIL, _sorted(judgement.denials), judgement.excepted
    return Finding(
        **template,
        **subject._asdict(),
        outcome=outcome,
        denials=denials,
        unknowns=unknowns,
        exemption=exemption,
    )


def _sorted(denials: Iterable[Denial]) -> tuple[Denial, ...]:
    """Return denials with secrets masked, in an order that does not depend on the engine."""
    shown = [
        Denial(
            denial.msg,
            denial.path,
            actual=masked(denial.actual, denial.path),
            expected=masked(denial.expected, denial.path),
        )
        for denial in denials
    ]
    if len(shown) > 1:  # converting large values to text is slow
        shown.sort(key=lambda denial: (denial.path, denial.msg, _text(denial.actual), _text(denial.expected)))
    return tuple(shown)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _sort_unknowns(unknowns: Iterable[Unknown]) -> tuple[Unknown, ...]:
    """Return unknowns with secrets masked, in an order that does not depend on the engine."""
    return tuple(sorted(map(_masked, unknowns), key=lambda unknown: (unknown.path, unknown.msg)))


def _masked(unknown: Unknown) -> Unknown:
    message = masked_message(unknown.msg)
    return unknown if message == unknown.msg else Unknown(message, unknown.path)
