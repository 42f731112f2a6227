"""Parameters with which a policy never passes or never fails, or that make no difference."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameter_schemas import fits
from policyeng.models import JsonObject, Outcome, Snapshot
from policyeng.verify.generators.documents import judges_documents
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.generators.examples import Example
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.generators.schema_values import fitting
from policyeng.verify.redundancy.observing import ObservedOutcomes, as_read, cases_of, evaluate_example, native_text
from policyeng.verify.redundancy.report import Remark

#: The number of values drawn for a parameter in addition to its default, bounds and choices; the number evaluated.
_DRAWN, _JUDGED_WITH = 40, 8
#: The number of cases that set the parameter, and of others, that are evaluated with each value.
_CASES = 10
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def parameter_remarks(observed: ObservedOutcomes, estates: EstateGenerator, seed: int) -> Iterator[Remark]:
    """Yield remarks on the parameters of each policy."""
    for policy in observed.bundle.policies:
        if judges_documents(policy):
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
        if _is_enough(results) or len(results) == _JUDGED_WITH:
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
        stated = policy.python.functions.judge.__globals__.values() if policy.python else ()
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
