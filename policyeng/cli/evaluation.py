"""The evaluation of `policyeng check`, from the command line to the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from policyeng.bundle import Bundle
from policyeng.cli.console import print_line
from policyeng.cli.input_options import refuse_urls
from policyeng.cli.input_summary import reading_lines
from policyeng.cli.progress import show_progress
from policyeng.configuration import Settings
from policyeng.engines import OpaOptions
from policyeng.evaluation import evaluate
from policyeng.frozen import frozen
from policyeng.models import Evaluation, Snapshot
from policyeng.ownership import OWNER_TAG
from policyeng.sources import DocumentContext, FileWalk, read_inputs

if TYPE_CHECKING:
    from policyeng.cli.check import CheckOptions
    from policyeng.frameworks import Framework


@frozen
class CheckRequest:
    """The options of one run, and what was computed from them."""

    asked: CheckOptions
    from_format: str | None
    said: DocumentContext
    walk: FileWalk
    as_of: datetime
    engine: str
    opa: OpaOptions

    @property
    def inputs(self) -> Sequence[str]:
        """The inputs; the current directory if none is given."""
        return self.asked.inputs or ["."]


@frozen
class CheckOutcome:
    """An evaluation and its inputs; `options` are the arguments to pass to `evaluate` to repeat it."""

    bundle: Bundle
    snapshot: Snapshot
    options: Mapping[str, Any]
    evaluation: Evaluation


def evaluate_inputs(request: CheckRequest, settings: Settings) -> CheckOutcome:
    """Read the inputs and evaluate them; shows progress on standard error if that is a terminal.

    Raises:
        PolicyengError: the policies, the settings or the inputs cannot be used.
    """
    asked = request.asked
    held = asked.setup(settings)
    frameworks: Sequence[Framework] = ()
    if settings.frameworks:
        from policyeng.cli.controls import narrow  # most runs name no framework

        held, frameworks = narrow(held, settings)
    earlier = None
    if asked.baseline:
        from policyeng.sources import read_report  # most runs have none

        earlier = read_report(asked.baseline)
    refuse_urls(request.inputs)
    with show_progress("reading", "files"):
        stdin = sys.stdin.buffer.read() if "-" in request.inputs and sys.stdin is not None else None
        read = read_inputs(
            request.inputs,
            from_format=request.from_format,
            stdin=stdin,
            said=request.said,
            walk=request.walk,
            **held.bundle.wanted,
        )
    snapshot = read.snapshot
    for line in reading_lines(read.read, read.skipped, show_skipped=asked.show_skipped):
        print_line(line, error=True)
    with show_progress("evaluating", "pairs"):
        options: dict[str, Any] = {
            "as_of": request.as_of,
            "exemptions": held.exemptions,
            "parameters": held.parameters,
            "engine": request.engine,
            "opa": request.opa,
            "fail_on": settings.fail_on,
            "strict_unknown": settings.strict_unknown,
        }
        evaluation = evaluate(
            held.bundle, snapshot, **options, jobs=asked.jobs, problems=(*read.problems, *held.problems)
        )
        evaluation = evaluation.model_copy(update={"settings": held.applied})
        if frameworks:
            from policyeng.cli.controls import with_frameworks

            evaluation = with_frameworks(evaluation, frameworks, held, snapshot)
    if asked.owner_tag.lower() != OWNER_TAG:
        from policyeng.report.context import assign_owners, owners_of

        evaluation = assign_owners(evaluation, owners_of(snapshot, asked.owner_tag))
    if earlier is not None:
        from policyeng.evaluation.baseline import apply_baseline

        evaluation = apply_baseline(evaluation, earlier, settings.fail_on, strict_unknown=settings.strict_unknown)
    return CheckOutcome(held.bundle, snapshot, options, evaluation)
