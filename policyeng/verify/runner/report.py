"""Reports of a run of the laws as text, as JSON and as JUnit XML."""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

from policyeng.models import JsonObject
from policyeng.report.phrases import count
from policyeng.testing.reports import bundle_object, junit_text, text_of_lines
from policyeng.verify.example_documents import command, document_of, list_other_parts, native, text_of
from policyeng.verify.laws.law import Law, format_remarks
from policyeng.verify.runner.run import LawRun, ReportedViolation


def as_text(run: LawRun, given: Sequence[str] = (), written: Sequence[Path | None] = ()) -> str:
    """Return the run as text.

    Args:
        run: a finished run.
        given: the options of the command line that name the policies, to repeat.
        written: the file of the snapshot of each violation, None if it has none.
    """
    return text_of_lines(_lines(run, given, written))


def _lines(run: LawRun, given: Sequence[str], written: Sequence[Path | None]) -> Iterator[str]:
    yield f"{'law':19}{'examples':>10}{'seconds':>10}  outcome"
    for law in run.laws:
        tried = f"{run.tally.tried[law.name]:,}"
        yield f"{law.number:2} {law.name:16}{tried:>10}{run.tally.seconds[law.name]:10.1f}  {_state(run, law)}"
    for found, path in zip(run.found, [*written, *[None] * len(run.found)], strict=False):
        yield ""
        yield from _explain(found, given, path)
    for broken in run.tally.broken.values():
        yield ""
        where = f", in example {_example(broken.chance)}" if broken.chance else ""
        yield f"not decided: {f'law {broken.law}' if broken.law else 'the examples'}{where}"
        yield f"  {broken.reason}"
    yield ""
    yield from (f"remark: {line}" for line in _render_remarks(run))
    tally = run.tally
    rate = f"{run.seconds:.1f} s, {tally.examples / run.seconds:.1f} examples/s"
    yield f"seed {run.seed}: {tally.examples:,} examples with {tally.findings:,} findings in {rate}"
    yield _conclude(run)


def _render_remarks(run: LawRun) -> Iterator[str]:
    yield from (f"{path} no longer fails and was removed" for path in run.dropped)
    yield from (f"{path} was not tested: {reason}" for path, reason in run.left_alone)
    yield from run.unkept
    yield from format_remarks(run.tally.remarks)


def _state(run: LawRun, law: Law) -> str:
    if law.name in run.tally.broken:
        return "not decided"
    number = sum(found.law is law for found in run.found)
    if number:
        return f"violated, {number} kind{'s' if number > 1 else ''}"
    return "holds" if run.tally.tried[law.name] else "not tried"


def _conclude(run: LawRun) -> str:
    violated = len({found.law.number for found in run.found})
    summary = f"{violated} of {len(run.laws)} laws violated" if violated else "no law is violated"
    if run.tally.broken:
        return f"exit 2: not everything could be decided; {summary}"
    if not run.tally.findings:
        return "exit 2: no example has anything that the policies evaluate; add cases, or narrow `judges` less"
    if violated:
        return f"exit 1: {summary}"
    untested = sum(not run.tally.tried[law.name] for law in run.laws)
    holding = len(run.laws) - untested
    rest = f"; {count(untested, 'law')} not tested on so few examples" if untested else ""
    return f"exit 0: {count(holding, 'law')} {'holds' if holding == 1 else 'hold'}{rest}"


def _explain(found: ReportedViolation, given: Sequence[str], path: Path | None) -> Iterator[str]:
    violation, law = found.violation, found.law
    yield f"violated: law {law.number}, {law.name}: {law.sentence}"
    for label, text in (("policy", violation.policy), ("resource", violation.resource), ("found", violation.message)):
        if text:
            yield f"  {label:12} {text}"
    yield from (f"  {'':12} {line}" for line in violation.lines)
    if found.note:
        yield f"  {'note':12} {found.note}"
    if found.example is None:
        return
    if found.again:
        yield f"  {'still fails':12} stored by an earlier run in {found.kept}"
    else:
        yield f"  {'drawn as':12} example {_example(found.chance)}"
    for label, words in _commands(found, given, path):
        yield f"  {label:12} {shlex.join(words)}"
    yield from (f"  {line}" for line in list_other_parts(found.example, path))


