"""`policyeng check --suggest`: print the smallest edit that fixes each failure."""

from __future__ import annotations

from policyeng.cli.console import print_errors, print_line
from policyeng.cli.evaluation import CheckOutcome
from policyeng.cli.progress import show_progress
from policyeng.models import Outcome
from policyeng.progress import counted
from policyeng.verify.remediation.report import as_json, as_text
from policyeng.verify.remediation.suggestion import Suggester


def print_suggestions(checked: CheckOutcome, format_: str) -> None:
    """Print the edits as text or JSON, and errors on standard error."""
    evaluation, snapshot, options = checked.evaluation, checked.snapshot, checked.options
    suggester = Suggester(checked.bundle, snapshot, evaluation.as_of, options["parameters"], options["exemptions"])
    failing = [finding for finding in evaluation.findings if finding.outcome is not Outcome.PASS]
    with show_progress("searching for edits", "findings"):
        found = [
            one for finding in counted(failing, len(failing)) if (one := suggester.suggestion(finding)) is not None
        ]
    print_line((as_json if format_ == "json" else as_text)(found, snapshot).rstrip("\n"))
    print_errors(evaluation)
