"""Answer admission reviews of Kubernetes: parse the request, find the changes, and build the response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

from policyeng.errors import InputError, PolicyengError
from policyeng.facts.ids import fold_id, is_open, types_of
from policyeng.models import (
    Change,
    Decision,
    Denial,
    Finding,
    JsonObject,
    Operation,
    Origin,
    Outcome,
    Problem,
    Unknown,
    lowered,
    relevant_entries,
)
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.report.escaping import visible
from policyeng.report.phrases import (
    count,
    denial_sentence,
    denials,
    ledger_entry_sentence,
    problem_sentence,
    shorten_id,
    unknown_sentence,
    unknowns,
)
from policyeng.server.schemas import (
    MAX_ANNOTATION,
    MAX_MESSAGE,
    MAX_WARNING,
    MAX_WARNINGS,
    AdmissionReviewAnswer,
    ReviewResponse,
    ReviewStatus,
)
from policyeng.sources.changes.what_if import build_unread
from policyeng.sources.kubernetes.aso_resource import is_kept, is_unmanaged
from policyeng.sources.kubernetes.objects import EXTENSION_GROUP, get_inner, group_of, words
from policyeng.sources.kubernetes.single_object import BesideSnapshot, is_checked
from policyeng.sources.parsed import Placed, format_value

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_LISTED = f"list `v1` in the webhook's `admissionReviewVersions`; only `{API_VERSION}` is answered"


class Verb(StrEnum):
    """What is done to an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class ReviewRequest(NamedTuple):
    """A request about an object that policies apply to.

    Attributes:
        object: the new object; None in a deletion.
        old: the current object; None in a creation.
    """

    verb: Verb
    object: JsonObject | None
    old: JsonObject | None


