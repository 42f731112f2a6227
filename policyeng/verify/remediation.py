"""The search for the smallest edit that makes a finding pass, verified by a second evaluation, and its report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations, islice

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import Baselines, baselines_of, read_cases
from policyeng.bundle.header import WORKSPACE, is_at_or_below
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.findings import NEIGHBOUR
from policyeng.evaluation.pointers import has_value
from policyeng.evaluation.pointers import value_at as find_value
from policyeng.evaluation.summary import by_pair
from policyeng.facts import Facts
from policyeng.facts.catalogue import VmSize
from policyeng.facts.siblings import MOST_TIMES, can_replace
from policyeng.models import Denial, Evaluation, Exemption, Finding, JsonObject, Outcome, Snapshot, lowered
from policyeng.models import Place as SourcePlace
from policyeng.parsing.json_pointer import escaped, keys_of, member, merged, value_at
from policyeng.parsing.json_pointer import value_at as found_at
from policyeng.redaction import masked
from policyeng.report.escaping import compact, visible
from policyeng.testing.observed_reads import ObservedReads, observe_finding
from policyeng.verify.generators.vocabulary import vocabulary_of
from policyeng.verify.json_patch import (
    GONE,
    DocumentPatch,
    FindingDocument,
    Pair,
    PatchBuilder,
    Place,
    apply_edits,
    document_of,
    find_subject,
    find_worse,
    makes_room,
    select_patches,
)

Plain = str | int | float | bool

#: A word of a sentence that can be a value: it has a capital, a digit, a hyphen or an underscore.
_WORD = re.compile(r"(?<![a-z])(?=[a-z]*[A-Z0-9_-])[A-Za-z][\w-]*\w")
#: Ids of people and things, and timestamps, which are not settings.
_NAMING = re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|\d{4}-\d\d-\d\d")
#: Longer texts are descriptions.
_LONGEST = 64


def expected_values(denial: Denial, known: Iterable[object]) -> Iterator[Plain]:
    """Yield the values that a denial expects: the entries of a list, and the known words of a sentence."""
    expected = denial.expected
    many = expected.values() if isinstance(expected, dict) else expected if isinstance(expected, list) else [expected]
    words = {lowered(word) for word in known if isinstance(word, str)}
    for value in many:
        if isinstance(value, str):
            alone = not any(letter.isspace() for letter in value)
            yield from [value] if alone else [word for word in _WORD.findall(value) if lowered(word) in words]
        elif isinstance(value, bool | int | float):
            yield value


def list_values(resources: Iterable[JsonObject], kind: str, pointer: str) -> Iterator[Plain]:
    """Yield the values at a place in the resources of a type."""
    for resource in resources:
        if lowered(str(resource.get("type"))) == lowered(kind):
            value = find_value(resource, pointer)
            if isinstance(value, str | bool | int | float):
                yield value


def replacements(
    size: VmSize, values: Iterable[Plain], named: Iterable[VmSize], facts: Facts, as_of: datetime
) -> list[Plain]:
    """Return VM sizes that can replace one: those of other resources, then named ones that the service offers.

    Sizes of the same series go first, then those with about as many vCPUs.
    """
    known = [facts.size(value) for value in values if isinstance(value, str)]
    offered = [other for other in named if facts.series(other.series) or facts.offered_series(other.series)]
    groups = ([other for other in known if other is not None], offered)
    ordered = [
        other
        for group in groups
        for other in sorted(group, key=lambda one: (one.series != size.series, abs(one.vcpus - size.vcpus)))
    ]
    return [other.name for other in ordered if can_replace(facts, size, other, as_of)]


def numbers_near(denial: Denial, current: object, known: Iterable[object]) -> Iterator[Plain]:
    """Yield the numbers in a denial, the thresholds of its policy, and their neighbors."""
    if isinstance(current, bool) or not isinstance(current, int | float):
        return
    stated = [*_numbers(denial.expected), *_numbers(denial.actual), *_numbers(list(known))]
    for step in (0, -1, 1):
        yield from (number + step for number in stated if number + step >= 0)


def _numbers(value: object) -> list[int | float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in _numbers(inner)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def real(values: Iterable[Plain], current: object, by_id: Mapping[str, object]) -> list[Plain]:
    """Return each value once, without the current one, ids of people, and ids of resources outside the snapshot."""
    kept: dict[str, Plain] = {}
    for value in values:
        if type(value) is type(current) and value == current:
            continue
        if isinstance(value, str) and not _is_real(value, by_id):
            continue
        kept.setdefault(lowered(repr(value)), value)
    return list(kept.values())


def _is_real(text: str, by_id: Mapping[str, object]) -> bool:
    if text.startswith("/"):
        return lowered(text) in by_id or lowered(text.rpartition("/subnets/")[0]) in by_id
    return 0 < len(text.strip()) <= _LONGEST and "@" not in text and not _NAMING.match(text)


def inherited(pointer: str, workspace: JsonObject | None) -> Sequence[Plain]:
    """Return the workspace's tag of the same name; tags state decisions of people, so no other value is tried."""
    value = found_at(workspace, pointer) if workspace else None
    return [value] if isinstance(value, str) and value.strip() else []


