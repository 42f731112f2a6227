"""Explain the findings of a policy: evaluate it once more, and record how each result comes about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from policyeng.engines import EvaluationRequest, Pair, run_engine
from policyeng.engines.explanation import Explainer
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.findings import findings_of
from policyeng.evaluation.unknown_markers import mark_snapshot
from policyeng.frozen import replace
from policyeng.models import Finding
from policyeng.models.explanation import ExplanationNode, FindingExplanation


def prepare_queries(context: EvaluationContext, as_of: datetime) -> EvaluationRequest:
    """Return a request for queries, which can read whatever the policies of the bundle read together."""
    named = frozenset[str]().union(*context.bundle.queried_types.values())
    return replace(context.work(as_of), marking=mark_snapshot(context.estate, named), apart={})


def explain_findings(
    context: EvaluationContext, as_of: datetime, is_explained: Callable[[Finding], bool]
) -> Iterator[FindingExplanation]:
    """Yield an explanation of each finding that is chosen.

    Args:
        context: the policies and the snapshot.
        as_of: the evaluation time.
        is_explained: chooses findings.

    Raises:
        EngineError: the bundle does not compile.
    """
    request = context.work(as_of)
    explainer = Explainer(context.bundle)
    findings = findings_of(context, run_engine(request))
    for column in findings.columns:
        for position, finding in column.items():
            if is_explained(finding):
                policy = column.policy
                nodes: tuple[ExplanationNode, ...] = ()
                is_whole = True
                if position in request.positions.get(policy, ()):
                    pair = Pair(policy, position, request.subjects[position].workspace)
                    _, nodes, is_whole = explainer.explain_pair(request, pair)
                yield FindingExplanation(finding=finding, nodes=nodes, is_whole=is_whole)