def request_in(review: object) -> JsonObject:
    """Return the request of a review; it must have a uid, which identifies its response.

    Raises:
        InputError: it is not a review of the supported version.
    """
    kind, version = get_inner(review, "kind"), get_inner(review, "apiVersion")
    if kind != KIND or not isinstance(version, str):
        message = f"not an admission review: {kind_of(review)} without the `apiVersion` and `kind` of one"
        raise InputError(message, place=("/",), remedy=f"send an `{KIND}` of `{API_VERSION}`")
    if version != API_VERSION:
        message = f"unsupported version of admission reviews: `{shortened(version)}`"
        raise InputError(message, place=("/apiVersion",), remedy=_LISTED)
    request = get_inner(review, "request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise InputError("admission review without a request uid", place=("/request/uid",), remedy="add it")
    return request


def request_of(request: JsonObject) -> ReviewRequest | None:
    """Return the object and the operation of a request; None if policies do not apply to it or nothing changes.

    Raises:
        InputError: the operation or the object is invalid; names the place in the review.
    """
    objects = [_object(request, key) for key in ("object", "oldObject")]
    kind = _kind(request)
    if not any(is_checked(*each) for each in (kind, *map(_kind_of, objects))):
        return None
    operation = request.get("operation")
    if operation not in list(Verb):
        message = f"unknown operation: {format_value(operation)}"
        raise InputError(message, place=("/request/operation",), remedy=f"use one of {', '.join(Verb)}")
    # An update of the status is what the operator reports; the API server leaves the `spec` as it is then.
    if operation == Verb.CONNECT or (operation == Verb.UPDATE and request.get("subResource") == "status"):
        return None
    needed = "oldObject" if operation == Verb.DELETE else "object"
    for key, given in zip(("object", "oldObject"), objects, strict=True):
        if given is None and key == needed:
            raise InputError(f"the request has no `{key}`", place=(f"/request/{key}",), remedy="send it")
        if given is not None and _kind_of(given) != kind:
            message = f"the object is not a `{shortened(' '.join(kind))}`, the `kind` of the request"
            raise InputError(message, place=(f"/request/{key}",), remedy="send the object that the request is about")
    return ReviewRequest(Verb(operation), *objects)


def _object(request: JsonObject, key: str) -> JsonObject | None:
    value = request.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise InputError(
        f"not an object: {format_value(value)}", place=(f"/request/{key}",), remedy="send an object, or null"
    )


def _kind(request: JsonObject) -> tuple[str, str]:
    """Return the `apiVersion` and `kind` of the object of a request."""
    parts = [get_inner(request, "kind", part) for part in ("group", "version", "kind")]
    group, version, kind = (part if isinstance(part, str) else "" for part in parts)
    if not version or not kind:
        raise InputError("the request has no kind", place=("/request/kind",), remedy="add it")
    return (f"{group}/{version}" if group else version), kind


def _kind_of(document: JsonObject | None) -> tuple[str, str]:
    parts = [get_inner(document, part) for part in ("apiVersion", "kind")]
    version, kind = (part if isinstance(part, str) else "" for part in parts)
    return version, kind


_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
_TYPES = "/properties/properties/instanceTypes"
_DETACH = "annotate it with `serviceoperator.azure.com/reconcile-policy: detach-on-delete` to delete the object alone"
_UNPLACED = "its ARM id is not known, and it is evaluated as a new resource; give `spec.owner.armId`"
_UNREAD = "the stored object cannot be read, and the snapshot does not contain the resource"
_UNREADABLE = "the object cannot be evaluated, and the update does not change its spec"


class ReviewedObject(NamedTuple):
    """The changes that a request makes.

    Attributes:
        prior: changes that turn the snapshot into the current state of the cluster.
        changes: the requested changes to that state; empty if nothing changes in Azure.
        fields: pointers into the object, by lower-case ARM id and by JSON Pointer into that resource.
        remarks: remarks for the caller.
    """

    prior: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    fields: Mapping[str, Mapping[str, str]] = {}
    remarks: tuple[str, ...] = ()


def convert_request(request: ReviewRequest, current: BesideSnapshot) -> ReviewedObject:
    """Return the changes that a request about a supported object makes.

    Raises:
        InputError: the object or its ARM id cannot be determined; with the place and the remedy.
    """
    if request.verb is Verb.DELETE:
        return _deleted(request, current)
    old = request.old if request.verb is Verb.UPDATE else None
    new = request.object or {}
    known = _find_assigned_id(old)
    if is_unmanaged(new):
        return ReviewedObject()
    try:
        drawn = _build_changes(new, known, current, _type_names(old))
    except InputError as error:
        if old is not None and _has_same_spec(old, new):
            return ReviewedObject(remarks=(f"{_UNREADABLE}: {error}",))
        raise
    prior: tuple[Change, ...] = ()
    if old is not None and not is_unmanaged(old):
        prior = _read_old_object(old, known, current)
    remarks = [*drawn.remarks]
    if any(is_open(change.id) for change in drawn.changes) and not _is_extensions(new):
        remarks.append(_UNPLACED)
    return drawn._replace(prior=prior, remarks=tuple(remarks))


def _deleted(request: ReviewRequest, current: BesideSnapshot) -> ReviewedObject:
    """Return the deletion, for which the resource id of the object is enough."""
    old = request.old or {}
    if is_kept(old):
        return ReviewedObject()
    known = _find_assigned_id(old)
    prior = _read_old_object(old, known, current)
    if _is_extensions(old):
        taken = tuple(_typed(None, _type_names(old), current))
        return ReviewedObject(
            prior, taken or tuple(Change(operation=Operation.DELETE, id=change.id) for change in prior)
        )
    try:
        identity = prior[0].id if prior else current.identity(old, known)
    except InputError as error:
        raise InputError(error.message, remedy=_DETACH) from None
    if not prior and current.resource(identity) is None:
        if is_open(identity) or not types_of(identity):
            raise InputError("the object cannot be read, and its resource is not known", remedy=_DETACH)
        prior = (build_unread(identity, _UNREAD),)  # it exists, because the cluster contains its object
    return ReviewedObject(prior, (Change(operation=Operation.DELETE, id=identity),))


def _build_changes(
    document: JsonObject, known: str, current: BesideSnapshot, gone: Sequence[str] = ()
) -> ReviewedObject:
    """Return the changes that apply an object to Azure, and delete the instance types that it no longer has.

    Raises:
        InputError: it cannot be read.
    """
    read = current.read(document, known)
    entry = read.entry
    if isinstance(entry, Problem):
        raise InputError(entry.message, place=(entry.place,), remedy=entry.remedy)
    if entry is None:
        return ReviewedObject()
    changes = tuple(_typed(entry, gone, current)) if _is_extensions(document) else (_replaced(entry),)
    fields = {fold_id(change.id): entry.fields for change in changes}
    return ReviewedObject((), changes, fields, tuple(f"{each.place}: {each.message}" for each in read.remarks))


def _read_old_object(document: JsonObject, known: str, current: BesideSnapshot) -> tuple[Change, ...]:
    """Return the content of the old object; empty if unreadable, so that everything in the new one counts as new."""
    try:
        return _build_changes(document, known, current).changes
    except InputError:
        return ()


def _replaced(entry: Placed) -> Change:
    return Change(
        operation=Operation.REPLACE,
        id=entry.resource["id"],
        resource=entry.resource,
        unreadable=entry.unreadable,
        carried=entry.carried,
    )


def _typed(entry: Placed | None, gone: Sequence[str], current: BesideSnapshot) -> Iterator[Change]:
    """Yield the changes that put instance types into every attachment of the cluster in the snapshot.

    Without an attachment, or with attachments of several clusters, the instance types become a separate compute.

    Args:
        entry: the compute with the new instance types; None for none.
        gone: the names of the instance types to remove.
        current: the current snapshot.
    """
    attachments = [
        compute
        for compute in current.of_type(_COMPUTES)
        if lowered(words(get_inner(compute, "properties", "computeType"))) == "kubernetes"
    ]
    clusters = {lowered(words(get_inner(compute, "properties", "resourceId"))) for compute in attachments}
    if len(clusters) != 1 or ("" in clusters and len(attachments) > 1):
        if entry is not None:
            yield _replaced(entry)
        return
    types = get_inner(entry.resource, "properties", "properties", "instanceTypes") if entry is not None else None
    joined = {**dict.fromkeys(gone), **(types if isinstance(types, dict) else {})}
    unresolved = entry.unreadable.items() if entry is not None else ()
    for compute in attachments:
        change = _with_types(compute, joined, current)
        more = {pointer: why for pointer, why in unresolved if pointer.startswith(f"{_TYPES}/")}
        yield change.model_copy(update={"unreadable": {**change.unreadable, **more}})


def _with_types(compute: JsonObject, types: JsonObject, current: BesideSnapshot) -> Change:
    """Return a compute with instance types added, and those that are null removed."""
    properties = compute["properties"]
    inside = properties.get("properties")
    inside = inside if isinstance(inside, dict) else {}
    there = inside.get("instanceTypes")
    joined = {**(there if isinstance(there, dict) else {}), **types}
    kept = {name: spec for name, spec in joined.items() if spec is not None}
    resource = {**compute, "properties": {**properties, "properties": {**inside, "instanceTypes": kept}}}
    return Change(
        operation=Operation.REPLACE,
        id=compute["id"],
        resource=resource,
        unreadable=current.snapshot.unreadable.get(lowered(compute["id"]), {}),
        carried=current.snapshot.carried.get(lowered(compute["id"])),
    )


def _type_names(document: JsonObject | None) -> list[str]:
    """Return the names of an instance type or of a list of them; for any other object, its own name."""
    listed = get_inner(document, "items")
    return [
        words(get_inner(entry, "metadata", "name")) for entry in (listed if isinstance(listed, list) else [document])
    ]


def _is_extensions(document: JsonObject) -> bool:
    return group_of(document.get("apiVersion")) == EXTENSION_GROUP


def _find_assigned_id(old: JsonObject | None) -> str:
    """Return the id that the service assigned to the resource of an existing object."""
    return words(get_inner(old, "status", "id"))


def _has_same_spec(old: JsonObject, new: JsonObject) -> bool:
    """Return whether two objects are equal, except for what the API server and the operator write."""
    parts = [{key: value for key, value in each.items() if key not in ("metadata", "status")} for each in (old, new)]
    return parts[0] == parts[1] and is_unmanaged(old) == is_unmanaged(new)


_Reason = TypeVar("_Reason", Denial, Unknown)
_MOST_LINES = 9
_MOST_LINE = 400
_MOST_DENIALS = 3
_MOST_UNDECIDED = 3


def answer(
    uid: str,
    *,
    allowed: bool,
    status: ReviewStatus | None = None,
    warnings: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
) -> AdmissionReviewAnswer:
    """Return an AdmissionReview response; empty members and annotations are omitted."""
    response: ReviewResponse = {"uid": uid, "allowed": allowed}
    if status is not None:
        response["status"] = status
    if warnings:
        response["warnings"] = [*warnings]
    if present := {key: value for key, value in (annotations or {}).items() if value}:
        response["auditAnnotations"] = present
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def of_decision(uid: str, decision: Decision, reviewed: ReviewedObject, decision_id: str) -> AdmissionReviewAnswer:
    """Return the response for a decision."""
    annotations = {
        "decision-id": _shorten(visible(decision_id), MAX_ANNOTATION),
        "denied-policies": _list_policies(decision.denied, MAX_ANNOTATION),
        "exit-code": str(decision.exit_code),
        "snapshot-digest": _shorten(decision.snapshot.digest, MAX_ANNOTATION),
    }
    return answer(
        uid,
        allowed=decision.allowed,
        status=None if decision.allowed else _status(decision, reviewed),
        warnings=_limit(_warnings(decision, reviewed)),
        annotations=annotations,
    )


def of_nothing(uid: str, reviewed: ReviewedObject) -> AdmissionReviewAnswer:
    """Return the response to a request that changes nothing in Azure."""
    return answer(uid, allowed=True, warnings=_limit(reviewed.remarks))


def of_error(uid: str, error: PolicyengError, decision_id: str, *, unfit: bool = False) -> AdmissionReviewAnswer:
    """Return the response without a decision: the request is invalid (`unfit`), or the evaluation failed."""
    status: ReviewStatus = {
        "code": 422 if unfit else 500,
        "message": _shorten(visible(f"policyeng could not decide: {error}"), MAX_MESSAGE),
        "reason": "Invalid" if unfit else "InternalError",
    }
    annotations = {"decision-id": _shorten(visible(decision_id), MAX_ANNOTATION), "exit-code": "2"}
    return answer(uid, allowed=False, status=status, annotations=annotations)


def _status(decision: Decision, reviewed: ReviewedObject) -> ReviewStatus:
    undecided = decision.exit_code == 2
    lines = [*_lines(decision, reviewed)]
    policies = len({finding.policy for finding in decision.denied})
    heading = (
        "policyeng could not decide"
        if undecided
        else f"{count(policies, 'policy')} of policyeng"
        if policies
        else "policyeng"
    )
    message_lines = [f"{heading}:", *lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        message_lines.append(f"and {len(lines) - _MOST_LINES} more")
    message = _shorten("\n".join(message_lines), MAX_MESSAGE)
    return {
        "code": 500 if undecided else 403,
        "message": message,
        "reason": "InternalError" if undecided else "Forbidden",
    }


def _lines(decision: Decision, reviewed: ReviewedObject) -> Iterator[str]:
    for problem in decision.problems:
        if problem.level == "error":
            yield _shorten(problem_sentence(problem), _MOST_LINE)
    if not decision.allowed:  # under `strict_unknown` these deny
        for entry in relevant_entries(decision.ledger):
            yield _shorten(f"not read: {ledger_entry_sentence(entry)}", _MOST_LINE)
    for finding in decision.denied:
        reasons = _reasons(finding, reviewed.fields)
        more = f"; and {len(reasons) - _MOST_DENIALS} more" if len(reasons) > _MOST_DENIALS else ""
        on = "" if fold_id(finding.resource) in reviewed.fields else f" on {shorten_id(finding.resource)}"
        sentence = "; ".join(reasons[:_MOST_DENIALS]) + more
        lead = "could not be evaluated: " if finding.outcome is Outcome.ERROR else ""
        yield _shorten(f"{finding.policy} ({finding.severity}){on}: {lead}{sentence}", _MOST_LINE)


def _reasons(finding: Finding, fields: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    """Return the reasons of a finding, with paths in the Kubernetes object."""
    there = Origin(file="", fields=fields.get(fold_id(finding.resource), {}))
    if finding.outcome is Outcome.FAIL:
        return [denial_sentence(_prefix_paths(denial, there)) for denial in denials(finding)]
    return [unknown_sentence(_prefix_paths(reason, there)) for reason in unknowns(finding)]


def _prefix_paths(reason: _Reason, there: Origin) -> _Reason:
    return reason.model_copy(update={"path": there.pointer_to(reason.path)})


def _warnings(decision: Decision, reviewed: ReviewedObject) -> Iterator[str]:
    """Yield the warnings, the most important first."""
    yield from (f"{each.policy} fails: {_shorten_finding(each, reviewed)}" for each in decision.warned)
    here = [each for each in decision.standing if fold_id(each.resource) in reviewed.fields]
    yield from (f"{each.policy} still fails, as before the change: {_shorten_finding(each, reviewed)}" for each in here)
    yield from reviewed.remarks
    yield from (problem.message for problem in decision.problems if problem.level == "warning")
    open_ = decision.undecided
    if len(open_) > _MOST_UNDECIDED:
        yield f"{count(len(open_), 'finding')} could not be decided: {_list_policies(open_, MAX_WARNING // 2)}"
    else:
        yield from (f"{each.policy} could not be decided: {_reasons(each, reviewed.fields)[0]}" for each in open_)


def _shorten_finding(finding: Finding, reviewed: ReviewedObject) -> str:
    """Return a finding in one sentence, without the actual values."""
    bare = tuple(denial.model_copy(update={"actual": None, "expected": None}) for denial in denials(finding))
    on = "" if fold_id(finding.resource) in reviewed.fields else f" on {shorten_id(finding.resource)}"
    return _reasons(finding.model_copy(update={"denials": bare}), reviewed.fields)[0] + on


def _limit(warnings: Iterable[str]) -> list[str]:
    texts = [_shorten(visible(warning), MAX_WARNING) for warning in dict.fromkeys(warnings)]
    listed = MAX_WARNINGS - 1
    more = [f"and {len(texts) - listed} more warnings"] if len(texts) > listed else []
    return texts[:listed] + more


def _list_policies(findings: Iterable[Finding], most: int) -> str:
    """Return the distinct policies of findings, as many as fit."""
    policies = list(dict.fromkeys(finding.policy for finding in findings))
    text = ""
    for position, policy in enumerate(policies):
        joined = f"{text}, {policy}" if text else policy
        if len(joined) > most - 16:
            return f"{text} and {len(policies) - position} more"
        text = joined
    return text


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


#: Decides on changes, after those that the cluster already contains were applied to the snapshot: `(prior, changes)`.
Admit = Callable[[Sequence[Change], Sequence[Change]], Decision]


class Reviewed(NamedTuple):
    """An AdmissionReview as it goes out, and why it is denied where nothing was decided."""

    answer: AdmissionReviewAnswer
    refusal: PolicyengError | None = None


def review(document: object, current: BesideSnapshot, admit: Admit, *, decision_id: str = "") -> Reviewed:
    """Return the response to an AdmissionReview; a dry run gets the same, because no review is stored.

    Args:
        document: the parsed JSON of the review.
        current: the current snapshot.
        admit: makes the decision.
        decision_id: the id of the response in the decision log.

    Raises:
        InputError: it is not a review of `admission.k8s.io/v1`, so no response is possible.
    """
    given = request_in(document)
    uid: str = given["uid"]
    try:
        request = request_of(given)
        if request is None:
            return Reviewed(answer(uid, allowed=True))
        reviewed = convert_request(request, current)
    except InputError as error:
        return Reviewed(of_error(uid, error, decision_id, unfit=True), error)
    if not reviewed.changes:
        return Reviewed(of_nothing(uid, reviewed))
    try:
        decision = admit(reviewed.prior, reviewed.changes)
    except PolicyengError as error:
        return Reviewed(of_error(uid, error, decision_id), error)
    return Reviewed(of_decision(uid, decision, reviewed, decision_id))