#: Fields that identify a resource, its location and its kind; with other values it is another resource.
_IDENTITY = frozenset({"/id", "/type", "/name", "/location", "/kind", "/properties/resourceid"})
#: Fields that make work regulated; without them failures would only be hidden.
_CLASSIFYING = frozenset({"hbiworkspace", "data-classification", "dataclassification"})
_TAGS = frozenset({"tags", "kvtags"})
#: Access is decided by people, and advice by Azure; only patches of headers are proposed for these.
_DECIDED = ("microsoft.authorization/", "microsoft.advisor/")
#: The choices in a declaration; its other fields describe the work.
_CHOSEN = ("/target", "/accelerator")
_RESOURCES = "microsoft.machinelearningservices/workspaces/"
_COMPUTE = ("/target", "/computeId", "/runs")
#: The sources of workload fields, by the type of the resource that a workload is derived from.
_SOURCES: dict[str, dict[str, str]] = {
    f"{_RESOURCES}jobs": {
        **dict.fromkeys(_COMPUTE, "/properties/computeId"),
        "/runs/0/concurrentTrials": "/properties/limits/maxConcurrentTrials",
    },
    f"{_RESOURCES}batchendpoints/deployments": dict.fromkeys(_COMPUTE, "/properties/compute"),
    f"{_RESOURCES}services": {
        "/memoryGiB": "/properties/containerResourceRequirements/memoryInGB",
        "/accelerator": "/properties/containerResourceRequirements/gpu",
    },
}
#: The maximum number of members for one `*`.
_MOST_MEMBERS = 8


@dataclass(frozen=True, slots=True)
class Target:
    """A place that an edit can change.

    Attributes:
        place: the document.
        pointer: a JSON Pointer into the document.
        denial: the denial of the place, or the first one.
        named: whether the denial has exactly this path.
        is_tag: whether it is a tag, whose value only the workspace can supply.
        is_compute: whether it refers to the compute that work runs on.
    """

    place: Place
    pointer: str
    denial: Denial
    named: bool = True
    is_tag: bool = False
    is_compute: bool = False


def targets(
    policy: Policy, read: ObservedReads, finding: Finding, subject: FindingDocument, snapshot: Snapshot
) -> Iterator[Target]:
    """Yield the places, those of denials first, each once; `read` is what the evaluation of the finding reads."""
    kind = lowered(str(subject.document.get("type", "")))
    if subject.place[0] == "approval" or kind.startswith(_DECIDED):
        return
    seen: set[tuple[Place, str]] = set()
    for found in (
        *_denied_targets(read, finding, subject, snapshot),
        *_inspected_targets(read, finding, subject, snapshot),
    ):
        if (found.place, found.pointer) not in seen and not _is_hiding(policy, found, subject):
            seen.add((found.place, found.pointer))
            yield found


def _denied_targets(
    read: ObservedReads, finding: Finding, subject: FindingDocument, snapshot: Snapshot
) -> Iterator[Target]:
    for denial in finding.denials:
        if subject.derived and not denial.path.startswith(WORKSPACE):
            yield from _source(denial, subject)
            continue
        place, pointer = _locate(denial.path, subject, snapshot)
        if place is not None and pointer.startswith("/") and _is_read(read, denial.path):
            yield Target(place, pointer, denial, is_tag=_is_tag(pointer))


