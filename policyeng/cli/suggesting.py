"""`policyeng check --suggest`: for each failure the smallest edit that mends it."""

from __future__ import annotations

from policyeng.cli.judging import Judged, say_errors
from policyeng.cli.printing import busy, say
from policyeng.verify.mending.rendering import as_json, as_text
from policyeng.verify.mending.suggestion import Mender


def print_suggestions(judged: Judged, format_: str) -> None:
    """Print them as text or JSON, and on standard error what could not be decided."""
    evaluation, snapshot, options = judged.evaluation, judged.snapshot, judged.options
    mender = Mender(judged.bundle, snapshot, evaluation.as_of, options["parameters"], options["exemptions"])
    with busy("looking for edits"):
        found = [one for finding in evaluation.findings if (one := mender.suggestion(finding)) is not None]
    say((as_json if format_ == "json" else as_text)(found, snapshot).rstrip("\n"))
    say_errors(evaluation)
