"""Find policies and parameters that make no difference to any outcome, and report them."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from random import Random
from typing import Literal, get_args
from xml.etree.ElementTree import Element, SubElement

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import TargetType, fits
from policyeng.evaluation.matching import plan
from policyeng.evaluation.pointers import has_value
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.models import Accelerator, Cadence, JsonObject, Outcome, Purpose, Snapshot, Target, lowered
from policyeng.report.junit import add_case, junit_text, set_counts
from policyeng.report.phrases import count
from policyeng.testing.reports import text_of_lines
from policyeng.verify.example_documents import command, list_parameters, native
from policyeng.verify.generators.documents import evaluates_documents, fitting
from policyeng.verify.generators.estates import STATEMENTS, EstateGenerator
from policyeng.verify.generators.examples import Example, Examples, examples_of
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.observation import (
    DistinguishingSearch,
    ObservedOutcomes,
    Seen,
    as_read,
    cases_of,
    evaluate_example,
    native_text,
    shrink_distinguishing,
)

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
    root = Element("testsuites", name="policyeng verify --redundancy")
    suite = SubElement(root, "testsuite", name="redundancy")
    for policy in analysis.outcomes:
        remarks = [remark for remark in analysis.remarks if remark.policy == policy]
        faults = [remark for remark in remarks if remark.is_fault]
        text = "\n".join(line for remark in faults for line in _explain(remark, naming))
        message = "; ".join(remark.message for remark in faults)
        case = add_case(suite, "redundancy", policy, "failure" if faults else "", message, text)
        if lines := [line for remark in remarks if not remark.is_fault for line in _explain(remark, naming)]:
            SubElement(case, "system-out").text = "\n".join(lines)
    set_counts(suite, "failures")
    return junit_text(root)


def _lines(analysis: RedundancyAnalysis, naming: Sequence[str]) -> Iterator[str]:
    for remark in analysis.remarks:
        yield from _explain(remark, naming)
        yield ""
    tests = f"{count(analysis.cases, 'case')} and {count(analysis.examples, 'example')}"
    yield f"seed {analysis.seed}: {count(len(analysis.outcomes), 'policy')} on {tests}"
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
    rendered: JsonObject = {
        "policy": remark.policy,
        "kind": remark.kind,
        "fault": remark.is_fault,
        "proved": remark.is_proved,
        "message": remark.message,
        "tried": remark.tried,
        "remedy": remark.remedy,
    }
    if remark.other:
        rendered["other"] = remark.other
    if remark.example is not None:
        rendered |= {
            "resource": remark.resource,
            "snapshot": native(remark.example.document),
            "parameters": dict(remark.example.parameters),
            "asOf": remark.example.as_of.isoformat(),
        }
    return rendered


#: The possible values of the fields of workloads.
_WORDS = {"/purpose": Purpose, "/target": Target, "/accelerator": Accelerator, "/cadence": Cadence}
_REASON = re.compile(r"""(?:"msg"\s*:|\bmsg\s*=)\s*"((?:[^"\\\n]|\\.)*)\"""")
#: The similarity from which on a word is reported as a misspelling of a known one.
_ALIKE = 0.85


@dataclass(frozen=True)
class _Known:
    """The resources of the baselines and of every case."""

    resources: tuple[JsonObject, ...]

    @cached_property
    def types(self) -> dict[str, str]:
        """The types by lower-case type."""
        return {lowered(kind): kind for entry in self.resources if isinstance(kind := entry.get("type"), str)}

    def of_type(self, kind: str) -> list[JsonObject]:
        """Return the resources of a type."""
        return [entry for entry in self.resources if lowered(str(entry.get("type"))) == lowered(kind)]


def outcome_remarks(observed: ObservedOutcomes, estates: EstateGenerator) -> Iterator[Remark]:
    """Yield remarks on the outcomes of each policy on cases and examples."""
    documents = [document for cases in estates.cases.values() for _, document in cases]
    every = {id(entry): entry for document in documents for entry in document["resources"]}
    known = _Known((*estates.baselines.resources.values(), *every.values()))
    for policy in observed.bundle.policies:
        if evaluates_documents(policy):
            message = "it evaluates documents, and examples are snapshots of resources"
            yield Remark(policy.id, "not tried", message, "nothing", "test it with your own documents", is_fault=False)
            continue
        yield from _of_policy(policy, observed, known)


def describe_tests(observed: ObservedOutcomes, policy: Policy) -> str:
    """Describe what a policy was tested on, and its outcomes."""
    more = f", {observed.more[policy.id]:,} more drawn for it" if observed.more[policy.id] else ""
    outcomes = sorted(observed.seen[policy.id].outcomes.items())
    counts = ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes) or "no finding"
    return f"{count(observed.cases, 'case')} and {count(observed.examples, 'example')}{more}: {counts}"


def _of_policy(policy: Policy, observed: ObservedOutcomes, known: _Known) -> Iterator[Remark]:
    seen = observed.seen[policy.id]
    missed = [(target, *_explain_mismatch(target, known)) for target in policy.header.judges]
    wrong = [(reason, is_proved) for _, reason, is_proved in missed if reason]
    if len(wrong) == len(missed):
        message = f"it never applies: {'; '.join(reason for reason, _ in wrong)}"
        remedy = "correct its `judges`"
        is_proved = all(proved for _, proved in wrong)
        yield Remark(policy.id, "vacuous", message, describe_tests(observed, policy), remedy, is_proved=is_proved)
        return
    for reason, is_proved in wrong:
        message = f"one entry of its `judges` matches nothing: {reason}"
        remedy = "correct the entry, or remove it"
        yield Remark(
            policy.id, "vacuous", message, describe_tests(observed, policy), remedy, is_fault=False, is_proved=is_proved
        )
    if not seen.decided or (seen.decided == {Outcome.UNKNOWN} and _decides_all(policy)):
        yield _remark_vacuous(policy, observed, known)
        return
    yield from _find_one_sided(policy, observed, seen)
    if seen.failures:
        yield from _find_unused_reasons(policy, observed, seen)


def _remark_vacuous(policy: Policy, observed: ObservedOutcomes, known: _Known) -> Remark:
    taken = _count_matches(observed.bundle.only([policy]), known)
    if taken:
        message = (
            f"it never applies: its `judges` matches {taken} resources of the baselines, but `applies` is never true"
        )
        remedy = "loosen `applies`, or add a case to which it applies"
    else:
        message = "it never applies: nothing matches its `judges`"
        remedy = "correct its `judges`, or add a case to which it applies"
    return Remark(policy.id, "vacuous", message, describe_tests(observed, policy), remedy)


def _decides_all(policy: Policy) -> bool:
    """Check whether a policy is unknown only where a field cannot be read, which is before `applies` is evaluated."""
    return policy.python is None and all(role != "unknown" for role, _ in policy.rules)


def _count_matches(alone: Bundle, known: _Known) -> int:
    """Count the known resources that match the `judges` of a policy."""
    distinct = {lowered(str(entry.get("id"))): entry for entry in known.resources}
    snapshot = as_read(orjson.dumps({"snapshotVersion": 1, "resources": list(distinct.values())}))
    return sum(1 for _ in plan(alone, estate_of(snapshot, alone.facts)))


def _find_one_sided(policy: Policy, observed: ObservedOutcomes, seen: Seen) -> Iterator[Remark]:
    evidence = describe_tests(observed, policy)
    if not seen.failures:
        always = "is unknown" if seen.decided == {Outcome.UNKNOWN} else "passes"
        if len(seen.decided) > 1:
            always = "passes or is unknown"
        remedy = "add a case that fails; if there cannot be one, remove the policy"
        yield Remark(policy.id, "dead", f"it never fails: it always {always}", evidence, remedy)
    elif not seen.outcomes[Outcome.PASS]:
        remedy = "add a case that passes; if there cannot be one, no one can comply"
        yield Remark(policy.id, "never passes", "it never passes", evidence, remedy, is_fault=False)


def _find_unused_reasons(policy: Policy, observed: ObservedOutcomes, seen: Seen) -> Iterator[Remark]:
    """Yield a remark for each reason in the policy's own Rego that it never returned."""
    sources = dict(observed.bundle.modules)
    for reason in dict.fromkeys(_REASON.findall(sources.get(policy.file, ""))):
        if reason not in seen.reasons:
            remedy = "add a case in which the rule is true; if there cannot be one, remove the rule"
            message = f"it never returns the reason `{reason}`"
            yield Remark(policy.id, "reason", message, describe_tests(observed, policy), remedy, is_fault=False)