def _source(denial: Denial, subject: FindingDocument) -> Iterator[Target]:
    """Yield the places of the source resource of a workload that set what is denied."""
    places = _SOURCES.get(lowered(str(subject.document.get("type"))), {})
    above = "/runs" if denial.path.startswith("/runs/") else denial.path
    for pointer in dict.fromkeys(places[path] for path in (denial.path, above) if path in places):
        yield Target(
            subject.place, pointer, denial, is_compute=pointer in ("/properties/computeId", "/properties/compute")
        )


def _inspected_targets(
    read: ObservedReads, finding: Finding, subject: FindingDocument, snapshot: Snapshot
) -> Iterator[Target]:
    """Yield what the policy reads in addition to what it denies; fields of derived work are not those of a resource."""
    for pointer in read.pointers:
        place, inside = _locate(pointer, subject, snapshot)
        own = not (subject.derived or subject.place[0] == "workload") or pointer.startswith(WORKSPACE)
        document = document_of(snapshot, *place) if place and own else None
        if place is not None and document is not None:
            for concrete in islice(_expand(document, inside), _MOST_MEMBERS):
                if not _is_tag(concrete):
                    yield Target(place, concrete, finding.denials[0], named=False)


def _expand(document: object, pointer: str) -> Iterator[str]:
    """Yield the pointers in a document that match one with `*`."""
    found: list[tuple[str, object]] = [("", document)]
    for key in keys_of(pointer):
        found = [
            (f"{path}/{escaped(name)}", inner) for path, value in found for name, inner in _list_members(value, key)
        ]
    yield from (path for path, _ in found)


def _list_members(value: object, key: str) -> Iterable[tuple[object, object]]:
    if key != "*":
        return [(key, member(value, key))]
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _locate(path: str, subject: FindingDocument, snapshot: Snapshot) -> tuple[Place | None, str]:
    """Return the document that a path of a policy refers to, and the pointer in it."""
    if path.startswith(WORKSPACE):
        return subject.workspace, path.removeprefix(WORKSPACE)
    if NEIGHBOUR in path:
        identity, _, pointer = path.partition(NEIGHBOUR)
        found: JsonObject | None = document_of(snapshot, "resource", identity)
        return (("resource", str(found["id"])) if found else None), f"/{pointer}"
    return subject.place, path


def _is_read(read: ObservedReads, path: str) -> bool:
    if NEIGHBOUR in path and not path.startswith(WORKSPACE):
        inside = f"/{path.partition(NEIGHBOUR)[2]}"
        return any(is_at_or_below(inside, one) for pointers in read.others.values() for one in pointers)
    return any(is_at_or_below(path, one) for one in read.pointers)


def _is_tag(pointer: str) -> bool:
    return any(lowered(key) in _TAGS for key in keys_of(pointer)[:2])


def _is_hiding(policy: Policy, target: Target, subject: FindingDocument) -> bool:
    """Check whether a place affects what a policy applies to, rather than its outcome."""
    keys = [lowered(key) for key in keys_of(target.pointer)]
    if lowered(target.pointer) in _IDENTITY or (_CLASSIFYING.intersection(keys) and not target.is_tag):
        return True
    if target.is_tag:
        return not target.named or "data-classification" in keys
    if target.place[0] == "workload":
        return target.pointer not in _CHOSEN
    narrowing = {pointer for judges in policy.header.judges for pointer in judges.where}
    return target.place == subject.place and target.pointer in narrowing and not target.named


#: Longer tables of names, such as that of all VM sizes, do not list recommended values.
_MOST_NAMES = 64


@dataclass(frozen=True)
class Known:
    """A policy alone, its findings on the snapshot, and the values that it uses.

    Attributes:
        compliant: the baselines, and the resources of its passing cases.
        words: the texts and numbers of its code and of its imports.
        own: those of its own code and header.
        sizes: the VM sizes in the short tables of facts that it reads.
    """

    alone: Bundle
    before: Evaluation
    compliant: Sequence[JsonObject]
    words: Sequence[object]
    own: Sequence[object]
    sizes: Sequence[VmSize]


def collect_knowledge(policy: Policy, alone: Bundle, baselines: Baselines, before: Evaluation) -> Known:
    """Return what is known of a policy; `alone` is its bundle, and `before` the evaluation of the snapshot."""
    file, resources = read_cases(policy), baselines.resources
    passing = [case for verdict, _, case in file.named() if verdict == "pass"] if file else []
    passing_resources = [
        merged(resources[case.baseline or ""], case.patch) for case in passing if case.baseline in resources
    ]
    words = vocabulary_of(alone, ()).words[policy.id]
    names = [name for table in words.tables if len(table) <= _MOST_NAMES for name in table]
    sizes = [size for name in names if (size := alone.facts.size(name)) is not None]
    return Known(
        alone, before, [*resources.values(), *passing_resources], [*words.own, *words.borrowed], words.own, sizes
    )


