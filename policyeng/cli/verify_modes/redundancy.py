"""`policyeng verify --redundancy`: find policies and parameters of a bundle that have no effect."""

from __future__ import annotations

import typer

from policyeng.bundle import Policy
from policyeng.cli.progress import show_progress
from policyeng.cli.verify_modes.options import VerifyOptions
from policyeng.errors import BundleError


def verify_redundancy(asked: VerifyOptions) -> int:
    """Print the policies that never apply, never fail or are implied by others; return 1 if there is one, else 0.

    Raises:
        BundleError: a `cases.yaml` is not well formed, or no policy evaluates resources.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.generators.documents import judges_documents
    from policyeng.verify.redundancy import report
    from policyeng.verify.redundancy.analysis import analysed

    bundle, examples = asked.bundle, asked.examples
    if all(map(judges_documents, bundle.policies)):
        message = "all policies evaluate documents, and --redundancy only supports policies that evaluate resources"
        raise BundleError(message, remedy="pass policies that evaluate resources")
    total = sum(map(_cases, bundle.policies)) + examples
    with show_progress(f"searching for redundancy, seed {asked.seed}", "examples", total) as advance:
        analysis = analysed(bundle, examples, asked.seed, progress=advance)
    if asked.format == "text":
        typer.echo(report.as_text(analysis, asked.naming))
    else:
        typer.echo(report.as_json(analysis) if asked.format == "json" else report.as_junit(analysis, asked.naming))
    return int(bool(analysis.faults))


def _cases(policy: Policy) -> int:
    from policyeng.bundle.cases import read_cases

    file = read_cases(policy)
    return sum(1 for _ in file.named()) if file else 0
