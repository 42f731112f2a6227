"""`policyeng check --suggest` and `--minimise`: the smallest edit that fixes a failure, or document."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from policyeng.bundle import Bundle
from policyeng.cli.check import CheckOutcome, CheckRequest
from policyeng.cli.console import print_errors, print_line, show_progress
from policyeng.configuration import Settings
from policyeng.errors import InputError, UsageError
from policyeng.evaluation import evaluate
from policyeng.models import Outcome
from policyeng.progress import counted
from policyeng.report.phrases import count
from policyeng.verify.remediation import Suggester, as_json, as_text
from policyeng.verify.shrinking import Minimised, failing, minimize, text_of


def print_suggestions(checked: CheckOutcome, format_: str) -> None:
    """Print the edits as text or JSON, and errors on standard error."""
    evaluation, snapshot, options = checked.evaluation, checked.snapshot, checked.options
    suggester = Suggester(checked.bundle, snapshot, evaluation.as_of, options.parameters, options.exemptions)
    failing = [finding for finding in evaluation.findings if finding.outcome is not Outcome.PASS]
    with show_progress("searching for edits", "findings"):
        found = [
            one for finding in counted(failing, len(failing)) if (one := suggester.suggestion(finding)) is not None
        ]
    print_line((as_json if format_ == "json" else as_text)(found, snapshot).rstrip("\n"))
    print_errors(evaluation)


#: The file that the printed command reads.
_FILE = "smallest.json"


def print_minimised(checked: CheckOutcome, request: CheckRequest, settings: Settings) -> int:
    """Print the smallest failing snapshot, and a summary on standard error; return 1, or the code of `check` if none.

    Raises:
        UsageError: the failing policy evaluates documents.
        InputError: the policy does not fail on the snapshot in its native format.
    """
    print_errors(checked.evaluation)
    policies = failing(checked.evaluation.findings, settings.fail_on)
    if not policies:
        print_line(f"policyeng: nothing to minimise: no failures at or above `{settings.fail_on}`", error=True)
        return checked.evaluation.exit_code
    chosen, *others = policies
    _require_resources(checked.bundle, chosen)
    found = minimize(checked.bundle, checked.snapshot, chosen, partial(evaluate, options=checked.options))
    if found is None:
        reason = f"`{chosen}` does not fail if the resources are converted to a native snapshot"
        raise InputError(reason, remedy="reduce the input by hand")
    for line in _lines(found, others):
        print_line(f"policyeng: {line}", error=True)
    print_line(f"policyeng: to reproduce, run: {_command(chosen, request, settings)}", error=True)
    print_line(text_of(found.document))
    return 1


def _require_resources(bundle: Bundle, chosen: str) -> None:
    policy = next(policy for policy in bundle.policies if policy.id == chosen)
    if any(target.type.lower() == "document" for target in policy.header.judges):
        message = f"`{chosen}` evaluates documents, and --minimise only supports policies that evaluate resources"
        raise UsageError(message, remedy="select another policy")


def _lines(found: Minimised, others: Sequence[str]) -> Iterator[str]:
    before, after = (
        count(len(document.get("resources", ())), "resource") for document in (found.whole, found.document)
    )
    sizes = [f"{len(text_of(document).encode()):,} bytes" for document in (found.whole, found.document)]
    yield f"{found.finding.policy} ({found.finding.severity}) fails on {found.finding.resource}"
    yield f"reduced from {before} ({sizes[0]}) to {after} ({sizes[1]})"
    yield from found.notes
    if others:
        verb = "fails" if len(others) == 1 else "fail"
        yield f"{', '.join(others)} also {verb}: select one with --select"


def _command(policy: str, request: CheckRequest, settings: Settings) -> str:
    """Return the command that evaluates the document in the same way; environment variables are not repeated."""
    words = ["policyeng", "check", _FILE, "--select", policy, "--as-of", request.as_of.isoformat()]
    words += request.args.repeated
    words += ["--config", str(request.args.config)] if request.args.config else []
    words += ["--profile", settings.profile] if settings.profile else []
    words += [word for path in settings.exemptions for word in ("--exemptions", str(path))]
    words += ["--no-exemptions"] if request.args.no_exemptions else []
    words += ["--engine", request.engine] if request.engine != "embedded" else []
    return shlex.join(words)