#: How many edits for one finding are evaluated with its own policy, and how many of the passing ones with all policies.
MOST_TRIED = 60
MOST_VERIFIED = 6
#: The maximum number of policies in a reason.
_MOST_NAMED = 3
#: The maximum number of values for one place.
_MOST_VALUES = 16
#: Facts about the machines of a resource, which must not be removed as a fix.
_HARDWARE = frozenset({"vmsize", "virtualmachinesize", "agentvmsize", "instancetype"})
_COMPUTES = "microsoft.machinelearningservices/workspaces/computes"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A fix for a finding.

    Attributes:
        finding: the failure.
        edits: the verified changes, which fix the finding and add no failures. Empty if there are none.
        clears: the failures that the edits fix, as policy and resource; that of the finding first.
        reason: why there is no edit; empty if there is one.
        from_header: whether the edit is from the policy's header.
        tried: the number of evaluated edits.
    """

    finding: Finding
    edits: tuple[DocumentPatch, ...] = ()
    clears: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    from_header: bool = False
    tried: int = 0


@dataclass
class Suggester:
    """A source of suggestions for the findings of one evaluation, with shared caches."""

    bundle: Bundle
    snapshot: Snapshot
    as_of: datetime
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
    exemptions: Sequence[Exemption] = ()
    _known: dict[str, Known] = field(default_factory=dict, init=False)
    _before: Evaluation | None = field(default=None, init=False)
    _baselines: Baselines | None = field(default=None, init=False)

    def suggestion(self, finding: Finding) -> Suggestion | None:
        """Return the suggestion for a finding; None if it does not fail, or is exempt."""
        if finding.outcome is not Outcome.FAIL or finding.exemption is not None:
            return None
        policy = next((one for one in self.bundle.policies if one.id == finding.policy), None)
        subject = find_subject(policy, finding, self.snapshot) if policy else None
        if policy is None or subject is None:
            return Suggestion(finding, reason="the snapshot has no document for it that can be edited")
        search = _FindingSearch(self, policy, finding, subject)
        return search.header() or search.searched()

    @property
    def before(self) -> Evaluation:
        """The evaluation of the unedited snapshot."""
        if self._before is None:
            self._before = self.evaluate(self.bundle, self.snapshot)
        return self._before

    def evaluate(self, bundle: Bundle, snapshot: Snapshot) -> Evaluation:
        """Evaluate a snapshot with the same clock and parameters."""
        given = {policy.id: self.parameters[policy.id] for policy in bundle.policies if policy.id in self.parameters}
        return evaluate(bundle, snapshot, EvaluationOptions(self.as_of, self.exemptions, given))

    def known(self, policy: Policy) -> Known:
        """Return what is known of a policy, cached."""
        if policy.id not in self._known:
            if self._baselines is None:
                self._baselines = baselines_of(self.bundle)
            alone = self.bundle.only([policy])
            self._known[policy.id] = collect_knowledge(
                policy, alone, self._baselines, self.evaluate(alone, self.snapshot)
            )
        return self._known[policy.id]


@dataclass
class _FindingSearch:
    """The search for one finding."""

    suggester: Suggester
    policy: Policy
    finding: Finding
    subject: FindingDocument
    tried: int = 0
    verified: int = 0
    #: The policies with a worse finding after an edit that fixes the finding.
    against: set[str] = field(default_factory=set)
    #: The first edit that removes a denial, by its path and text.
    partial: dict[tuple[str, str], PatchBuilder] = field(default_factory=dict)
    #: Edits after which the policy no longer applies: the last resort.
    unevaluated: list[PatchBuilder] = field(default_factory=list)
    #: The VM size that the finding is about, if any.
    size: VmSize | None = None

    @property
    def pair(self) -> Pair:
        return (self.finding.policy, lowered(self.finding.resource_type), lowered(self.finding.resource))

    def header(self) -> Suggestion | None:
        """Return the fix of the header, if it works for this snapshot."""
        claimed = select_patches(self.policy, self.finding, self.suggester.snapshot, self.suggester.parameters)
        return self._verify_edits(claimed.edits, from_header=True) if claimed else None

    def searched(self) -> Suggestion:
        """Return the first verified edit: of one place, then of one for each denial, then of two places."""
        for draft in self._drafts():
            if self.tried >= MOST_TRIED or self.verified >= MOST_VERIFIED:
                break
            if found := self._evaluate_edit(draft):
                return found
        for edits in (draft.edits for draft in self.unevaluated):
            if self.verified < MOST_VERIFIED and (found := self._verify_edits(edits)):
                return found
        return Suggestion(self.finding, reason=self._reason(), tried=self.tried)

    def _drafts(self) -> Iterator[PatchBuilder]:
        """Yield edits, the smallest first."""
        suggester, finding = self.suggester, self.finding
        read = observe_finding(suggester.bundle, suggester.snapshot, finding, suggester.as_of, suggester.parameters)
        for target in targets(self.policy, read, finding, self.subject, suggester.snapshot):
            for step in self._steps(target):
                draft = PatchBuilder(self.suggester.snapshot)
                if draft.do(target.place, step):
                    yield draft
        parts = list({id(draft): draft for draft in self.partial.values()}.values())
        if len(self.finding.denials) > 1 and parts:
            yield PatchBuilder.joined(parts)
        yield from (PatchBuilder.joined(pair) for pair in combinations(parts, 2) if len(parts) > 2)

    def _steps(self, target: Target) -> Iterator[JsonObject]:
        document = document_of(self.suggester.snapshot, *target.place) or {}
        current = value_at(document, target.pointer)
        if isinstance(current, bool):
            yield {"op": "replace", "path": target.pointer, "value": not current}
        # Additions to a list come before changes of existing entries.
        is_entry = isinstance(value_at(document, target.pointer.rpartition("/")[0]), list)
        op = "replace" if is_entry and current is not None else "add"
        for value in self._values(target, document, current)[:_MOST_VALUES]:
            yield {"op": op, "path": target.pointer, "value": value}
        if has_value(document, target.pointer) and self._may_lack(target, str(document.get("type", ""))):
            yield {"op": "remove", "path": target.pointer}

    def _may_lack(self, target: Target, kind: str) -> bool:
        """Check whether compliant resources of the type lack the field, and it does not state a fact."""
        if target.is_tag or lowered(keys_of(target.pointer)[-1]) in _HARDWARE:
            return False
        peers = [
            one for one in self.suggester.known(self.policy).compliant if lowered(str(one["type"])) == lowered(kind)
        ]
        return any(not has_value(one, target.pointer) for one in peers)

    def _values(self, target: Target, document: JsonObject, current: object) -> list[Plain]:
        snapshot, known = self.suggester.snapshot, self.suggester.known(self.policy)
        by_id = {lowered(str(resource.get("id"))): resource for resource in snapshot.resources}
        if target.is_tag:
            home = self.subject.workspace
            return real(inherited(target.pointer, document_of(snapshot, *home) if home else None), current, {})
        if target.is_compute:
            return real(self._computes(), current, by_id)
        kind = str(document.get("type", ""))
        values: list[Plain] = list(expected_values(target.denial, known.words)) if target.named else []
        values += list_values(snapshot.resources, kind, target.pointer)
        values += list_values(known.compliant, kind, target.pointer)
        values += numbers_near(target.denial, current, known.own)
        if lowered(keys_of(target.pointer)[-1]) in _HARDWARE:
            values = self._sizes(target, current, values)
        if lowered(keys_of(target.pointer)[-1]).endswith("id"):  # an id cannot be other text
            values = [value for value in values if isinstance(value, str) and value.startswith("/")]
        return real(values, current, by_id)

    def _sizes(self, target: Target, current: object, values: list[Plain]) -> list[Plain]:
        """Return the sizes that can replace one; none for a name that the catalog does not have."""
        facts = self.suggester.bundle.facts
        size = facts.size(current) if isinstance(current, str) else None
        if size is None:
            return []
        if target.named:
            self.size = size
        return replacements(size, values, self.suggester.known(self.policy).sizes, facts, self.suggester.as_of)

    def _computes(self) -> Iterator[str]:
        """Yield the computes of the workspace that the work belongs to."""
        home = lowered(self.subject.workspace[1]) if self.subject.workspace else ""
        for resource in self.suggester.snapshot.resources:
            identity = str(resource.get("id"))
            if lowered(str(resource.get("type"))) == _COMPUTES and lowered(identity).startswith(f"{home}/"):
                yield identity

    def _evaluate_edit(self, draft: PatchBuilder) -> Suggestion | None:
        """Evaluate an edit with its own policy, and, if that passes, with all policies."""
        self.tried += 1
        after = apply_edits(self.suggester.snapshot, draft.edits)
        known = self.suggester.known(self.policy)
        if after is None or not draft.edits:
            return None
        evaluation = self.suggester.evaluate(known.alone, after)
        if find_worse(known.before, evaluation):
            return None
        left = by_pair(evaluation).get(self.pair)
        if left is None and self._is_set_where_denied(draft):
            self.unevaluated.append(draft)
        elif left is None:
            return None
        elif left.outcome is Outcome.PASS:
            return self._verify_edits(draft.edits)
        elif left.outcome is Outcome.FAIL:
            remaining = {(denial.path, denial.msg) for denial in left.denials}
            gone = {(denial.path, denial.msg) for denial in self.finding.denials} - remaining
            for key in sorted(gone):
                self.partial.setdefault(key, draft)
        return None

    def _is_set_where_denied(self, draft: PatchBuilder) -> bool:
        """Check whether an edit changes a denied value, rather than hiding it."""
        last = [patch[-1] for patch in draft.patches.values()]
        return all(step["op"] != "remove" and step["path"] in self._denied_paths for step in last)

    @property
    def _denied_paths(self) -> set[str]:
        return {denial.path for denial in self.finding.denials}

    def _verify_edits(self, edits: tuple[DocumentPatch, ...], *, from_header: bool = False) -> Suggestion | None:
        """Return the suggestion for edits that pass all policies, or None."""
        self.verified += 1
        after = apply_edits(self.suggester.snapshot, edits)
        if after is None:
            return None
        before, evaluation = self.suggester.before, self.suggester.evaluate(self.suggester.bundle, after)
        outcomes = by_pair(evaluation)
        left = outcomes.get(self.pair)
        worsened = find_worse(before, evaluation)
        self.against.update(policy for policy, _, _ in worsened)
        if worsened or (left is not None and left.outcome is not Outcome.PASS):
            return None
        cleared = [
            (finding.policy, finding.resource)
            for pair, finding in by_pair(before).items()
            if finding.outcome is Outcome.FAIL and (pair not in outcomes or outcomes[pair].outcome is Outcome.PASS)
        ]
        own = (self.finding.policy, self.finding.resource)
        clears = (own, *(entry for entry in cleared if entry != own))
        return Suggestion(self.finding, edits, clears, from_header=from_header, tried=self.tried)

    def _reason(self) -> str:
        if self.subject.place[0] == "approval":
            return "an approval is a decision of people, which no edit can replace"
        worsened = ", ".join(sorted(self.against)[:_MOST_NAMED])
        if self.size is not None:
            return self._reason_of(self.size, worsened)
        if self.verified:
            return f"every edit that fixes it makes another finding worse for {worsened}"
        if not self.tried:
            return "the fix is outside the snapshot, or a decision of people"
        return f"none of the {self.tried} edits that were evaluated fixes it"

    def _reason_of(self, size: VmSize, worsened: str) -> str:
        """Return why no other VM size is proposed, and what to do; `worsened` are policies that forbid the others."""
        retirement = self.suggester.bundle.facts.retirement(size.name)
        if retirement is not None and retirement.has_come(self.suggester.as_of):
            move_to = f"a size of the series {retirement.move_to}" if retirement.move_to else "a size that is offered"
            return f"{size.name} retired on {retirement.date}; move to {move_to} and check again"
        like = f"offered, the same kind of accelerator, at most {MOST_TIMES} times the vCPUs and memory"
        passes = f"passes without making a finding worse for {worsened}" if self.verified else "passes"
        return f"no size like {size.name} ({like}) {passes}; follow the remediation, or choose a suitable size"


#: The version of the JSON form.
VERSION = 1
_SHAPE = "paths and values are in the form of Azure Resource Manager, for any input format"


def as_text(suggestions: Sequence[Suggestion], snapshot: Snapshot) -> str:
    """Return a paragraph for each failure, and the number that can be fixed; ends with a newline."""
    if not suggestions:
        return "there are no failures without an exemption\n"
    blocks = ["\n".join(_lines(suggestion, snapshot)) for suggestion in suggestions]
    fixed = sum(bool(suggestion.edits) for suggestion in suggestions)
    count = f"{fixed} of {len(suggestions)} failures have a verified edit"
    return visible("\n\n".join([*blocks, f"{count}; {_SHAPE}"]), keep="\n") + "\n"


def as_json(suggestions: Sequence[Suggestion], snapshot: Snapshot) -> str:
    """Return the document of `docs/suggestions.md`; ends with a newline."""
    document = {
        "suggestionsVersion": VERSION,
        "suggestions": [_document(suggestion, snapshot) for suggestion in suggestions],
    }
    return visible(json.dumps(document, ensure_ascii=False, indent=2), keep="\n") + "\n"


def _lines(suggestion: Suggestion, snapshot: Snapshot) -> list[str]:
    finding = suggestion.finding
    at = finding.location
    place = [f"  at {at.file}:{at.line}:{at.column}"] if at.file else []
    lines = [f"{finding.policy} {finding.title}", f"  {finding.resource}", *place]
    if not suggestion.edits:
        fix = [f"  fix: {finding.remediation}"] if finding.remediation else []
        return [*lines, f"  no safe automatic edit: {suggestion.reason}", *fix]
    for edit in suggestion.edits:
        lines += [f"  {words}" for words in _describe_edit(edit, suggestion, snapshot)]
    others = list(dict.fromkeys(policy for policy, _ in suggestion.clears[1:] if policy != finding.policy))
    cleared = " and ".join([finding.policy, *([", ".join(others)] if others else [])])
    return [*lines, f"  verified: clears {cleared}, adds nothing"]


def _describe_edit(edit: DocumentPatch, suggestion: Suggestion, snapshot: Snapshot) -> list[str]:
    """Describe an edit, one operation per line, without those that only create objects for the next ones."""
    own = lowered(edit.identity) == lowered(suggestion.finding.resource)
    of = "" if own else f" of {edit.identity}"
    if edit.patch == GONE:
        return [f"remove {edit.identity}"]
    before = document_of(snapshot, edit.kind, edit.identity) or {}
    words = []
    for number, step in enumerate(edit.patch):
        if step["op"] == "test" or makes_room(edit.patch, number):
            continue
        place = _place(edit, step["path"], snapshot)
        at = f" at {place.file}:{place.line}:{place.column}" if place else ""
        now = value_at(before, step["path"])
        current = "absent" if now is None else compact(masked(now, step["path"]))
        if step["op"] == "remove":
            words.append(f"remove {step['path']}{of} (now {current}){at}")
        else:
            words.append(f"set {step['path']}{of} to {compact(step['value'])} (now {current}){at}")
    return words


def _place(edit: DocumentPatch, path: str, snapshot: Snapshot) -> SourcePlace | None:
    """Return the place of a field in the user's file, or the nearest place above it."""
    origin = snapshot.origins.get(lowered(edit.identity))
    if origin is None or origin.file not in snapshot.texts:
        return None
    [(line, column)] = snapshot.texts[origin.file].places([origin.pointer_to(path)])
    return SourcePlace(file=origin.file, line=line, column=column)


def _document(suggestion: Suggestion, snapshot: Snapshot) -> JsonObject:
    finding = suggestion.finding
    at = finding.location
    return {
        "policy": finding.policy,
        "title": finding.title,
        "resource": finding.resource,
        "resourceType": finding.resource_type,
        "location": {"file": at.file, "line": at.line, "column": at.column},
        "verified": bool(suggestion.edits),
        "fromHeader": suggestion.from_header,
        "edits": [_edit(edit, snapshot) for edit in suggestion.edits],
        "clears": [{"policy": policy, "resource": resource} for policy, resource in suggestion.clears],
        "reason": suggestion.reason,
        "remedy": finding.remediation,
    }


def _edit(edit: DocumentPatch, snapshot: Snapshot) -> JsonObject:
    paths = dict.fromkeys(step["path"] for step in edit.patch if step["op"] != "test")
    places = {path: place for path in paths if path and (place := _place(edit, path, snapshot))}
    return {
        "kind": edit.kind,
        "id": edit.identity,
        "patch": list(edit.patch),
        "places": {path: place.model_dump(mode="json", by_alias=True) for path, place in places.items()},
    }
