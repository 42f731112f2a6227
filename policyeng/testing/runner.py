"""Run the cases of a bundle, and the tests of fields that are absent."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import (
    DEFAULT_AS_OF,
    STATED,
    Baselines,
    Case,
    CaseFile,
    baselines_of,
    estate,
    no_baseline,
    read_cases,
)
from policyeng.bundle.header import Verdict
from policyeng.errors import BundleError, PolicyengError, suggest_nearest
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.pointers import has_value
from policyeng.facts import Facts
from policyeng.facts.ids import workspace_of
from policyeng.models import Approval, DeclaredWorkload, Finding, JsonObject, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, keys_of, merged
from policyeng.parsing.yaml_writer import flow
from policyeng.progress import counted
from policyeng.testing.observed_reads import observe
from policyeng.workloads import derive

_WORKLOAD_FIELDS = ("workspaceId", "purpose", "target", "features", "accelerator", "cadence", "model", "tags")
_ABSENT_ID = "absent-test"
#: The parts of the input of a policy, and how Rego reads one of them.
_INPUTS = ("resource", "workspace", "snapshot", "parameters", "as_of")
_LISTED = ", ".join(f"`{name}`" for name in _INPUTS)
_INPUT = re.compile(r"\binput\.([a-zA-Z_]\w*)")


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The result of one case; `reason` is empty when the case passes.

    Attributes:
        file: the file of the cases.
        line: the line of the case in the file, 1 for an absent test.
        edit: how the input differs from the baseline, as YAML on one line.
    """

    policy: str
    name: str
    expected: Verdict
    reason: str
    file: str = ""
    line: int = 0
    edit: str = ""


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case or an absent test, ready to be evaluated.

    Attributes:
        snapshot: the snapshot of the case, with its edits.
        identity: the id of the resource in the finding that the case is about.
    """

    name: str
    expected: Verdict
    case: Case
    snapshot: Snapshot
    identity: str

    @property
    def as_of(self) -> datetime:
        """The evaluation clock."""
        return self.case.as_of or DEFAULT_AS_OF


def run_cases(bundle: Bundle, only: str = "", begin: Callable[[str], None] | None = None) -> Iterator[CaseRun]:
    """Run every case and every absent test of every active policy, in the order of the policies.

    Args:
        bundle: the policies.
        only: if given, the name of the cases to run.
        begin: called with the policy and the name of each case before it runs.

    Raises:
        BundleError: a `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    baselines = baselines_of(bundle)
    for policy in counted(bundle.policies, len(bundle.policies)):
        file = read_cases(policy)
        if file is None:
            continue
        alone = bundle.only([policy])
        for prepared in (*prepared_cases(policy, file, baselines), *prepared_absences(alone, policy, file, baselines)):
            if only not in ("", prepared.name):
                continue
            if begin is not None:
                begin(f"{policy.id} {prepared.name}")
            reason = _explain_failure(alone, policy, prepared)
            place = str(policy.cases), _line_of(policy, prepared) if reason else 0
            yield CaseRun(policy.id, prepared.name, prepared.expected, reason, *place, _describe_edit(prepared))
        if not only and not policy.header.inspects:  # a header that declares `inspects` is trusted
            yield from _find_unpinned(alone, policy, file, baselines)


def _describe_edit(prepared: PreparedCase) -> str:
    """Return how the input of a case differs from the baseline."""
    case = prepared.case
    pointer = prepared.name.removeprefix("absent ") if prepared.name.startswith("absent ") else ""
    edits: JsonObject = {"without": pointer} if pointer else {}
    for name, value in (("patch", case.patch), ("with", case.with_), ("parameters", case.parameters)):
        edits |= {name: value} if value else {}
    edits |= {"remove": list(case.remove)} if case.remove else {}
    edits |= {name: given for name in (*STATED, "covers") if (given := getattr(case, name)) is not None}
    text = flow(edits)[1:-1]
    return f"{case.baseline or case.judged}{f', {text}' if text else ''}"


def absences_of(policy: Policy, file: CaseFile) -> Mapping[str, Verdict]:
    """Return the outcome without each field, by pointer: from the cases and from the header."""
    return {**{pointer: policy.header.absent(pointer) for pointer in policy.header.inspects}, **file.absent}


def _find_unpinned(alone: Bundle, policy: Policy, file: CaseFile, baselines: Baselines) -> Iterator[CaseRun]:
    """Yield a failure for each field that cases read and `absent` lacks, or the reverse."""
    observed = observe(alone, policy)
    read = observed.pointers
    if not observed.is_whole:
        reason = "a case changes its outcome, or exceeds its limit, while reads are recorded; compare values with `==`"
        yield CaseRun(policy.id, "absent", "unknown", reason, str(policy.cases), 1)
    for pointer in (pointer for pointer in read if pointer not in file.absent):
        try:
            prepared = prepared_absence(alone, policy, pointer, "unknown", file, baselines)
        except BundleError:  # a declared workload or an approval always has it
            continue
        reason = f"the policy reads this field; {_suggest_remedy(alone, policy, prepared, pointer)}"
        yield CaseRun(policy.id, prepared.name, "unknown", reason, str(policy.cases), 1)
    for pointer, expected in file.absent.items():
        if pointer not in read and observed.is_whole:
            reason = "no case reads this field; remove it from `absent`, or add a case that reads it"
            yield CaseRun(policy.id, f"absent {pointer}", expected, reason, str(policy.cases), 1)


def _suggest_remedy(alone: Bundle, policy: Policy, prepared: PreparedCase, pointer: str) -> str:
    """Return what to change so that a field that cases read is pinned."""
    try:
        finding = _evaluate_case(alone, policy, prepared)
    except PolicyengError as error:
        return f"without it the case cannot be evaluated: {error}"
    actual = _outcome(finding)
    if actual == "error":
        return f"fix the policy, which ends in an error without it{_why(finding)}"
    return f"add this line to `absent` in the cases: `{flow({pointer: actual})[1:-1]}`"


def _outcome(finding: Finding | None) -> str:
    return finding.outcome.value if finding else "not_judged"


def _evaluate_case(alone: Bundle, policy: Policy, prepared: PreparedCase) -> Finding | None:
    """Return the finding that a case is about."""
    parameters = {policy.id: prepared.case.parameters}
    evaluation = evaluate(alone, prepared.snapshot, EvaluationOptions(prepared.as_of, parameters=parameters))
    if any(problem.level == "error" and problem.place for problem in evaluation.problems):
        raise BundleError("; ".join(f"{problem.place}: {problem.message}" for problem in evaluation.problems))
    return next((one for one in evaluation.findings if one.resource.lower() == prepared.identity.lower()), None)


def find_misspelled_pointers(bundle: Bundle) -> Iterator[str]:
    """Yield a remark for each pointer that a policy reads and that baselines have only in a similar spelling."""
    resources = baselines_of(bundle).resources.values()
    for policy in bundle.policies:
        evaluated_types = {lowered(kind.type) for kind in policy.header.judges}
        documents = [resource for resource in resources if lowered(str(resource.get("type"))) in evaluated_types]
        # Another spelling of a field that is read anyway is not a mistake.
        read = dict.fromkeys((*policy.header.inspects, *observe(bundle, policy).own))
        known = {pointer for document in documents for pointer in _pointers(document)} - read.keys()
        for pointer in read:
            if "*" in pointer or any(has_value(document, pointer) for document in documents):
                continue
            others = [one for one in known if not pointer.startswith(f"{one}/")]
            close = [*get_close_matches(pointer, others, n=1, cutoff=0.85), *_respell(pointer, documents, read)]
            if close:
                message = f"the policy reads `{pointer}`, which no evaluated baseline has; did you mean `{close[0]}`"
                yield f"{policy.file}: {policy.id}: {message}"


def _respell(pointer: str, documents: Iterable[JsonObject], read: Container[str]) -> Iterator[str]:
    """Yield the pointer with the first key that a document lacks replaced by the nearest one that it has."""
    keys = keys_of(pointer)
    for document in documents:
        value: object = document
        for number, key in enumerate(keys):
            if not isinstance(value, dict):
                break
            if key not in value:
                for near in get_close_matches(key, value, n=1, cutoff=0.75):
                    spelled = "".join(f"/{escaped(part)}" for part in (*keys[:number], near, *keys[number + 1 :]))
                    if spelled not in read:
                        yield spelled
                break
            value = value[key]


def find_misspelled_types(bundle: Bundle) -> Iterator[str]:
    """Yield a remark for each type in `judges` that no baseline has and that is similar to one that they have."""
    kinds = {str(resource.get("type")) for resource in baselines_of(bundle).resources.values()}
    known = {lowered(kind): kind for kind in kinds}
    for policy in bundle.policies:
        for target in policy.header.judges:
            name = lowered(target.type)
            if name not in known and (close := get_close_matches(name, known, n=1, cutoff=0.85)):
                message = f"no baseline has the type `{target.type}`; did you mean `{known[close[0]]}`"
                yield f"{policy.file}: {policy.id}: {message}"


def find_unknown_inputs(bundle: Bundle) -> Iterator[str]:
    """Yield a remark for each part of `input` that a Rego policy reads and that does not exist."""
    sources = dict(bundle.modules)
    for policy in bundle.policies:
        if policy.input_form != "policy" or policy.file not in sources:
            continue
        for number, line in enumerate(sources[policy.file].splitlines(), 1):
            for found in () if line.lstrip().startswith("#") else _INPUT.finditer(line):
                if (name := found[1]) not in _INPUTS:
                    message = f"`input` has no `{name}`{suggest_nearest(name, _INPUTS) or f'; it has {_LISTED}'}"
                    yield f"{policy.file}:{number}: {message}"


def _pointers(value: object, above: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{above}/{key}"
            yield from _pointers(inner, f"{above}/{key}")


def _line_of(policy: Policy, prepared: PreparedCase) -> int:
    """Return the line of a case in its file, or 1 for a test that is not written there."""
    lines = policy.cases.read_text(encoding="utf-8").splitlines() if policy.cases else []
    group = ""
    for number, line in enumerate(lines, 1):
        key = line.partition(": ")[0].rstrip(": ")
        if line[:1].isalpha():
            group = key
        elif group == prepared.expected and key.strip().strip("\"'") == prepared.name:
            return number
    return 1


def prepared_cases(policy: Policy, file: CaseFile, baselines: Baselines) -> Iterator[PreparedCase]:
    """Yield the cases of a policy.

    Raises:
        BundleError: a case refers to something unknown, or is not well formed.
    """
    for expected, name, case in file.named():
        place = f"{policy.cases}: {name}"
        snapshot = estate(baselines, case, place)
        yield PreparedCase(name, expected, case, snapshot, case.judged or _find_evaluated_id(case, baselines, place))


def prepared_absences(alone: Bundle, policy: Policy, file: CaseFile, baselines: Baselines) -> Iterator[PreparedCase]:
    """Yield the tests of absent fields; `alone` is the bundle with this policy as the only active one."""
    for pointer, expected in absences_of(policy, file).items():
        yield prepared_absence(alone, policy, pointer, expected, file, baselines)


def _explain_failure(alone: Bundle, policy: Policy, prepared: PreparedCase) -> str:
    """Return why the expectation is not met, or an empty string."""
    case, expected = prepared.case, prepared.expected
    try:
        finding = _evaluate_case(alone, policy, prepared)
    except PolicyengError as error:
        return str(error)
    actual = _outcome(finding)
    if actual != expected:
        return f"expected {expected}, found {actual}{_why(finding)}"
    paths = [denial.path for denial in finding.denials] if finding else []
    if expected == "fail" and case.path is not None and case.path not in paths:
        return f"expected a denial of `{case.path}`, found {', '.join(f'`{path}`' for path in paths)}"
    return ""


def _why(finding: Finding | None) -> str:
    if finding is None:
        return ""
    entries = [*finding.denials, *finding.unknowns]
    reasons = [f"{entry.msg} ({entry.path})" if entry.path else entry.msg for entry in entries]
    return f": {'; '.join(reasons)}" if reasons else ""


def prepared_absence(
    alone: Bundle, policy: Policy, pointer: str, expected: Verdict, file: CaseFile, baselines: Baselines
) -> PreparedCase:
    """Delete a pointer from an evaluated baseline that has it.

    Raises:
        BundleError: the pointer cannot be left out of a declared workload or approval.
    """
    name = f"absent {pointer}"
    shared = file.filled(Case())
    place = f"{policy.cases}: {name}"
    snapshot = estate(baselines, shared, place)
    identity = shared.judged or _find_evaluated_id(shared, baselines, place)
    if _evaluates(policy, "approval"):
        snapshot = _edit_approval(snapshot, identity, pointer, place)
    elif _evaluates(policy, "workload") and not pointer.startswith("workspace:"):
        snapshot = _add_workload(snapshot, _find_workload(snapshot, identity, alone.facts), pointer, place)
        identity = _ABSENT_ID
    else:
        identity = _find_resource(alone, snapshot, identity, pointer)
        snapshot = _delete_pointer(snapshot, identity, pointer)
    return PreparedCase(name, expected, shared, snapshot, identity)


def _find_resource(alone: Bundle, snapshot: Snapshot, identity: str, pointer: str) -> str:
    """Return the evaluated resource that has a pointer: that of the case file, else the first in baseline order."""
    evaluated = [identity]
    evaluated += [finding.resource for finding in evaluate(alone, snapshot, EvaluationOptions(DEFAULT_AS_OF)).findings]
    documents = {str(resource.get("id")).lower(): resource for resource in snapshot.resources}
    holders = (one for one in evaluated if has_value(documents.get(one.lower(), {}), pointer))
    return next(holders, identity)


def _add_workload(snapshot: Snapshot, workload: JsonObject, pointer: str, place: str) -> Snapshot:
    """Add a declared workload: the declarable part of the evaluated one, without the pointer."""
    try:
        declared = DeclaredWorkload.model_validate(without(workload, pointer) | {"id": _ABSENT_ID})
    except ValidationError as error:
        raise BundleError(f"`{pointer}` cannot be left out: {error.errors()[0]['msg']}", place=(place,)) from error
    return snapshot.model_copy(update={"workloads": (*snapshot.workloads, declared)})


def _edit_approval(snapshot: Snapshot, identity: str, pointer: str, place: str) -> Snapshot:
    """Return the snapshot with a pointer deleted from the approval of an id."""
    if all(lowered(approval.id) != lowered(identity) for approval in snapshot.approvals):
        raise BundleError(
            f"no approval has the id `{identity}`", place=(place,), remedy="set `judged` to an approval's id"
        )
    try:
        approvals = tuple(
            Approval.model_validate(without(approval.model_dump(by_alias=True), pointer))
            if lowered(approval.id) == lowered(identity)
            else approval
            for approval in snapshot.approvals
        )
    except ValidationError as error:
        raise BundleError(f"`{pointer}` cannot be left out: {error.errors()[0]['msg']}", place=(place,)) from error
    return snapshot.model_copy(update={"approvals": approvals})


def _evaluates(policy: Policy, kind: str) -> bool:
    return any(target.type.lower() == kind for target in policy.header.judges)


def _find_workload(snapshot: Snapshot, identity: str, facts: Facts) -> JsonObject:
    """Return the declarable part of the workload that is reported under an id."""
    reported = [workload for workload in derive(snapshot, facts) if workload.reported_id.lower() == identity.lower()]
    stated = reported[0].document if reported else {}
    return {name: stated[name] for name in _WORKLOAD_FIELDS if stated.get(name) is not None}


def _delete_pointer(snapshot: Snapshot, identity: str, pointer: str) -> Snapshot:
    target = identity
    if pointer.startswith("workspace:"):
        target, pointer = workspace_of(identity) or identity, pointer.removeprefix("workspace:")
    resources = tuple(
        without(resource, pointer) if str(resource.get("id")).lower() == target.lower() else resource
        for resource in snapshot.resources
    )
    return snapshot.model_copy(update={"resources": resources})


def without(document: JsonObject, pointer: str) -> JsonObject:
    """Return a copy without the field of a JSON Pointer; `*` means every member of a list or object."""
    parts = keys_of(pointer)
    copy: JsonObject = _without(document, parts)
    return copy


def _without(value: object, parts: Sequence[str]) -> Any:
    head, *rest = parts
    if isinstance(value, dict):
        members = [(key, member, head in ("*", key)) for key, member in value.items()]
        return {key: _without(member, rest) if named else member for key, member, named in members if rest or not named}
    if isinstance(value, list):
        entries = [(entry, head in ("*", str(index))) for index, entry in enumerate(value)]
        return [_without(entry, rest) if named else entry for entry, named in entries if rest or not named]
    return value


def _find_evaluated_id(case: Case, baselines: Baselines, place: str) -> str:
    """Return the id of the evaluated baseline, after its patch."""
    if case.baseline is None:
        raise BundleError("the case has no `baseline`", place=(place,), remedy="set it to the file stem of a baseline")
    if case.baseline not in baselines.resources:
        raise no_baseline(case.baseline, baselines, place)
    return str(merged(baselines.resources[case.baseline], case.patch).get("id", ""))
