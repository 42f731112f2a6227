"""Options of the report formats."""

from __future__ import annotations

from functools import cached_property

from policyeng.cli.evaluation import CheckOutcome
from policyeng.frozen import frozen
from policyeng.report import INFORMED, PROFILED, PROSE


@frozen
class ReportOptions:
    """An evaluation and how to report it.

    Attributes:
        group_by: one of `GROUPS`, or None.
        profile: the profile whose parameters were used.
        owner_tag: the tag that contains the owner of a resource.
    """

    judged: CheckOutcome
    group_by: str | None
    profile: str | None
    owner_tag: str

    def options(self, name: str) -> dict[str, object]:
        """Return the options that a report format accepts."""
        return {
            **({"group_by": self.group_by} if name in PROSE else {}),
            **({"profile": self.profile} if name in PROFILED else {}),
            **({"about": self._about} if name in INFORMED else {}),
        }

    @cached_property
    def _about(self) -> object:
        """The `About`, created when a format first needs it."""
        from policyeng.report.context import about_of

        return about_of(self.judged.bundle, self.judged.snapshot, self.owner_tag)
