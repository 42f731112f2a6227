"""Reports of a redundancy analysis as text, as JSON and as JUnit XML."""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from policyeng.models import JsonObject
from policyeng.report.phrases import count
from policyeng.testing.reports import junit_text, text_of_lines
from policyeng.verify.example_documents import command, list_parameters, native
from policyeng.verify.generators.examples import Example

Kind = Literal["vacuous", "dead", "implied", "equal", "parameter", "never passes", "told apart", "reason", "not tried"]


@dataclass(frozen=True)
class Remark:
    """A remark on one policy.

    Attributes:
        is_fault: whether it makes the analysis fail.
        is_proved: whether it is true for every input; otherwise no tested input contradicts it.
        tried: what was tested, and how often.
        remedy: what the author of the policy should do.
        other: the id of the other policy, if there is one.
        example: a shrunk example of it; None if there is none.
        resource: the resource of the example.
    """

    policy: str
    kind: Kind
    message: str
    tried: str
    remedy: str
    is_fault: bool = True
    is_proved: bool = False
    other: str = ""
    example: Example | None = None
    resource: str = ""


@dataclass(frozen=True)
class RedundancyAnalysis:
    """A finished analysis.

    Attributes:
        examples, cases: the number of evaluated ones.
        outcomes: the number of findings with each outcome, by policy id.
        remarks: faults first, then by policy.
    """

    seed: int
    examples: int
    cases: int
    outcomes: Mapping[str, Counter[str]] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def faults(self) -> list[Remark]:
        """The remarks that make the analysis fail."""
        return [remark for remark in self.remarks if remark.is_fault]


def as_text(analysis: RedundancyAnalysis, naming: Sequence[str] = ()) -> str:
    """Return the analysis as text: faults first; `naming` are the options that name the policies."""
    return text_of_lines(_lines(analysis, naming))


def as_json(analysis: RedundancyAnalysis) -> str:
    """Return the analysis as a JSON object."""
    document = {
        "seed": analysis.seed,
        "examples": analysis.examples,
        "cases": analysis.cases,
        "faults": len(analysis.faults),
        "policies": [
            {"id": policy, "outcomes": {str(outcome): number for outcome, number in sorted(counts.items())}}
            for policy, counts in analysis.outcomes.items()
        ],
        "remarks": [_as_object(remark) for remark in analysis.remarks],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def as_junit(analysis: RedundancyAnalysis, naming: Sequence[str] = ()) -> str:
    """Return the analysis as one JUnit suite: a test case per policy, a failure per fault, and the remarks.

    `naming` are the options that name the policies.
    """
    faulty = {remark.policy for remark in analysis.faults}
    root = ET.Element("testsuites", name="policyeng verify --redundancy")
    tests, failures = str(len(analysis.outcomes)), str(len(faulty))
    suite = ET.SubElement(root, "testsuite", name="redundancy", tests=tests, failures=failures)
    for policy in analysis.outcomes:
        case = ET.SubElement(suite, "testcase", classname="redundancy", name=policy)
        remarks = [remark for remark in analysis.remarks if remark.policy == policy]
        if faults := [remark for remark in remarks if remark.is_fault]:
            failure = ET.SubElement(case, "failure", message="; ".join(remark.message for remark in faults))
            failure.text = "\n".join(line for remark in faults for line in _explain(remark, naming))
        if lines := [line for remark in remarks if not remark.is_fault for line in _explain(remark, naming)]:
            ET.SubElement(case, "system-out").text = "\n".join(lines)
    return junit_text(root)


def _lines(analysis: RedundancyAnalysis, naming: Sequence[str]) -> Iterator[str]:
    for remark in analysis.remarks:
        yield from _explain(remark, naming)
        yield ""
    judged = f"{count(analysis.cases, 'case')} and {count(analysis.examples, 'example')}"
    yield f"seed {analysis.seed}: {count(len(analysis.outcomes), 'policy')} on {judged}"
    faults, remarks = len(analysis.faults), len(analysis.remarks) - len(analysis.faults)
    rest = f"; {count(remarks, 'remark')}" if remarks else ""
    yield f"exit {int(bool(faults))}: {count(faults, 'fault') if faults else 'no fault'}{rest}"


def _explain(remark: Remark, naming: Sequence[str] = ()) -> Iterator[str]:
    yield f"{'fault' if remark.is_fault else 'remark'}: {remark.policy}: {remark.message}"
    yield f"  {'proved' if remark.is_proved else 'as far as tested'}: {remark.tried}"
    yield f"  to do: {remark.remedy}"
    if remark.example is not None:
        yield f"  on {remark.resource or 'a resource that the reader refuses'}"
        yield f"  again with: {shlex.join(command(remark.example, _selected(remark), naming))}"
        yield from (f"  {line}" for line in list_parameters(remark.example))
        yield f"  {orjson.dumps(native(remark.example.document)).decode()}"


def _selected(remark: Remark) -> str:
    return f"{remark.policy},{remark.other}" if remark.other else remark.policy


def _as_object(remark: Remark) -> JsonObject:
    said: JsonObject = {
        "policy": remark.policy,
        "kind": remark.kind,
        "fault": remark.is_fault,
        "proved": remark.is_proved,
        "message": remark.message,
        "tried": remark.tried,
        "remedy": remark.remedy,
    }
    if remark.other:
        said["other"] = remark.other
    if remark.example is not None:
        said |= {
            "resource": remark.resource,
            "snapshot": native(remark.example.document),
            "parameters": dict(remark.example.parameters),
            "asOf": remark.example.as_of.isoformat(),
        }
    return said
