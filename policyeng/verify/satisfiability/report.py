"""Reports on the satisfiability of classes of workloads as text, JSON and JUnit XML."""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.moments import day, describe_spans
from policyeng.models import JsonObject
from policyeng.report.phrases import count
from policyeng.testing.reports import bundle_object, junit_text, text_of_lines
from policyeng.verify.satisfiability.estates import described
from policyeng.verify.satisfiability.result import Conflict, SatisfiabilityResult

#: The maximum number of reasons and sets in the text report; JSON has all of them.
_MOST_SHOWN = 3


@dataclass(frozen=True)
class SatisfiabilityRun:
    """The answers for some classes.

    Attributes:
        profile: the profile of parameters.
        written: the file of the witness, by class.
        naming: the options that name the policies.
    """

    bundle: Bundle
    answers: Sequence[SatisfiabilityResult]
    profile: str | None
    written: Mapping[str, Path]
    seconds: float
    naming: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """0 if every class is possible, 1 if one is not, 2 if there is no answer for one."""
        text = {answer.status for answer in self.answers}
        return 2 if "not judged" in text or not text else int("impossible" in text)


def as_text(run: SatisfiabilityRun) -> str:
    """Return the answers as text."""
    return text_of_lines([*(line for answer in run.answers for line in (*_lines(answer, run), "")), _conclude(run)])


def _lines(answer: SatisfiabilityResult, run: SatisfiabilityRun) -> Iterator[str]:
    subject = answer.subject
    yield f"{subject.id}: {subject.title}"
    if answer.status == "not judged":
        yield "  not judged: no policy evaluates the resources of the class, in any of its snapshots"
        return
    yield f"  {answer.status} as of {answer.as_of:%Y-%m-%dT%H:%M:%SZ}; {describe_spans(answer.spans)}"
    if subject.expected and not run.profile:  # expectations are about the defaults
        text = "as the class expects" if answer.is_as_expected else f"the class expects {_expectation(answer)}"
        yield f"  {text}: {' '.join(subject.expected.because.split())}"
    for begins, reasons in (answer.endings or {}).items():
        yield from (f"    {day(begins)}  {reason}" for reason in reasons[:_MOST_SHOWN])
        if len(reasons) > _MOST_SHOWN:
            yield f"    and {count(len(reasons) - _MOST_SHOWN, 'reason')} more"
    if answer.witness:
        yield f"  witness: {described(answer.witness.assignment)}"
        if subject.id in run.written:
            yield f"    policyeng check {run.written[subject.id]} --as-of {answer.as_of.isoformat()}{_options(run)}"
    if answer.conflicts:
        yield from _conflicting(answer)
    yield f"  {_describe_search(answer)}"


def _options(run: SatisfiabilityRun) -> str:
    """Return the options with which `check` evaluates as this run did."""
    options = [*run.naming, *(["--profile", run.profile] if run.profile else [])]
    return f" {shlex.join(options)}" if options else ""


def _expectation(answer: SatisfiabilityResult) -> str:
    since = answer.subject.expected.impossible if answer.subject.expected else ""
    return "that it is always impossible" if since == "always" else f"that it is impossible since {since}"


def _conflicting(answer: SatisfiabilityResult) -> Iterator[str]:
    first, *others = answer.conflicts
    when = "" if first.at == answer.as_of else f" from {day(first.at)} on"
    yield f"  the fewest policies that conflict{when}: {', '.join(first.policies)}"
    for rest in first.remainders:
        alone = len(first.policies) == 1
        text = f"no snapshot passes {rest.policy}, such as one" if alone else f"of these, all but {rest.policy} pass"
        yield f"    {text} with {described(rest.assignment)}"
        yield f"      {rest.reason}"
        if also := sorted(rest.failing.keys() - {rest.policy}):
            yield f"      it also fails {', '.join(also)}"
    if others:
        sets = " · ".join(", ".join(one.policies) for one in others[:_MOST_SHOWN])
        more = f" · and {len(others) - _MOST_SHOWN} more" if len(others) > _MOST_SHOWN else ""
        yield f"  as few conflict in {count(len(others), 'other set')}: {sets}{more}"