def _explain_mismatch(target: TargetType, known: _Known) -> tuple[str, bool]:
    """Return why nothing can match an entry of `judges`, and whether that is proved; empty if something may match."""
    if lowered(target.type) not in STATEMENTS:
        return _unknown_type(target, known), False
    for pointer, allowed in target.where.items() if lowered(target.type) == "workload" else ():
        words = get_args(_WORDS.get(pointer))
        if words and not {lowered(str(entry)) for entry in allowed} & set(words):
            return f"no workload has `{allowed[0]}` at `{pointer}`: it is one of {', '.join(words)}", True
    return "", False


def _unknown_type(target: TargetType, known: _Known) -> str:
    kind = lowered(target.type)
    if kind not in known.types:
        near = next((known.types[other] for other in sorted(known.types) if _is_misspelling(kind, other)), "")
        return f"nothing has the type `{target.type}`; did you mean `{near}`" if near else ""
    for pointer, allowed in target.where.items():
        peers = known.of_type(kind)
        if not any(has_value(entry, pointer) for entry in peers) and (near := _find_near_pointer(pointer, peers)):
            return f"no resource of the type has `{pointer}`, expected one of {list(allowed)}; did you mean `{near}`"
    return ""


def _is_misspelling(kind: str, other: str) -> bool:
    """Check whether one type is a misspelling of another: nearly the same word in place of one."""
    ours, theirs = kind.split("/"), other.split("/")
    differing = [(one, two) for one, two in zip(ours, theirs, strict=False) if one != two]
    return len(ours) == len(theirs) and all(get_close_matches(one, [two], 1, _ALIKE) for one, two in differing)


