"""An id of which a name is open decides only what it decides whatever the name is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import baselines_of, required_cases
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import lowered
from policyeng.testing.runner import PreparedCase, prepared_cases

BUNDLE = load_bundle()
BASELINES = baselines_of(BUNDLE)
#: The position of the name of the first resource in an id.
FIRST_NAME = 8
MOST_NAMES = 5


def outcome(alone: Bundle, case: PreparedCase, path: tuple[str | int, ...], text: str) -> str:
    """The outcome for the resource of a case with another text at a path, if nothing but the snapshot was read."""
    resources = tuple(
        replaced(resource, path, text) if lowered(resource["id"]) == lowered(case.identity) else resource
        for resource in case.snapshot.resources
    )
    snapshot = case.snapshot.model_copy(update={"resources": resources, "covers": ()})
    options = EvaluationOptions(case.as_of, parameters={alone.policies[0].id: case.case.parameters})
    findings = evaluate(alone, snapshot, options).findings
    return next((finding.outcome for finding in findings if lowered(finding.resource) == lowered(case.identity)), "")


def referenced(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each id of a resource in a value, with its path."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from referenced(member, (*path, key))
    if isinstance(value, str) and value.lower().startswith("/subscriptions/") and "/providers/" in value.lower():
        yield path, value


def replaced(value: object, path: tuple[str | int, ...], text: str) -> object:
    """A copy of a value with another text at a path."""
    if not path:
        return text
    if isinstance(value, dict):
        return {key: replaced(member, path[1:], text) if key == path[0] else member for key, member in value.items()}
    assert isinstance(value, list)
    return [replaced(member, path[1:], text) if index == path[0] else member for index, member in enumerate(value)]


@pytest.mark.slow
@pytest.mark.parametrize("policy", BUNDLE.policies, ids=lambda policy: policy.id)
def test_an_open_name_decides_nothing_wrongly(policy: Policy) -> None:
    """What is decided with a name in braces is decided alike, or not at all, with each name that it may have."""
    alone, seen = BUNDLE.only([policy]), set[object]()
    for case in prepared_cases(policy, required_cases(policy), BASELINES):
        ids = [resource["id"] for resource in case.snapshot.resources]
        resource = next(
            (each for each in case.snapshot.resources if lowered(each["id"]) == lowered(case.identity)), None
        )
        for path, written in referenced(resource):
            if path[0] in ("id", "name") or (case.expected, path) in seen or case.expected not in ("pass", "fail"):
                continue
            seen.add((case.expected, path))
            parts = written.split("/")
            for position in {FIRST_NAME, len(parts) - 1} & set(range(len(parts))):
                before, after = "/".join(parts[:position]), "/".join(["", *parts[position + 1 :]]).rstrip("/")
                decided = outcome(alone, case, path, f"{before}/{{open}}{after}")
                names = sorted({arm_id.split("/")[position] for arm_id in ids if arm_id.count("/") >= position})
                for name in [parts[position], "other", *names[:MOST_NAMES]] if decided != "unknown" else []:
                    assert outcome(alone, case, path, f"{before}/{name}{after}") in (decided, "unknown"), (
                        case.name,
                        path,
                    )
