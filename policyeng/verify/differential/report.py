"""Reports of a differential run as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from policyeng.bundle import Bundle
from policyeng.engines import Judgement
from policyeng.models import JsonObject
from policyeng.testing.reports import bundle_object, text_of_lines
from policyeng.verify.differential.differential import Contestant, Counterexample, PairCounts, outcome_of
from policyeng.verify.example_documents import command, list_other_parts, native

_OUTCOMES = ("pass", "fail", "unknown", "error", "not applicable")


@dataclass(frozen=True)
class DifferentialRun:
    """A finished run; `seconds` is its duration."""

    bundle: Bundle
    contestants: Sequence[Contestant]
    tally: PairCounts
    found: Sequence[Counterexample]
    seconds: float


def as_json(run: DifferentialRun) -> str:
    """Return the run as a JSON object."""
    tally = run.tally
    document = {
        "seed": tally.seed,
        "pairs": tally.pairs,
        "snapshots": tally.snapshots,
        "seconds": round(run.seconds, 3),
        "bundle": bundle_object(run.bundle),
        "engines": [
            {"name": entry.name, "version": entry.version, "pairs": tally.compared[entry.name]}
            for entry in run.contestants
        ],
        "policies": [
            {
                "id": policy,
                "engines": _describe_evaluation(run, policy),
                "outcomes": {outcome: counts[outcome] for outcome in _OUTCOMES},
            }
            for policy, counts in tally.outcomes.items()
        ],
        "differing": tally.differing,
        "kinds": len(tally.differences),
        "differences": [_difference(found) for found in run.found],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_text(run: DifferentialRun, given: Sequence[str] = (), written: Sequence[Path | None] = ()) -> str:
    """Return the run as text.

    Args:
        run: a finished run.
        given: the options of the command line that name the policies, to repeat.
        written: the files of the counterexamples in order, None if there is none.
    """
    return text_of_lines(_lines(run, given, written))


def _lines(run: DifferentialRun, given: Sequence[str], written: Sequence[Path | None]) -> Iterator[str]:
    tally = run.tally
    yield f"{'policy':14}" + "".join(f"{outcome:>15}" for outcome in _OUTCOMES) + "  engines"
    for policy, counts in tally.outcomes.items():
        judging = ", ".join(_describe_evaluation(run, policy))
        yield f"{policy:14}" + "".join(f"{counts[outcome]:15,}" for outcome in _OUTCOMES) + f"  {judging}"
    alone = [policy for policy in tally.outcomes if len(_describe_evaluation(run, policy)) < 2]
    if alone:
        yield f"not compared, because only one engine evaluates them:  {', '.join(alone)}"
    unmet = [policy for policy, counts in tally.outcomes.items() if not (counts["pass"] and counts["fail"])]
    if unmet:
        yield f"not met both passing and failing: {', '.join(unmet)}"
    for found, file in zip(run.found, [*written, *[None] * len(run.found)], strict=False):
        yield ""
        yield from _explain(found, given, file)
    yield ""
    for entry in run.contestants:
        yield f"{entry.name:12} {entry.version:10} {tally.compared[entry.name]:,} pairs compared"
    yield f"seed {tally.seed}: {tally.pairs:,} pairs of {tally.snapshots:,} snapshots in {run.seconds:.1f} s"
    yield _conclude(run)


def _conclude(run: DifferentialRun) -> str:
    tally = run.tally
    if not tally.differing:
        names = [entry.name for entry in run.contestants if tally.compared[entry.name]]  # never more than was compared
        return f"exit 0: no difference between {', '.join(names[:-1])} and {names[-1]}"
    more = len(tally.differences) - len(run.found)
    hidden = f"; {more} kinds are not shown" if more > 0 else ""
    return f"exit 1: the engines differ on {tally.differing:,} pairs, {len(tally.differences)} kinds{hidden}"


def _explain(found: Counterexample, given: Sequence[str], file: Path | None) -> Iterator[str]:
    comparison = found.comparison
    yield f"difference: {comparison.policy} on {comparison.subject}"
    for name, judgement in comparison.judgements:
        yield f"  {name:12} {orjson.dumps(encode_result(judgement)).decode()}"
    if found.note:
        yield f"  note         {found.note}"
    example = comparison.example
    yield f"  again with   {shlex.join(command(example, comparison.policy, given, file))}"
    yield from (f"  {line}" for line in list_other_parts(example, file))


def _difference(found: Counterexample) -> JsonObject:
    comparison, example = found.comparison, found.comparison.example
    return {
        "policy": comparison.policy,
        "resource": comparison.subject,
        "engines": {name: encode_result(judgement) for name, judgement in comparison.judgements},
        "snapshot": native(example.document),
        "parameters": dict(example.parameters),
        "asOf": example.as_of.isoformat(),
        "note": found.note,
    }


def encode_result(judgement: Judgement) -> JsonObject:
    """Return a judgement as a JSON object for reports."""
    said: JsonObject = {"outcome": outcome_of(judgement)}
    if judgement.error is not None:
        return {**said, "error": judgement.error}
    denials = [denial.model_dump() for denial in judgement.denials]
    unknowns = [unknown.model_dump() for unknown in judgement.unknowns]
    return {**said, **({"denials": denials} if denials else {}), **({"unknowns": unknowns} if unknowns else {})}


def _describe_evaluation(run: DifferentialRun, policy: str) -> list[str]:
    return [entry.name for entry in run.contestants if policy in entry.covers]