def _find_near_pointer(pointer: str, resources: Iterable[JsonObject]) -> str:
    """Return a pointer that some resource has, with nearly the same last word."""
    above, _, last = pointer.rpartition("/")
    for resource in resources:
        value: object = resource
        for key in above.split("/")[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        names = {lowered(name): name for name in value} if isinstance(value, dict) else {}
        if close := get_close_matches(lowered(last), names, 1, _ALIKE):
            return f"{above}/{names[close[0]]}"
    return ""


#: The number of values drawn for a parameter in addition to its default, bounds and choices; the number evaluated.
_DRAWN, _EVALUATED_WITH = 40, 8
#: The number of cases that set the parameter, and of others, that are evaluated with each value.
_CASES = 10
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def parameter_remarks(observed: ObservedOutcomes, estates: EstateGenerator, seed: int) -> Iterator[Remark]:
    """Yield remarks on the parameters of each policy."""
    for policy in observed.bundle.policies:
        if evaluates_documents(policy):
            continue
        for name, schema in policy.header.parameters.items():
            random = Random(f"{seed}/{policy.id}/{name}")  # noqa: S311  # nothing here is secret
            given = [case.parameters.get(name) for case, _ in estates.cases.get(policy.id, ())]
            values = _values(random, schema, estates.vocabulary.words[policy.id].own, given)
            yield from _of_parameter(policy, name, values, observed, estates)


def _values(random: Random, schema: JsonObject, words: Sequence[Json], given: Sequence[Json]) -> list[Json]:
    """Return values that fit: those of cases, the bounds and their neighbors, choices, empty ones, random ones."""
    stated: list[Json] = [*given, *schema.get("enum", ()), schema.get("const"), schema.get("default")]
    for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(number := schema.get(bound), int | float):
            stated += [number, number + 1, number - 1]
    stated += [True, False, [], {}, 0, 1]
    items = schema.get("items")
    if isinstance(items, dict) and items.get("enum"):
        stated += [list(items["enum"]), *([entry] for entry in items["enum"])]
    drawn = [fitting(random, schema, words) for _ in range(_DRAWN)]
    distinct = {json.dumps(value, sort_keys=True): value for value in (*stated, *drawn) if fits(schema, value)}
    return list(distinct.values())


@dataclass(frozen=True)
class _ValueOutcomes:
    """The outcomes of a policy on everything with one value of a parameter."""

    value: Json
    counts: Counter[str]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class _Examples:
    """The examples for each value; snapshots are read once."""

    alone: Bundle
    examples: tuple[tuple[Example, Snapshot], ...]

    def results(self, name: str, value: Json) -> _ValueOutcomes:
        """Return the outcomes with a value."""
        (policy,) = (entry.id for entry in self.alone.policies)
        counts: Counter[str] = Counter()
        texts: list[str] = []
        for example, snapshot in self.examples:
            parameters = {policy: {**example.parameters.get(policy, {}), name: value}}
            findings = evaluate_example(self.alone, replace(example, parameters=parameters), snapshot).findings
            counts.update(finding.outcome for finding in findings)
            results = [(finding.resource, finding.outcome, finding.denials, finding.unknowns) for finding in findings]
            texts.append(repr(results))
        return _ValueOutcomes(value, counts, tuple(texts))


def _of_parameter(
    policy: Policy, name: str, values: Sequence[Json], observed: ObservedOutcomes, estates: EstateGenerator
) -> Iterator[Remark]:
    if _is_never_read(policy, name, observed.bundle, estates):
        message, evidence = f"its parameter `{name}` is never read", "its text and that of what it imports"
        yield Remark(policy.id, "parameter", message, evidence, "remove it", is_proved=bool(policy.rules))
        return
    examples_of_parameter = _choose_examples(policy, name, observed, estates)
    default = examples_of_parameter.results(name, policy.header.defaults[name])
    results = [default]
    for value in values:
        if _is_enough(results) or len(results) == _EVALUATED_WITH:
            break
        if value != default.value:
            results.append(examples_of_parameter.results(name, value))
    evidence = f"{len(results)} values on {len(examples_of_parameter.examples)} cases and examples"
    yield from _of_values(policy, name, results, evidence, observed)


def _is_enough(results: Sequence[_ValueOutcomes]) -> bool:
    """Check whether the values show all that there is to find: both outcomes, and a difference."""
    met = sum((entry.counts for entry in results), Counter[str]())
    return bool(met[Outcome.FAIL] and met[Outcome.PASS]) and len({entry.findings for entry in results}) > 1


def _of_values(
    policy: Policy, name: str, results: Sequence[_ValueOutcomes], evidence: str, observed: ObservedOutcomes
) -> Iterator[Remark]:
    seen = observed.seen[policy.id].outcomes  # with values of its cases and examples, too
    met = sum((entry.counts for entry in results), Counter(seen))
    if not met:
        return  # reported elsewhere
    for outcome, verb in ((Outcome.FAIL, "fail"), (Outcome.PASS, "pass")):
        if not met[outcome] and len(results) > 1:
            message = f"it does not {verb} with any tested value of its parameter `{name}`"
            remedy = "correct the schema or the comparison: the two may count in different units"
            yield Remark(policy.id, "parameter", message, evidence, remedy)
            return
    if len({entry.findings for entry in results}) == 1:
        message = f"no tested value of its parameter `{name}` makes a difference"
        remedy = "add a case in which it does; if there cannot be one, remove it"
        yield Remark(policy.id, "parameter", message, evidence, remedy, is_fault=False)
        return
    for outcome, verb in ((Outcome.FAIL, "fails"), (Outcome.PASS, "passes")):
        if not results[0].counts[outcome]:
            message = f"with the default of its parameter `{name}`, `{json.dumps(results[0].value)}`, it never {verb}"
            yield Remark(
                policy.id, "parameter", message, evidence, "nothing, if users are meant to set it", is_fault=False
            )


def _is_never_read(policy: Policy, name: str, bundle: Bundle, estates: EstateGenerator) -> bool:
    """Check whether the name of a parameter is nowhere that the policy could read it; False if that is uncertain."""
    if not policy.rules:
        words = estates.vocabulary.words[policy.id]
        stated = policy.python.functions.evaluate.__globals__.values() if policy.python else ()
        texts = [value for value in stated if isinstance(value, str)]  # a constant can contain the name
        return name not in (*words.own, *words.borrowed, *texts)
    # Any policy may import modules that are not policies, but not the text of another policy.
    others = {entry.file for entry in (*bundle.policies, *bundle.idle)} - {policy.file}
    whole = re.compile(rf"\binput\.parameters\b(?![.\[])|\b{re.escape(name)}\b")
    modules = [_COMMENT.sub("", source) for file, source in bundle.modules if file not in others]
    return not any(whole.search(text) for text in modules)


def _choose_examples(policy: Policy, name: str, observed: ObservedOutcomes, estates: EstateGenerator) -> _Examples:
    """Return the examples: cases that set the parameter, other cases, and examples that fail or pass."""
    own = [example for _, example in cases_of(policy.id, estates)]
    giving = [example for example in own if name in example.parameters.get(policy.id, {})]
    others = [example for example in own if name not in example.parameters.get(policy.id, {})]
    step = max(1, len(others) // _CASES)
    seen = observed.seen[policy.id]
    kept = [sighting.example for sighting in (*seen.failing[:3], *seen.passing[:3])]
    chosen = (*giving[:_CASES], *others[::step][:_CASES], *kept)
    examples = tuple((example, as_read(native_text(example))) for example in chosen)
    return _Examples(observed.bundle.only([policy]), examples)


#: The number of examples in the search for one that distinguishes a policy from those that seem to imply it; as many
#: again with parameters.
TRIES = 300
#: The number of attempts to shrink an example for the report.
_SHRINKING = 600
#: The share of its failures from which on a policy is reported to fail often together with another one.
_OFTEN = 0.95
_ENOUGH = 20
_REMEDY = "remove it, or let it cover what `{0}` does not; if it adds detail to `{0}`, add `{0}` to its `refines`"


@dataclass(frozen=True)
class _DistinguishingExample:
    """An example that distinguishes a policy from another one, if there is one, and its origin."""

    example: Example | None
    tries: int
    with_parameters: bool = False
    was_searched: bool = True


def implication_remarks(
    observed: ObservedOutcomes, estates: EstateGenerator, seed: int, tries: int = TRIES
) -> Iterator[Remark]:
    """Yield a remark for each policy that fails only, or nearly only, where another one does.

    `tries` is the number of examples in the search for a distinguishing one, twice if it needs parameters.
    """
    random = Random(f"{seed}/apart")  # noqa: S311  # nothing here is secret
    search = DistinguishingSearch(observed.bundle, observed.seen, estates.vocabulary, random)
    checked = [policy for policy in observed.bundle.policies if not evaluates_documents(policy)]
    found = {policy.id: _find_implying(policy, observed, search, tries) for policy in checked}
    implied = {(policy, other) for policy, others in found.items() for other in others if not others[other].example}
    for policy in checked:
        for other, apart in sorted(found[policy.id].items()):
            yield _remark(policy, other, apart, observed, is_equal=(other, policy.id) in implied)


def _find_implying(
    policy: Policy, observed: ObservedOutcomes, search: DistinguishingSearch, tries: int
) -> dict[str, _DistinguishingExample]:
    """Return the policies that seem to imply a policy, or that often fail together with it."""
    seen = observed.seen[policy.id]
    stated = {entry.id for entry in observed.bundle.policies}.intersection(policy.header.refines)
    together = {other for other in seen.together if other != policy.id} | stated
    unparted = {other for other in together if other not in seen.apart}
    seeming = {other for other in seen.plainly_together if other != policy.id and other not in seen.plainly_apart}
    plain = search.found(policy, sorted(seeming | unparted), tries, parameters=False)
    given = search.found(policy, sorted(unparted - plain.keys()), tries, parameters=True)
    others = {other: _DistinguishingExample(None, 2 * tries) for other in unparted}
    others |= {
        other: _DistinguishingExample(seen.apart[other].example, tries, with_parameters=True)
        for other in seeming - unparted
    }
    others |= {other: _DistinguishingExample(example, tries, with_parameters=True) for other, example in given.items()}
    others |= {other: _DistinguishingExample(example, tries) for other, example in plain.items()}
    for other in together - others.keys():
        is_often = seen.failures >= _ENOUGH and seen.together[other] >= _OFTEN * seen.failures
        if is_often or other in stated:
            plainly = seen.plainly_apart.get(other)
            others[other] = _DistinguishingExample(
                (plainly or seen.apart[other]).example, tries, was_searched=False, with_parameters=plainly is None
            )
    return others


def _remark(
    policy: Policy, other: str, apart: _DistinguishingExample, observed: ObservedOutcomes, *, is_equal: bool
) -> Remark:
    seen = observed.seen[policy.id]
    evidence = f"{seen.together[other]:,} of {seen.failures:,} failures"
    if apart.example is None:
        evidence += f", then {apart.tries:,} attempts to distinguish them"
        return _remark_implied(policy, other, observed, evidence, is_equal=is_equal)
    breaks = other in policy.header.refines and not apart.with_parameters  # it is a claim about the defaults
    small = shrink_distinguishing(observed.bundle, policy.id, other, apart.example, most=_SHRINKING)
    example, resource = small or (apart.example, "")
    message, remedy = _describe_distinction(other, apart, breaks=breaks)
    return Remark(
        policy.id,
        "told apart",
        message,
        evidence,
        remedy,
        is_fault=breaks,
        is_proved=True,
        other=other,
        example=example,
        resource=resource,
    )


def _describe_distinction(other: str, apart: _DistinguishingExample, *, breaks: bool) -> tuple[str, str]:
    if breaks:
        return f"it refines `{other}`, but fails without it", f"remove `{other}` from its `refines`"
    remedy = "nothing, if the policy is meant for this example; add it as a case"
    if not apart.was_searched:
        return f"it fails together with `{other}` except for rare examples", remedy
    where = " only with other parameters" if apart.with_parameters else ""
    return f"it seems implied by `{other}`, but an example distinguishes them{where}", remedy


def _remark_implied(policy: Policy, other: str, observed: ObservedOutcomes, evidence: str, *, is_equal: bool) -> Remark:
    implying = next(entry.header for entry in observed.bundle.policies if entry.id == other)
    message = (
        f"it fails where `{other}` fails, and nowhere else" if is_equal else f"it fails only where `{other}` fails"
    )
    if implying.severity.rank < policy.header.severity.rank:
        message += f", which is less severe (`{implying.severity}`, and it is `{policy.header.severity}`)"
    stated = other in policy.header.refines
    is_fault = not stated and implying.severity.rank >= policy.header.severity.rank
    remedy = "nothing: its `refines` says so" if stated else _REMEDY.format(other)
    kind: Kind = "equal" if is_equal else "implied"
    return Remark(policy.id, kind, message, evidence, remedy, is_fault=is_fault, other=other)


#: The number of additional examples for a policy that does not both pass and fail on the others.
_MORE = 100


def analysed(
    bundle: Bundle,
    examples: int,
    seed: int,
    *,
    tries: int = TRIES,
    progress: Callable[[int], None] = lambda _: None,
) -> RedundancyAnalysis:
    """Evaluate every case of a bundle and random examples, and report redundant policies and parameters.

    The same bundle, number and seed give the same analysis.

    Args:
        bundle: the active policies.
        examples: the number of random examples.
        seed: the seed of the examples.
        tries: the number of examples in the search for one that distinguishes a policy from another.
        progress: called with the number of evaluated cases and examples.

    Raises:
        BundleError: a `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    estates = EstateGenerator(bundle)
    observed = ObservedOutcomes(bundle)
    for policy in bundle.policies:
        alone = bundle.only([policy])
        for case, example in cases_of(policy.id, estates):
            # The other policies matter on a case where its policy fails, and a failing case has a path.
            observed.record(example, bundle if case.path is not None else alone)
            observed.cases += 1
            progress(observed.cases)
    for example in islice(examples_of(bundle, seed), examples):
        observed.record(example)
        observed.examples += 1
        progress(observed.cases + observed.examples)
    source = Examples(bundle)
    for policy in bundle.policies:
        if not evaluates_documents(policy):
            _draw_more_examples(observed, policy, source, seed)
    remarks = [
        *outcome_remarks(observed, estates),
        *parameter_remarks(observed, estates, seed),
        *implication_remarks(observed, estates, seed, tries),
    ]
    outcomes = {policy: seen.outcomes for policy, seen in observed.seen.items()}
    return RedundancyAnalysis(seed, observed.examples, observed.cases, outcomes, tuple(sorted(remarks, key=_order)))


def _draw_more_examples(observed: ObservedOutcomes, policy: Policy, source: Examples, seed: int) -> None:
    """Draw more examples for a policy that does not both pass and fail yet, until it does."""
    seen = observed.seen[policy.id]
    while observed.more[policy.id] < _MORE and not {Outcome.FAIL, Outcome.PASS} <= seen.decided:
        random = Random(f"{seed}/{policy.id}/{observed.more[policy.id]}")  # noqa: S311  # nothing here is secret
        observed.record(source.drawn(random, policy))
        observed.more[policy.id] += 1


def _order(remark: Remark) -> tuple[bool, str, str, str]:
    return (not remark.is_fault, remark.policy, remark.kind, remark.other)
