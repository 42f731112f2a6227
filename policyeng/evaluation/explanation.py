"""Explain the findings of a policy: evaluate it once more, and record how each result comes about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from policyeng.engines import EvaluationRequest, run_engine
from policyeng.engines.explanation import Explainer
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.findings import entries_of
from policyeng.evaluation.unknown_markers import mark_snapshot
from policyeng.frozen import replace
from policyeng.models import Finding
from policyeng.models.explanation import FindingExplanation
from policyeng.models.findings import Passed


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
    entries = entries_of(context, run_engine(request))
    explainer = Explainer(context.bundle)
    evaluated = set(request.pairs)
    for entry, pair in entries:
        finding = entry.finding() if isinstance(entry, Passed) else entry
        if is_explained(finding):
            _, nodes, is_whole = explainer.explain_pair(request, pair) if pair in evaluated else (None, (), True)
            yield FindingExplanation(finding=finding, nodes=nodes, is_whole=is_whole)
