"""What each report format is told beside the evaluation."""

from __future__ import annotations

from functools import cached_property

from policyeng.cli.evaluation import CheckOutcome
from policyeng.frozen import frozen
from policyeng.report import INFORMED, PROFILED, PROSE


@frozen
class ReportOptions:
    """What was judged, and how the reader wants it shown.

    Attributes:
        group_by: one of `GROUPS`, or None.
        profile: the profile whose parameters were judged with.
        owner_tag: the tag that says who owns a resource.
    """

    judged: CheckOutcome
    group_by: str | None
    profile: str | None
    owner_tag: str

    def options(self, name: str) -> dict[str, object]:
        """Give the options that the format of that name takes."""
        return {
            **({"group_by": self.group_by} if name in PROSE else {}),
            **({"profile": self.profile} if name in PROFILED else {}),
            **({"about": self._about} if name in INFORMED else {}),
        }

    @cached_property
    def _about(self) -> object:
        """An `About`, made when the first format asks for it."""
        from policyeng.report.context import about_of

        return about_of(self.judged.bundle, self.judged.snapshot, self.owner_tag)
