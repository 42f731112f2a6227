"""The Kubernetes webhook: converts AdmissionReview requests to responses. Pure: no I/O, no clock.

Objects of Azure Service Operator and of the Azure ML extension are evaluated as the changes of Azure resources that
they request; all others are allowed. What cannot be read or decided is denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from policyeng.errors import InputError, PolicyengError
from policyeng.facts.ids import fold_id
from policyeng.models import Change, Decision, Denial, Finding, JsonObject, Origin, Outcome, Unknown
from policyeng.report.escaping import visible
from policyeng.report.phrases import count, denial_sentence, denials, shorten_id, unknown_sentence, unknowns
from policyeng.server.kubernetes_changes import ReviewedObject, convert_request
from policyeng.server.review_request import API_VERSION, KIND, request_in, request_of
from policyeng.sources.kubernetes.owners import BesideSnapshot

_Reason = TypeVar("_Reason", Denial, Unknown)
_MOST_MESSAGE = 4000
_MOST_LINES = 9
_MOST_LINE = 400
_MOST_WARNING = 256
_MOST_WARNINGS = 14
_MOST_VALUE = 1024
_MOST_DENIALS = 3
_MOST_UNDECIDED = 3


def answer(uid: str, *, allowed: bool, **members: object) -> JsonObject:
    """Return an AdmissionReview response; empty members are omitted."""
    response = {"uid": uid, "allowed": allowed, **{key: value for key, value in members.items() if value}}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def of_decision(uid: str, decision: Decision, asked: ReviewedObject, decision_id: str) -> JsonObject:
    """Return the response for a decision."""
    annotations = {
        "decision-id": _shorten(visible(decision_id), _MOST_VALUE),
        "denied-policies": _list_policies(decision.denied, _MOST_VALUE),
        "exit-code": str(decision.exit_code),
        "snapshot-digest": _shorten(decision.snapshot.digest, _MOST_VALUE),
    }
    return answer(
        uid,
        allowed=decision.allowed,
        status=None if decision.allowed else _status(decision, asked),
        warnings=_limit(_warnings(decision, asked)),
        auditAnnotations={key: value for key, value in annotations.items() if value},
    )


def of_nothing(uid: str, asked: ReviewedObject) -> JsonObject:
    """Return the response to a request that changes nothing in Azure."""
    return answer(uid, allowed=True, warnings=_limit(asked.remarks))


def of_error(uid: str, error: PolicyengError, decision_id: str, *, unfit: bool = False) -> JsonObject:
    """Return the response without a decision: the request is invalid (`unfit`), or the evaluation failed."""
    status = {
        "code": 422 if unfit else 500,
        "message": _shorten(visible(f"policyeng could not decide: {error}"), _MOST_MESSAGE),
        "reason": "Invalid" if unfit else "InternalError",
    }
    annotations = {"decision-id": _shorten(visible(decision_id), _MOST_VALUE), "exit-code": "2"}
    non_empty = {key: value for key, value in annotations.items() if value}
    return answer(uid, allowed=False, status=status, auditAnnotations=non_empty)


def _status(decision: Decision, asked: ReviewedObject) -> JsonObject:
    undecided = decision.exit_code == 2
    lines = [*_lines(decision, asked)]
    policies = len({finding.policy for finding in decision.denied})
    heading = "policyeng could not decide" if undecided else f"{count(policies, 'policy')} of policyeng"
    message_lines = [f"{heading}:", *lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        message_lines.append(f"and {len(lines) - _MOST_LINES} more")
    message = _shorten("\n".join(message_lines), _MOST_MESSAGE)
    return {
        "code": 500 if undecided else 403,
        "message": message,
        "reason": "InternalError" if undecided else "Forbidden",
    }


def _lines(decision: Decision, asked: ReviewedObject) -> Iterator[str]:
    for problem in decision.problems:
        if problem.level == "error":
            yield _shorten(
                visible(f"{problem.place}: {problem.message}" if problem.place else problem.message), _MOST_LINE
            )
    for finding in decision.denied:
        reasons = _reasons(finding, asked.fields)
        more = f"; and {len(reasons) - _MOST_DENIALS} more" if len(reasons) > _MOST_DENIALS else ""
        on = "" if fold_id(finding.resource) in asked.fields else f" on {shorten_id(finding.resource)}"
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


def _warnings(decision: Decision, asked: ReviewedObject) -> Iterator[str]:
    """Yield the warnings, the most important first."""
    yield from (f"{each.policy} fails: {_shorten_finding(each, asked)}" for each in decision.warned)
    here = [each for each in decision.standing if fold_id(each.resource) in asked.fields]
    yield from (f"{each.policy} still fails, as before the change: {_shorten_finding(each, asked)}" for each in here)
    yield from asked.remarks
    yield from (problem.message for problem in decision.problems if problem.level == "warning")
    open_ = decision.undecided
    if len(open_) > _MOST_UNDECIDED:
        yield f"{count(len(open_), 'finding')} could not be decided: {_list_policies(open_, _MOST_WARNING // 2)}"
    else:
        yield from (f"{each.policy} could not be decided: {_reasons(each, asked.fields)[0]}" for each in open_)


def _shorten_finding(finding: Finding, asked: ReviewedObject) -> str:
    """Return a finding in one sentence, without the actual values."""
    bare = tuple(denial.model_copy(update={"actual": None, "expected": None}) for denial in denials(finding))
    on = "" if fold_id(finding.resource) in asked.fields else f" on {shorten_id(finding.resource)}"
    return _reasons(finding.model_copy(update={"denials": bare}), asked.fields)[0] + on


def _limit(warnings: Iterable[str]) -> list[str]:
    texts = [_shorten(visible(warning), _MOST_WARNING) for warning in dict.fromkeys(warnings)]
    more = [f"and {len(texts) - _MOST_WARNINGS} more warnings"] if len(texts) > _MOST_WARNINGS else []
    return texts[:_MOST_WARNINGS] + more


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


#: Decides on changes, after others that the cluster holds already have been made of the snapshot: `(held, changes)`.
Admit = Callable[[Sequence[Change], Sequence[Change]], Decision]


class Reviewed(NamedTuple):
    """An AdmissionReview as it goes out, and why it is denied where nothing was decided."""

    answer: JsonObject
    refusal: PolicyengError | None = None


def review(document: object, beside: BesideSnapshot, admit: Admit, *, decision_id: str = "") -> Reviewed:
    """Answer an AdmissionReview; one for a dry run is answered alike, for nothing is kept of any.

    Args:
        document: the review, as JSON has it.
        beside: the current snapshot.
        admit: decides.
        decision_id: by which the answer is found in the decision log.

    Raises:
        InputError: it is no review of `admission.k8s.io/v1`, so that there is nothing to answer.
    """
    given = request_in(document)
    uid: str = given["uid"]
    try:
        request = request_of(given)
        if request is None:
            return Reviewed(answer(uid, allowed=True))
        asked = convert_request(request, beside)
    except InputError as error:
        return Reviewed(of_error(uid, error, decision_id, unfit=True), error)
    if not asked.changes:
        return Reviewed(of_nothing(uid, asked))
    try:
        decision = admit(asked.held, asked.changes)
    except PolicyengError as error:
        return Reviewed(of_error(uid, error, decision_id), error)
    return Reviewed(of_decision(uid, decision, asked, decision_id))
