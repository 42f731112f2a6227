"""`policyeng verify --redundancy`: which policies and parameters of a bundle say nothing."""

from __future__ import annotations

import typer

from policyeng.bundle import Bundle, Policy
from policyeng.cli.verifying.progress import progress


def verify_redundancy(bundle: Bundle, *, examples: int, seed: int, format_: str) -> int:
    """Print which policies never apply, never fail or are implied by others: exit 1 when there is one, else 0.

    Raises:
        BundleError: a `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.redundancy import report
    from policyeng.verify.redundancy.analysis import analysed

    with progress(f"looking for redundancy, seed {seed}", sum(map(_cases, bundle.policies)) + examples) as advance:
        analysis = analysed(bundle, examples, seed, progress=advance)
    written = {"text": report.as_text, "json": report.as_json, "junit": report.as_junit}
    typer.echo(written[format_](analysis))
    return int(bool(analysis.faults))


def _cases(policy: Policy) -> int:
    from policyeng.verify.cases import read_cases

    file = read_cases(policy)
    return sum(1 for _ in file.named()) if file else 0
