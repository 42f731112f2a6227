"""Wrapping a failing template into a resource that carries it never makes it pass."""

from __future__ import annotations

import json
from random import Random

import pytest

from policyeng import admit
from policyeng.admission.decision import with_problems
from policyeng.bundle import Bundle
from policyeng.configuration import Settings
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import Evaluation, JsonObject, Snapshot
from policyeng.sources import normalize_context, parse_changes, read_inputs
from policyeng.verify.generators.examples import Example, Examples
from tests.carriers import CHANGE_WRAPPINGS, SCOPE, WRAPPINGS, Wrapped, wrapped
from tests.effort import effort
from tests.writers.arm_template import write

#: Templates that fail, of those drawn.
_COUNT = effort(2, 40)


def checked(bundle: Bundle, example: Example, document: JsonObject, *, is_placed: bool, strict: bool) -> Evaluation:
    """The evaluation of one document, as `policyeng check` makes it."""
    context = normalize_context(SCOPE if is_placed else "", "", {})
    read = read_inputs(["-"], stdin=json.dumps(document).encode(), context=context)
    problems = tuple(problem for problem in read.problems if problem.level == "error")
    options = EvaluationOptions(example.as_of, parameters=example.parameters, strict_unknown=strict, problems=problems)
    return evaluate(bundle, read.snapshot, options)


def admitted(bundle: Bundle, example: Example, document: JsonObject, *, is_placed: bool, strict: bool) -> int:
    """The exit code of `policyeng admit` where nothing is there before."""
    read = parse_changes(
        json.dumps(document).encode(), "change.json", context=normalize_context(SCOPE if is_placed else "", "", {})
    )
    decision = admit(
        bundle,
        Snapshot(),
        read.changes,
        as_of=example.as_of,
        parameters=example.parameters,
        strict_unknown=strict,
    )
    return with_problems(decision, read.problems, (), Settings()).exit_code


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_a_wrapped_template_fails_as_it_does_alone(bundle: Bundle, *, strict: bool) -> None:
    """Drawn templates in every carrier and format; where it is placed alike, the same policies fail at the same ids."""
    random, failing = Random(1), 0  # noqa: S311  # nothing here is secret
    examples = Examples(bundle)
    while failing < _COUNT:
        example = examples.drawn(random)
        body: JsonObject = json.loads(write([*example.snapshot.resources])["main.json"])
        alone = {placed: checked(bundle, example, body, is_placed=placed, strict=strict) for placed in (True, False)}
        if not all(each.exit_code == 1 for each in alone.values()):
            continue
        failing += 1
        for name in CHANGE_WRAPPINGS:
            made = wrapped(random, body, name, random.choice((0, 1, 2)))
            if name in WRAPPINGS:
                found = checked(bundle, example, made.document, is_placed=not made.is_stored, strict=strict)
                assert found.exit_code == 1, (name, found.problems)
                assert failures(found, made) >= failures(alone[not made.is_stored], made), name
            denied = admitted(bundle, example, body, is_placed=not made.is_stored, strict=strict)
            if denied:
                assert admitted(bundle, example, made.document, is_placed=not made.is_stored, strict=strict), name


def failures(found: Evaluation, made: Wrapped) -> set[tuple[str, str]]:
    """The policies that fail, with the id where that is the same in the carrier."""
    return {
        (finding.policy, "" if made.is_stored else finding.resource.lower())
        for finding in found.findings
        if finding.outcome == "fail"
    }
