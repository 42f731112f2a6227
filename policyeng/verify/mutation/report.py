"""Reports of a mutation run as text, as JSON and as JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

import orjson

from policyeng.models import JsonObject
from policyeng.testing.reports import junit_text, text_of_lines
from policyeng.verify.mutation.run import MutantCounts, MutationRun, Survivor, score


def as_text(run: MutationRun) -> str:
    """Return the run as text: a table, then each survivor as a difference of one line."""
    return text_of_lines(_lines(run))


def _lines(run: MutationRun) -> Iterator[str]:
    yield f"{'policy':14}{'mutants':>10}{'by cases':>10}{'by laws':>10}{'justified':>11}{'survived':>10}{'score':>9}"
    for tally in run.tallies:
        yield _row(tally.policy, [tally])
    yield _row("all", run.tallies)
    for tally in run.tallies:
        for survivor in tally.survivors:
            yield ""
            yield from _explain(tally, survivor)
        for entry in tally.stale:
            yield ""
            yield f"{tally.policy}: survivors.yaml has an entry that is killed, or is not a mutant"
            yield f"  - {entry.line}"
            yield f"  + {entry.mutation}"
    yield ""
    yield from _render_remarks(run)


def _row(name: str, tallies: Sequence[MutantCounts]) -> str:
    killed, survived = sum(tally.killed for tally in tallies), sum(tally.survived for tally in tallies)
    by_laws = sum(tally.by_laws for tally in tallies)
    justified = sum(len(tally.survivors) for tally in tallies) - survived
    counts = f"{killed + justified + survived:10,}{killed - by_laws:10,}{by_laws:10,}{justified:11,}{survived:10,}"
    return f"{name:14}{counts}{score(tallies):8.1f}%"


def _explain(tally: MutantCounts, survivor: Survivor) -> Iterator[str]:
    mutant = survivor.mutant
    what = "justified" if survivor.reason else "survived"
    yield f"{tally.policy}: {mutant.file}:{mutant.line}: {what}: {mutant.kind}"
    yield f"  - {mutant.before}"
    yield f"  + {mutant.after}"
    if survivor.reason:
        yield f"  because {survivor.reason}"


def _render_remarks(run: MutationRun) -> Iterator[str]:
    invalid = sum(tally.invalid for tally in run.tallies)
    yield f"{invalid:,} more mutants do not compile and are not counted"
    if run.sample:
        yield f"seed {run.seed}: a sample of at most {run.sample:,} mutants of each policy"
    if run.laws:
        yield f"laws: {', '.join(law.name for law in run.laws)}"
    if run.without_cases:
        yield f"not tested, because they have no cases:  {', '.join(run.without_cases)}"


def as_json(run: MutationRun) -> str:
    """Return the run as a JSON object."""
    document = {
        "score": round(run.score, 2),
        "seed": run.seed,
        "sample": run.sample,
        "laws": [law.name for law in run.laws],
        "withoutCases": list(run.without_cases),
        "policies": [_policy(tally) for tally in run.tallies],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _policy(tally: MutantCounts) -> JsonObject:
    return {
        "id": tally.policy,
        "file": tally.file,
        "score": round(score([tally]), 2),
        "killed": tally.killed,
        "killedByLaws": tally.by_laws,
        "survived": tally.survived,
        "invalid": tally.invalid,
        "killers": dict(sorted(tally.killers.items())),
        "survivors": [_render_survivor(survivor) for survivor in tally.survivors],
        "stale": [entry.model_dump() for entry in tally.stale],
    }


def _render_survivor(survivor: Survivor) -> JsonObject:
    mutant = survivor.mutant
    said = {"kind": mutant.kind, "line": mutant.line, "before": mutant.before, "after": mutant.after}
    return {**said, "reason": survivor.reason} if survivor.reason else said


def as_junit(run: MutationRun) -> str:
    """Return the run as JUnit XML: a suite per policy, a test case for each killing test and for each survivor."""
    root = ET.Element("testsuites", name="policyeng verify --mutation")
    for tally in run.tallies:
        suite = ET.SubElement(root, "testsuite", name=tally.policy)
        for killer, count in sorted(tally.killers.items()):
            ET.SubElement(suite, "testcase", classname=tally.policy, name=f"{killer}: {count} mutants killed")
        for survivor in tally.survivors:
            _junit_survivor(suite, tally, survivor)
        for entry in tally.stale:
            case = ET.SubElement(suite, "testcase", classname=tally.policy, name=f"survivors.yaml: {entry.mutation}")
            ET.SubElement(case, "failure", message="the entry is killed, or is not a mutant")
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(tally.survived + len(tally.stale)))
        suite.set("skipped", str(len(tally.survivors) - tally.survived))
    return junit_text(root)


def _junit_survivor(suite: ET.Element, tally: MutantCounts, survivor: Survivor) -> None:
    mutant = survivor.mutant
    name = f"{mutant.file}:{mutant.line}: {mutant.kind}: {mutant.after}"
    case = ET.SubElement(suite, "testcase", classname=tally.policy, name=name)
    if survivor.reason:
        ET.SubElement(case, "skipped", message=survivor.reason)
    else:
        ET.SubElement(case, "failure", message="the mutant survives").text = f"- {mutant.before}\n+ {mutant.after}"