def _describe_search(answer: SatisfiabilityResult) -> str:
    choices, further = answer.subject.choices, answer.extension
    if all(span.possible for span in answer.spans):
        text = f"judged {count(answer.tried, 'estate')}, until each date had a witness"
    else:
        text = f"exact over {count(answer.tried - (further.tried if further else 0), 'estate')}"
    text += f"; {count(len(choices), 'choice')}: {', '.join(choices)}" if choices else "; without a choice"
    if answer.outside:
        text += f"; {count(answer.outside, 'combination')} lack the resources of the class, or no policy evaluates them"
    if further and further.choices:
        text += f"; and over {further.tried} more: {count(further.begun, 'estate')} that fail least, with what denials"
        text += f" ask for at {', '.join(further.choices)}"
        text += f" ({count(further.left_out, 'value')} left out)" if further.left_out else ""
    return text


def _conclude(run: SatisfiabilityRun) -> str:
    impossible = [answer for answer in run.answers if answer.status == "impossible"]
    expected = [one for one in impossible if one.subject.expected and one.is_as_expected and not run.profile]
    unjudged = [answer for answer in run.answers if answer.status == "not judged"]
    possible = len(run.answers) - len(impossible) - len(unjudged)
    text = f"{len(run.answers)} {'class' if len(run.answers) == 1 else 'classes'}: {possible} possible"
    text += f", {len(impossible)} impossible" if impossible else ""
    text += f" ({len(expected)} as expected)" if expected else ""
    text += f", {len(unjudged)} not judged" if unjudged else ""
    profile = f", profile {run.profile}" if run.profile else ""
    return f"exit {run.exit_code}: {text}; {count(len(run.bundle.policies), 'policy')}{profile}, {run.seconds:.1f} s"


def as_json(run: SatisfiabilityRun) -> str:
    """Return the answers as a JSON object."""
    document = {
        "bundle": bundle_object(run.bundle),
        "profile": run.profile,
        "exitCode": run.exit_code,
        "seconds": round(run.seconds, 3),
        "classes": [_answer(answer, run) for answer in run.answers],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _answer(answer: SatisfiabilityResult, run: SatisfiabilityRun) -> JsonObject:
    subject, further, witness = answer.subject, answer.extension, answer.witness
    written = run.written.get(subject.id)
    return {
        "id": subject.id,
        "title": subject.title,
        "source": subject.source,
        "asOf": answer.as_of.isoformat(),
        "status": answer.status,
        "expected": subject.expected.model_dump(mode="json") if subject.expected else None,
        "asExpected": None if run.profile else answer.is_as_expected,
        "timeline": [
            {
                "from": _time(span.begins),
                "possible": span.possible,
                "because": list((answer.endings or {}).get(span.begins, ())) if span.begins else [],
            }
            for span in answer.spans
        ],
        "witness": {
            "choices": dict(witness.assignment.chosen),
            "file": str(written) if written else None,
            "snapshot": witness.document,
        }
        if witness
        else None,
        "conflicts": [_conflict(conflict) for conflict in answer.conflicts],
        "estates": answer.tried,
        "outside": answer.outside,
        "choices": list(subject.choices),
        "further": {"choices": further.choices, "estates": further.tried, "leftOut": further.left_out}
        if further
        else None,
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _conflict(conflict: Conflict) -> JsonObject:
    return {
        "asOf": conflict.at.isoformat(),
        "policies": list(conflict.policies),
        "withoutOne": [
            {
                "policy": rest.policy,
                "choices": dict(rest.assignment.chosen),
                "failing": {policy: [reason.words for reason in text] for policy, text in sorted(rest.failing.items())},
            }
            for rest in conflict.remainders
        ],
    }


def as_junit(run: SatisfiabilityRun) -> str:
    """Return the answers as one JUnit suite with a test case for each class; impossible classes fail."""
    failed = sum(answer.status == "impossible" for answer in run.answers)
    broken = sum(answer.status == "not judged" for answer in run.answers)
    root = ET.Element("testsuites", name="policyeng verify")
    counts = {"tests": str(len(run.answers)), "failures": str(failed), "errors": str(broken)}
    suite = ET.SubElement(root, "testsuite", {"name": "satisfiable", "time": f"{run.seconds:.3f}", **counts})
    for answer in run.answers:
        case = ET.SubElement(suite, "testcase", classname="satisfiable", name=answer.subject.id)
        lines = list(_lines(answer, run))[1:]
        if answer.status == "possible":
            ET.SubElement(case, "system-out").text = "\n".join(lines)
        else:
            kind = "failure" if answer.status == "impossible" else "error"
            ET.SubElement(case, kind, message=lines[0].strip()).text = "\n".join(lines)
    return junit_text(root)
