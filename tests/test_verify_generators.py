"""Examples of a bundle meet every policy from both sides; `python -m tests.test_verify_generators` counts it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import STATED
from policyeng.models import WORKSPACE_TYPE, lowered
from policyeng.verify import strategies
from policyeng.verify.example_documents import read
from policyeng.verify.generators.documents import COMPUTES
from policyeng.verify.generators.examples import Example, Examples, Kind, examples_of
from tests.bundles import write
from tests.effort import effort
from tests.foreign_bundles import DOCUMENTS, RESOURCES

SEED = 20261121
OUTCOMES = ("fail", "pass", "unknown", "error")
BUNDLE = load_bundle()
SOURCE = Examples(BUNDLE)


def met(bundle: Bundle, examples: Iterable[Example]) -> tuple[Mapping[str, Counter[str]], list[int]]:
    """By policy id, in how many examples it has a finding of each outcome; and how many findings each example has."""
    counts: dict[str, Counter[str]] = {policy.id: Counter() for policy in bundle.policies}
    sizes = []
    for example in examples:
        findings = evaluate(bundle, example.snapshot, as_of=example.as_of, parameters=example.parameters).findings
        for policy, outcome in {(finding.policy, finding.outcome.value) for finding in findings}:
            counts[policy][outcome] += 1
        sizes.append(len(findings))
    return counts, sizes


@pytest.mark.slow
def test_every_policy_is_met_from_both_sides_in_nearly_compliant_examples() -> None:
    """Each policy is in focus twice or more; `python -m tests.test_verify_generators` makes a longer run."""
    counts, sizes = met(BUNDLE, (SOURCE.numbered(SEED, number, "nearly-compliant") for number in range(400)))

    starved = {
        policy: dict(outcomes) for policy, outcomes in counts.items() if min(outcomes[o] for o in OUTCOMES[:2]) < 2
    }
    assert starved == {}
    assert not any(outcomes["error"] for outcomes in counts.values())
    assert sum(sizes) / len(sizes) < 300
    assert max(sizes) > 320


@pytest.mark.slow
@pytest.mark.parametrize("files", [RESOURCES, DOCUMENTS], ids=["resources", "documents"])
def test_policies_without_cases_are_met_from_both_sides(tmp_path: Path, files: dict[str, str]) -> None:
    """Nothing but `inspects` and the constants of their code determines where their branches are."""
    bundle = load_bundle(write(tmp_path, files))
    source = Examples(bundle)

    for kind in (None, "nearly-compliant"):
        counts, _ = met(bundle, (source.numbered(SEED, number, kind) for number in range(300)))
        assert {policy: dict(met) for policy, met in counts.items() if not (met["fail"] and met["pass"])} == {}, kind


def test_numbers_just_next_to_thresholds_are_drawn(tmp_path: Path) -> None:
    """The last that passes and the first that fails, in a nested field, in a member of a list and in a document."""
    resources = Examples(load_bundle(write(tmp_path / "r", RESOURCES)))
    documents = Examples(load_bundle(write(tmp_path / "d", DOCUMENTS)))
    drawn = [resources.numbered(SEED, number).document for number in range(300)]
    written = [documents.numbered(SEED, number).document["documents"] for number in range(300)]

    assert {37, 38} <= set(there(drawn, "maxNodeCount"))
    assert {89, 90} <= set(there(drawn, "retentionDays"))
    assert {2, 3} <= set(there(written, "replicas"))


@pytest.mark.slow
def test_an_example_has_a_number() -> None:
    """Any of a seed can be drawn without the ones before it, by any process; another seed gives others."""
    taken = list(islice(examples_of(BUNDLE, SEED), 130))

    assert [SOURCE.numbered(SEED, number) for number in (129, 0, 61)] == [taken[129], taken[0], taken[61]]
    assert SOURCE.numbered(SEED + 1, 0) != taken[0]


def test_drawing_changes_nothing_that_other_examples_share() -> None:
    """Examples share parts with the baselines; whatever is drawn later leaves them as they were."""
    before = [orjson.dumps(SOURCE.numbered(SEED, number).document) for number in range(60)]
    for number in range(60, 200):
        SOURCE.numbered(SEED, number)

    assert [orjson.dumps(SOURCE.numbered(SEED, number).document) for number in range(60)] == before


def test_drawing_never_raises() -> None:
    """Also where an edit meets what another one made of a huge number: every kind, alone and of one policy."""
    for source in (SOURCE, Examples(BUNDLE.only(BUNDLE.policies[:1]))):
        for kind in get_args(Kind):
            for number in range(effort(60, 600)):
                source.numbered(SEED + 1, number, kind)


def test_plausible_estates_have_what_the_documents_speak_of() -> None:
    """Every kind of compute, many sizes of the catalogue and regions, and nothing that `policyeng check` refuses."""
    examples = [SOURCE.numbered(SEED, number, "plausible") for number in range(300)]
    resources = [resource for example in examples for resource in example.document["resources"]]
    kinds = {
        resource["properties"].get("computeType")
        for resource in resources
        if lowered(str(resource["type"])).endswith("/computes") and isinstance(resource["properties"], dict)
    }

    assert set(COMPUTES) <= kinds
    assert len({size for size in there(resources, "vmSize") if BUNDLE.facts.size(str(size))}) > 60
    assert len(set(there(resources, "location"))) > 10
    assert all(read(example.document) is not None for example in examples[:20])


def test_estates_have_several_workspaces_and_everything_around_them() -> None:
    """Approvals, workloads, quotas, metrics, principals, roles, networks, and exemptions active and not."""
    examples = [SOURCE.numbered(SEED, number, "estate") for number in range(60)]
    types = [[lowered(str(one["type"])) for one in example.document["resources"]] for example in examples]
    ends = [exemption.expires_at > example.as_of for example in examples for exemption in example.exemptions]

    assert min(present.count(WORKSPACE_TYPE) for present in types) >= 2
    assert {kind for kind in STATED if any(example.document[kind] for example in examples)} == set(STATED)
    assert {
        "microsoft.authorization/roleassignments",
        "microsoft.authorization/roledefinitions",
        "microsoft.network/virtualnetworks",
    } <= {kind for present in types for kind in present}
    assert {True, False} <= set(ends)
    for kind in ("approvals", "workloads", "principals"):
        ids = [[lowered(entry["id"]) for entry in example.document[kind]] for example in examples]
        assert [len(each) for each in ids] == [len(set(each)) for each in ids], kind


@pytest.mark.slow
@settings(deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.parametrize("name", ["wild", "plausible", "nearly_compliant", "estates", "examples"])
def test_strategies_draw_what_is_evaluated(name: str, data: st.DataObject) -> None:
    """Each public strategy gives examples that `evaluate` takes, with exemptions of their own."""
    example = data.draw(getattr(strategies, name)(BUNDLE))
    exemptions = data.draw(strategies.exemptions(BUNDLE, example))

    evaluation = evaluate(
        BUNDLE, example.snapshot, as_of=example.as_of, parameters=example.parameters, exemptions=exemptions
    )
    assert evaluation.summary.error == 0


def test_resources_that_no_policy_looks_at_are_not_drawn() -> None:
    """A bundle of one policy about workspaces has no diagnostic settings, alerts or registries in its examples."""
    one = Examples(BUNDLE.only(policy for policy in BUNDLE.policies if policy.id == "AML-NET-001"))
    kinds = {
        lowered(str(resource["type"]))
        for number in range(effort(60, 300))
        for resource in one.numbered(SEED, number, "nearly-compliant").document["resources"]
    }

    assert WORKSPACE_TYPE in kinds
    assert not {
        kind for kind in kinds if kind.endswith(("/metricalerts", "/diagnosticsettings", "services/registries"))
    }


def there(value: object, key: str) -> list[Any]:
    """Every text and number under a key, however deep."""
    if isinstance(value, list):
        return [found for member in value for found in there(member, key)]
    if not isinstance(value, dict):
        return []
    own = [value[key]] if isinstance(value.get(key), str | int | float) else []
    return own + [found for member in value.values() for found in there(member, key)]


def print_line(line: str) -> None:
    """Write a line of the table."""
    sys.stdout.write(f"{line}\n")


def main(number: int, kind: Kind | None) -> None:
    """Print how often each policy is met in so many examples of a kind, and what drawing and evaluating them costs."""
    for one in get_args(Kind):
        SOURCE.numbered(SEED, 0, one)  # preparing the bundle once is no cost of an example
    began = time.process_time()
    examples = [SOURCE.numbered(SEED, one, kind) for one in range(number)]
    drawn = time.process_time()
    counts, sizes = met(BUNDLE, examples)
    ended = time.process_time()
    print_line(f"{'policy':16}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for policy, outcomes in sorted(counts.items(), key=lambda entry: min(entry[1]["fail"], entry[1]["pass"])):
        print_line(f"{policy:16}" + "".join(f"{outcomes[outcome]:9}" for outcome in OUTCOMES))
    deciles = [sorted(sizes)[len(sizes) * tenth // 10] for tenth in range(10)]
    print_line(f"{number} examples; findings: mean {sum(sizes) / number:.0f}, deciles {deciles}, most {max(sizes)}")
    print_line(
        f"drawing {(drawn - began) / number * 1000:.2f} ms, evaluating {(ended - drawn) / number * 1000:.2f} ms each"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1000, sys.argv[2] if sys.argv[2:] else "nearly-compliant")  # type: ignore[arg-type]  # the text of a user
