"""`policyeng audit history`: compliance of estates over time, and the history of findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from policyeng.bundle.policy_selection import selected
from policyeng.cli import options
from policyeng.cli.audit.options import EstateName, StoreUrl, estates_of, store_of
from policyeng.cli.console import print_form, print_line, show_progress
from policyeng.cli.context import find_known, moment_of, split
from policyeng.cli.evaluation_options import OpaServerOptions
from policyeng.cli.option_groups import with_group
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.facts.ids import fold_id

if TYPE_CHECKING:
    from datetime import datetime

    from policyeng.audit.diff.trends import ComplianceTrend, FindingHistory
    from policyeng.audit.records import AuditRun, FindingSpan, History

_FORMATS = ("text", "json", "csv", "markdown")

Resource = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Show the finding history of this resource (an ARM id or its last segments)."),
]
Since = Annotated[str | None, typer.Option(metavar="RUN|TIME", help="Only runs from this run or time (ISO 8601) on.")]
RunNumber = Annotated[
    int | None, typer.Option("--run", metavar="N", min=1, help="Show the changes of this run and their causes.")
]
HistoryFormat = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help=f"Output format: {', '.join(_FORMATS)}.")
]


ControlsOf = Annotated[
    str | None,
    typer.Option("--framework", metavar="NAME", help="Show the status of each control of this framework per run."),
]


@with_group("server", OpaServerOptions)
def history(
    estate: EstateName = None,
    select: options.Select = None,
    resource: Resource = None,
    run: RunNumber = None,
    since: Since = None,
    framework: ControlsOf = None,
    format_: HistoryFormat = "text",
    store: StoreUrl = None,
    config: options.Config = None,
    *,
    server: OpaServerOptions,
) -> int:
    """Show compliance over time: counts, compliance rates, and new, fixed and reopened findings per run.

    With --resource, show the history of each finding on that resource instead. With --run N, show all changes of that
    run with their causes. With --framework NAME, show the status of each control in every run.

    Examples:
      policyeng audit history production
      policyeng audit history production --select AML-NET-001 --since 2026-01-01 --format csv
      policyeng audit history --resource "$WORKSPACE_ID" --select AML-NET-001
      policyeng audit history --run 12
    """
    from policyeng.audit.diff import trends

    format_ = find_known(format_, _FORMATS, "format")
    wanted = _Wanted(split(select), resource or "", since, run, server.opa())
    found: Sequence[object]
    with store_of(store, config) as kept, show_progress("reading"):
        estates = estates_of(kept, kept.run(run).estate if run and estate is None else estate)
        if framework:
            forms = trends.CONTROL_FORMATS
            found = [trends.compute_control_trend(kept, one, wanted.runs(kept, one), framework) for one in estates]
        elif resource or run:
            forms, found = trends.LIVES, [life for name in estates for life in wanted.lives(kept, name)]
            if not found:
                print_line(f"policyeng: {wanted.nothing()}", error=True)
        else:
            forms, found = trends.COURSES, [wanted.course(kept, name) for name in estates]
    print_form(forms[format_], found, format_)
    return 0


class _Wanted:
    """The selected runs, resources and policies."""

    def __init__(
        self, selectors: Sequence[str], resource: str, since: str | None, run: int | None, opa: OpaOptions
    ) -> None:
        """Parse the options.

        Raises:
            UsageError: `since` is neither a run number nor a time.
        """
        self._selectors, self._resource, self._run, self._opa = selectors, resource, run, opa
        self._number = int(since) if since and since.isdecimal() else None
        self._time: datetime | None = (
            moment_of(since, "--since", starts=True) if since and self._number is None else None
        )

    def nothing(self) -> str:
        """Return the message for an empty result."""
        what = f"no failures of `{self._resource}` are known" if self._resource else "no findings changed"
        return f"{what} in run {self._run}" if self._run else what

    def runs(self, kept: History, estate: str) -> list[AuditRun]:
        """Return the selected runs of an estate, oldest first.

        Raises:
            UsageError: there are none.
        """
        runs = [run for run in kept.runs(estate) if self._is_late(run)]
        if not runs:
            raise UsageError(f"no run of `{estate}` is selected", remedy="omit `--since`, or name an earlier run")
        return runs

    def course(self, kept: History, estate: str) -> ComplianceTrend:
        """Return the compliance trend of an estate, for all or only the selected policies."""
        from policyeng.audit.diff.inputs import Readings
        from policyeng.audit.diff.trends import compute_trend

        runs = kept.runs(estate)
        policies = self._policies(kept, runs[-1])
        wanted = (lambda span: span.policy in policies) if policies else None
        course = compute_trend(estate, runs, kept.spans(estate), wanted, Readings(kept, runs).is_unread)
        late = {run.number for run in runs if self._is_late(run)}
        return course.model_copy(update={"points": tuple(point for point in course.points if point.run in late)})

    def lives(self, kept: History, estate: str) -> Iterator[FindingHistory]:
        """Yield the finding histories of the resource, or the changes of one run."""
        from policyeng.audit.diff.trends import list_histories

        policies = self._policies(kept, kept.runs(estate, last=1)[-1])
        spans = (span for span in kept.spans(estate) if self._is_on(span) and (not policies or span.policy in policies))
        return list_histories(kept, estate, spans, self._is_late, self._opa)

    def _is_on(self, span: FindingSpan) -> bool:
        """Check whether a span belongs to the resource, which may be given by the end of its id."""
        queried, whole = fold_id(self._resource), fold_id(span.resource)
        return not queried or whole == queried or whole.endswith(f"/{queried.removeprefix('/')}")

    def _is_late(self, run: AuditRun) -> bool:
        if self._run is not None:
            return run.number == self._run
        if self._number is not None:
            return run.number >= self._number
        return self._time is None or run.as_of >= self._time

    def _policies(self, kept: History, run: AuditRun) -> frozenset[str]:
        """Return the ids of the selected policies; empty if all are selected.

        A selector that matches no policy of the newest run may be the id of a policy of an earlier run.
        """
        if not self._selectors:
            return frozenset()
        bundle, ids = kept.bundle(run), set[str]()
        for selector in self._selectors:
            try:
                ids |= {policy.id for policy in selected(bundle, [selector]).policies}
            except UsageError:
                earlier = {span.policy for span in kept.spans(run.estate)}
                if selector.upper() not in earlier:
                    raise
                ids.add(selector.upper())
        return frozenset(ids)
