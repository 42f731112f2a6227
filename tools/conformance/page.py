"""Write the page `docs/conformance.md`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from string import Template

from conformance.verdicts import Outcome, Verdict
from policyeng.rego.builtins import REFUSED

_TEMPLATE = Path(__file__).with_name("page.md")
_VERDICTS: tuple[Verdict, ...] = ("passed", "refused", "failed", "silent")


def make_page(found: Sequence[Outcome], opa: str) -> str:
    """Return the page for the outcomes of a run; the same outcomes give the same page."""
    supported = [outcome for outcome in found if outcome.verdict != "refused"]
    passed = sum(outcome.verdict == "passed" for outcome in supported)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        opa=opa,
        cases=f"{len(found):,}",
        asked=f"{len(supported):,}",
        passed=f"{passed:,}",
        share=f"{100 * passed / max(len(supported), 1):.2f}",
        totals=_count(found),
        refused=_list_refused(found),
        failed=_list_cases(found, "failed"),
        silent=_list_cases(found, "silent"),
    )


def _count(found: Sequence[Outcome]) -> str:
    lines = [f"| Rego | cases | {' | '.join(_VERDICTS)} |", "| --- |" + " ---: |" * (len(_VERDICTS) + 1)]
    for version in sorted({outcome.version for outcome in found}, reverse=True):
        counted = Counter(outcome.verdict for outcome in found if outcome.version == version)
        numbers = " | ".join(f"{counted[verdict]:,}" for verdict in _VERDICTS)
        lines.append(f"| v{version} | {counted.total():,} | {numbers} |")
    return "\n".join(lines)


def _list_refused(found: Sequence[Outcome]) -> str:
    counted = Counter(outcome.reason for outcome in found if outcome.verdict == "refused")
    lines = ["| builtin | cases | instead |", "| --- | ---: | --- |"]
    return "\n".join([*lines, *(f"| `{name}` | {counted[name]} | {why} |" for name, why in sorted(REFUSED.items()))])


def _list_cases(found: Sequence[Outcome], verdict: Verdict) -> str:
    reasons: dict[tuple[str, str], list[int]] = {}
    for outcome in found:
        if outcome.verdict == verdict:
            reason = outcome.reason.rpartition("_error: ")[2].replace("|", "\\|")
            reasons.setdefault((outcome.note.replace("|", "\\|"), reason), []).append(outcome.version)
    if not reasons:
        return "None."
    lines = ["| case | Rego | reason |", "| --- | --- | --- |"]
    for (note, reason), versions in reasons.items():
        lines.append(f"| {note} | {', '.join(f'v{version}' for version in versions)} | {reason} |")
    return "\n".join(lines)
