"""The content of a policy page, and phrases that its formats share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import Case, CaseFile
from policyeng.bundle.header import Patch, TargetType, Verdict
from policyeng.models import JsonObject
from policyeng.report.escaping import compact
from policyeng.testing.observed_reads import UNOBSERVED, ObservedReads

#: What the absence of a field leads to.
ABSENCE: Mapping[Verdict, str] = {
    "pass": "passes",
    "fail": "fails",
    "unknown": "is unknown",
    "not_judged": "has no finding",
}
#: In the place of reads that could not be recorded.
UNRECORDED = "Some reads of its cases could not be recorded; see `policyeng test`."
_OUTCOMES: Mapping[Verdict, str] = {"pass": "Pass", "fail": "Fail", "unknown": "Unknown", "not_judged": "No finding"}
_OTHER_SUBJECTS = {
    "workload": "work and the compute it runs on, derived from jobs, deployments and services, or declared",
    "approval": "an approval of the organisation",
    "document": "any JSON or YAML document",
}
_INPUTS = {
    "document": "The input is the document, as in Conftest.",
    "review": "The input is an admission review, as in Gatekeeper.",
}
#: The fields that a case file may set for all of its cases.
_SHARED = {field.alias or name for name, field in Case.model_fields.items()}
_BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}


class Cited(NamedTuple):
    """A document or a rule that is the source of a policy, and its location."""

    title: str
    place: str


@dataclass(frozen=True)
class PolicyPage:
    """A policy with what its page shows in addition to the header.

    Attributes:
        cases: the cases; None if there are none here.
        link: the link to the policy's file; empty if unknown.
        given: the command-line options that load the policy; none for a built-in one.
        values: the values of its parameters, if known.
        cited: what its `source` cites, by the name that it has there.
        observed: what its cases read, where it has cases here.
        controls: by framework, the controls that it tests, each with the basis; None where that is not known.
    """

    policy: Policy
    cases: CaseFile | None = None
    link: str = ""
    given: Sequence[str] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    cited: Mapping[str, Cited] = field(default_factory=dict)
    observed: ObservedReads = UNOBSERVED
    controls: Mapping[str, Sequence[str]] | None = None

    @property
    def absences(self) -> Mapping[str, Verdict | None]:
        """The outcome by JSON Pointer if a field that the policy reads is missing; None if no case states it."""
        header = self.policy.header
        stated: dict[str, Verdict | None] = {pointer: header.absent(pointer) for pointer in header.inspects}
        stated |= self.cases.absent if self.cases else {}
        return {pointer: stated.get(pointer) for pointer in dict.fromkeys((*self.observed.pointers, *stated))}

    def changed(self, name: str) -> object | None:
        """Return the value that a parameter has here, where that is not its default; None otherwise."""
        default = self.policy.header.parameters[name]["default"]
        value = self.values.get(name, default)
        return None if value == default else value

    @property
    def language(self) -> str:
        """The language of the policy in words."""
        if self.policy.header.evidence:
            return "evidence alone"
        if self.policy.language == "python":
            return "Python"
        return "Rego, with a Python twin" if self.policy.python else "Rego"

    @property
    def number_of_cases(self) -> int:
        """The number of cases, without those that the header implies."""
        return sum(1 for _ in self.cases.named()) if self.cases else 0

    def commands(self) -> Iterator[str]:
        """Yield the commands that evaluate only this policy, and run its cases."""
        alone = [*self.given, "--select", self.policy.id]
        file = "snapshot.json" if self.policy.input_form == "policy" else "document.yaml"
        yield shlex.join(["policyeng", "check", file, *alone])
        if self.cases is not None:
            yield shlex.join(["policyeng", "test", *alone])


def cited(policy: Policy, bundle: Bundle) -> dict[str, Cited]:
    """Return what the `source` of a policy cites outside of quotes, as far as the bundle's own facts name it.

    Facts that it was lent are about the documents of the built-in policies: there `001` is no document of its own.
    """
    rows = {} if "facts" in bundle.lent else bundle.facts.document.get("sources", {})
    names = re.findall(r"[\w-]+", re.sub(r'"[^"]*"', "", policy.header.source))
    found = {name: rows[name] for name in names if isinstance(rows.get(name), dict)}
    return {name: Cited(str(row.get("title", "")), str(row.get("path", ""))) for name, row in found.items()}


def control_lines(page: PolicyPage) -> Iterator[str]:
    """Yield the controls that a policy tests, one line for each framework."""
    if page.controls is None:
        yield from (f"{name} {', '.join(ids)}" for name, ids in page.policy.header.controls.items())
    else:
        yield from (f"{framework} {', '.join(controls)}" for framework, controls in page.controls.items())
        if not page.controls:
            yield "maps to no control of the frameworks shipped"


class CaseGroup(NamedTuple):
    """The cases that have one outcome, each by name with what it changes."""

    verdict: Verdict
    title: str
    cases: Mapping[str, JsonObject]


def case_groups(file: CaseFile) -> Iterator[CaseGroup]:
    """Yield the cases by outcome, as they are written, without what applies to all of them."""
    groups = zip(_OUTCOMES.items(), (file.pass_, file.fail, file.unknown, file.not_judged), strict=True)
    for (verdict, title), cases in groups:
        if cases:
            yield CaseGroup(verdict, title, {name: _describe_case(case) for name, case in cases.items()})


def shared_case(file: CaseFile) -> JsonObject:
    """Return what applies to all cases of a file."""
    return {name: value for name, value in _describe_case(file).items() if name in _SHARED}


def _describe_case(case: Case) -> JsonObject:
    """Return the fields that a case sets itself, and last the path of the expected denial."""
    written: JsonObject = case.model_dump(mode="json", by_alias=True, exclude_unset=True)
    path = {"path": written.pop("path")} if "path" in written else {}
    return {**written, **path}


def describe_type(target: TargetType, code: Callable[[str], str]) -> str:
    """Return an evaluated type and its conditions; `code` marks names and values."""
    what = _OTHER_SUBJECTS.get(target.type.lower())
    narrowed = [
        f"{code(pointer)} is {alternatives([code(_plain(value)) for value in values])}"
        for pointer, values in target.where.items()
    ]
    described = f"{code(target.type)}{f' ({what})' if what else ''}"
    return f"{described}, where {' and '.join(narrowed)}" if narrowed else described


def describe_narrowing(policy: Policy, code: Callable[[str], str]) -> Iterator[str]:
    """Yield the conditions besides the type for an evaluation, and the reason if the policy cannot decide here."""
    if policy.header.evidence:
        evidence, required = code("evidence"), code("required")
        yield f"It has no rules: {evidence} of the snapshot decides it. A report shows who gave evidence that lapsed."
        if "required" in policy.header.parameters:
            yield f"While {required} is false, it has no findings."
        return
    python = policy.language == "python" and policy.python is not None and policy.python.has_applies
    if python or any(role == "applies" for role, _ in policy.rules):
        yield f"Its rule {code('applies')} adds conditions. Other resources have no finding."
    if policy.input_form in _INPUTS:
        yield _INPUTS[policy.input_form]
    if policy.undecided:
        yield f"It is always unknown here: {policy.undecided}."


def exemption_words(policy: Policy) -> str:
    """Return whether exemptions can cover its failures."""
    if policy.header.exemptable:
        return "An exemption can accept a failure until it expires."
    return "Exemptions are not allowed."


def pointer_words(pointer: str, code: Callable[[str], str]) -> str:
    """Return a pointer, with its owner unless that is the evaluated resource."""
    inside = pointer.removeprefix("workspace:")
    return code(inside) if inside == pointer else f"{code(inside)} of the workspace"


def describe_strictness(place: str, way: str | Sequence[object], code: Callable[[str], str]) -> str:
    """Return a place of `monotone_in`, or the name of a parameter, and which way is stricter there."""
    words = f"{way} is stricter" if isinstance(way, str) else ", then ".join(code(compact(value)) for value in way)
    return f"{pointer_words(place, code)} ({words})"


def patch_words(policy: Policy, patch: Patch, code: Callable[[str], str]) -> str:
    """Return the target of a patch, its denials and its conditions; `code` marks names."""
    kinds = {target.type.lower() for target in policy.header.judges}
    of = f"a {code(patch.of)}" if patch.of else "the declared workload" if kinds == {"workload"} else "the resource"
    words = [f"for {of}"]
    if patch.answers:
        words.append(f"after denials of {', '.join(pointer_words(path, code) for path in patch.answers)}")
    if patch.provided:
        words.append(f"unless a finding gets worse of {', '.join(map(code, patch.provided))}")
    return ", ".join(words)


def other_words(kind: str, code: Callable[[str], str]) -> str:
    """Name what a policy reads besides the resource and its workspace; `code` marks names."""
    return code(kind) if "." in kind else f"{kind} of the snapshot"


def type_words(schema: JsonObject) -> str:
    """Return a JSON Schema in words, its default and description left out: `array of string`, `integer, at least 0`."""
    rest = {name: value for name, value in schema.items() if name not in ("default", "description", "title")}
    words = [str(rest.pop("type"))] if isinstance(rest.get("type"), str) else []
    if words == ["array"] and isinstance(rest.get("items"), dict):
        words = [f"array of {_grouped(type_words(rest.pop('items')))}"]
    if isinstance(rest.get("properties"), dict):
        words = [_fields(rest.pop("properties"), rest.pop("required", []), rest.pop("additionalProperties", True))]
    for name, value in rest.items():
        if name == "enum" and isinstance(value, list):
            words.append(f"one of {', '.join(map(compact, value))}")
        elif name == "additionalProperties" and isinstance(value, dict):
            words.append(f"each {_grouped(type_words(value))}")
        elif (name, value) == ("pattern", r"\S"):
            words.append("not blank")
        elif name == "propertyNames" and isinstance(value, dict):
            words.append(f"named {_grouped(type_words(value))}")
        else:
            words.append(f"{_BOUNDS.get(name, name)} {compact(value)}")
    return ", ".join(words) or "any"


def _fields(properties: JsonObject, required: Sequence[str], more: object) -> str:
    """Return the members of an object; `more` is the schema's value for other members."""
    members = [
        f"{name} ({type_words(schema)}{'' if name in required else ', optional'})"
        for name, schema in properties.items()
    ]
    return f"object of {', '.join(members)}{' and others' if more is not False else ''}"


def _grouped(words: str) -> str:
    return f"({words})" if ", " in words else words


def alternatives(words: Sequence[str]) -> str:
    """Join words as `a`, `a or b` or `a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _plain(value: object) -> str:
    return value if isinstance(value, str) else compact(value)