def _commands(found: ReportedViolation, given: Sequence[str], path: Path | None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the command that shows the finding, and the one that tests the law again."""
    if found.example is None:
        return
    yield "see it", command(found.example, found.violation.policy, given, path)
    seed, _, number = found.chance.partition("/")
    again = ["--law", found.law.name, "--seed", seed, "--examples", str(int(number) + 1)]
    yield "try again", ["policyeng", "verify", *given, *again]


def _example(chance: str) -> str:
    seed, _, number = chance.partition("/")
    return f"{int(number):,} of seed {seed}"


def as_json(run: LawRun) -> str:
    """Return the run as a JSON object."""
    tally = run.tally
    document = {
        "seed": run.seed,
        "examples": tally.examples,
        "findings": tally.findings,
        "seconds": round(run.seconds, 3),
        "bundle": bundle_object(run.bundle),
        "laws": [_law(run, law) for law in run.laws],
        "violations": [_violation(found) for found in run.found],
        "undecided": [
            {"law": broken.law, "example": broken.chance, "reason": broken.reason} for broken in tally.broken.values()
        ],
        "remarks": list(_render_remarks(run)),
        "exitCode": run.exit_code,
    }
    return text_of(document).rstrip("\n")


def _law(run: LawRun, law: Law) -> JsonObject:
    return {
        "number": law.number,
        "name": law.name,
        "sentence": law.sentence,
        "reference": law.reference,
        "examples": run.tally.tried[law.name],
        "seconds": round(run.tally.seconds[law.name], 3),
        "state": _state(run, law).partition(",")[0],
    }


def _violation(found: ReportedViolation) -> JsonObject:
    violation = found.violation
    result: JsonObject = {
        "law": found.law.name,
        "policy": violation.policy,
        "resource": violation.resource,
        "message": violation.message,
        "lines": list(violation.lines),
        "note": found.note,
        "example": found.chance,
        "again": found.again,
        "kept": str(found.kept) if found.kept else None,
    }
    if found.example is None:
        return result
    shown = document_of(found.example)
    return {**result, **shown, "snapshot": native(shown["snapshot"])}


def as_junit(run: LawRun, given: Sequence[str] = ()) -> str:
    """Return the run as JUnit XML: one suite with a test case for each law; `given` as in `as_text`."""
    suite = ET.Element("testsuite", name="policyeng verify", tests=str(len(run.laws)))
    for law in run.laws:
        seconds = f"{run.tally.seconds[law.name]:.3f}"
        case = ET.SubElement(
            suite, "testcase", classname="policyeng.laws", name=f"{law.number} {law.name}", time=seconds
        )
        found = [entry for entry in run.found if entry.law is law]
        broken = run.tally.broken.get(law.name) or run.tally.broken.get("")
        if broken:
            ET.SubElement(case, "error", message=broken.reason)
        elif found:
            failure = ET.SubElement(case, "failure", message=_describe(found[0]))
            failure.text = text_of_lines(line for entry in found for line in _explain(entry, given, None))
        elif not run.tally.findings:
            ET.SubElement(case, "error", message="no policy evaluates any example")
        elif not run.tally.tried[law.name]:
            ET.SubElement(case, "skipped", message="not tested on so few examples")
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(plural, str(sum(1 for _ in suite.iter(tag))))
    if remarks := list(_render_remarks(run)):
        ET.SubElement(suite, "system-out").text = "\n".join(remarks)
    root = ET.Element("testsuites", name="policyeng verify")
    root.append(suite)
    return junit_text(root)


def _describe(found: ReportedViolation) -> str:
    where = " on ".join(filter(None, (found.violation.policy, found.violation.resource)))
    return f"{where}: {found.violation.message}" if where else found.violation.message
