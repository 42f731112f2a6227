"""The Kubernetes webhook: an AdmissionReview comes in, one goes out. Pure: no I/O, no clock.

Objects of Azure Service Operator and of the Azure ML extension are judged as the changes of Azure resources that they
ask for; all others are allowed with nothing said. What cannot be read, or not be decided, is denied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from policyeng.errors import InputError, PolicyengError
from policyeng.models import Change, Decision, JsonObject
from policyeng.server.cluster_changes import asked_for
from policyeng.server.review_answer import answer, of_decision, of_error, of_nothing
from policyeng.server.review_request import request_in, request_of
from policyeng.sources.kubernetes.beside_snapshot import BesideSnapshot

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
        asked = asked_for(request, beside)
    except InputError as error:
        return Reviewed(of_error(uid, error, decision_id, unfit=True), error)
    if not asked.changes:
        return Reviewed(of_nothing(uid, asked))
    try:
        decision = admit(asked.held, asked.changes)
    except PolicyengError as error:
        return Reviewed(of_error(uid, error, decision_id), error)
    return Reviewed(of_decision(uid, decision, asked, decision_id))
