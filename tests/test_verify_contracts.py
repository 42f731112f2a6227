"""Laws 14 and 15: what headers call stricter or insensitive is so, and broken contracts are found.

`python -m tests.test_verify_contracts [N] [SEED]` tries the contracts of our headers on N examples (2,000 unless given)
and prints how often each was tested.
"""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime
from itertools import islice
from pathlib import Path

import pytest

import policyeng
from policyeng.bundle import Bundle
from policyeng.verify.generators.examples import examples_of
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.laws import header_laws
from policyeng.verify.laws.header_laws import Way, list_stricter_values
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation
from policyeng.verify.laws.read_laws import count_tests
from tests.bundles import deny_when, rego, write
from tests.rego_oracle import seeded

LAWS = (header_laws.MONOTONICITY, header_laws.INVARIANCE)


BROKEN = Path(__file__).parent / "broken"


def found(law: Law, bundle: Bundle, examples: int, seed: int = 7) -> tuple[LawContext, list[Violation]]:
    """The violations of a law by a bundle in so many examples."""
    grounds = LawContext(bundle)
    drawn = enumerate(islice(examples_of(bundle, seed), examples))
    violations = (law.violated(Trial(grounds, example, chance=f"{seed}/{number}")) for number, example in drawn)
    return grounds, [violation for violation in violations if violation]


@pytest.mark.slow
def test_a_stricter_value_that_fails_is_found() -> None:
    """A comparison that is turned round in one branch is blamed on its policy, with what was written and found."""
    _, violations = found(header_laws.MONOTONICITY, policyeng.load_bundle(BROKEN / "monotone"), 200)

    assert {violation.policy for violation in violations} == {"BROKEN-MONOTONE-001"}
    assert all("maxNodeCount is" in violation.lines[0] for violation in violations)
    assert all(violation.lines[-1].startswith("after:  fail") for violation in violations)


@pytest.mark.slow
def test_a_tag_that_is_read_and_ids_that_are_compared_with_case_are_found() -> None:
    """Both are blamed on their own policy; the field that was changed is named."""
    _, violations = found(header_laws.INVARIANCE, policyeng.load_bundle(BROKEN / "insensitive"), 300)
    by_policy = {violation.policy: violation for violation in violations}

    assert set(by_policy) == {"BROKEN-INSENSITIVE-001", "BROKEN-INSENSITIVE-002"}
    assert ":/tags" in by_policy["BROKEN-INSENSITIVE-001"].lines[0]
    assert "letter case" in by_policy["BROKEN-INSENSITIVE-002"].message


@pytest.mark.slow
def test_a_parameter_that_is_stricter_the_other_way_round_is_found(tmp_path: Path) -> None:
    """A header that calls a higher limit stricter is wrong, since a higher limit takes denials away."""
    most = "{type: integer, minimum: 0, default: 3, description: d}"
    more = f"parameters: {{most: {most}}}\nmonotone_in: {{'parameter:most': %s}}"
    condition = "count(input.resource.tags) > input.parameters.most"

    outcomes = {}
    for way in ("lower", "higher"):
        text = rego("a", deny_when(condition), more=more % way)
        bundle = policyeng.load_bundle(write(tmp_path / way, {"area/a/a.rego": text}))
        grounds, violations = found(header_laws.MONOTONICITY, bundle, 120)
        outcomes[way] = {violation.policy for violation in violations}
        assert count_tests(grounds)["monotone", "T-A-1", "parameter:most"] > 10

    assert outcomes == {"lower": set(), "higher": {"T-A-1"}}


@pytest.mark.parametrize(
    ("way", "value", "expected"),
    [
        ("lower", 3, {2, 1, 0, -1, -1_000_000}),
        ("higher", "3", {"4", "5", "6", "1000000"}),
        (("Enabled", "Disabled"), "ENABLED", {"Disabled", "DISABLED", "disabled"}),
        ((False, True), False, {True}),
        ((False, True), 0, set()),
        (("Enabled", "Disabled"), "Disabled", set()),
        ("lower", True, set()),
        ("lower", "soon", set()),
        ("higher", "9999-12-31T23:59:59.999999+00:00", set()),
    ],
)
def test_stricter_values_lie_beyond_the_current_one(way: Way, value: Json, expected: set[object]) -> None:
    """Numbers also where they are written as text; of a list the later values; nothing is stricter than the last."""
    drawn = [one for seed in range(20) for one in list_stricter_values(seeded(seed), way, value, [])]

    assert {(type(one), one) for one in drawn} == {(type(one), one) for one in expected}


def test_a_later_moment_is_higher() -> None:
    """Moments are compared as such."""
    text = "2026-06-01T00:00:00Z"
    at = datetime.fromisoformat(text)

    assert all(datetime.fromisoformat(str(one)) > at for one in list_stricter_values(seeded(0), "higher", text, []))
    assert all(datetime.fromisoformat(str(one)) < at for one in list_stricter_values(seeded(0), "lower", text, []))


@pytest.mark.slow
def test_our_contracts_hold_and_every_law_is_tested() -> None:
    """On a few examples; `python -m tests.test_verify_contracts` tries thousands."""
    bundle = policyeng.load_bundle()
    for law in LAWS:
        grounds, violations = found(law, bundle, 25)

        assert violations == []
        assert law.name != "monotone" or sum(count > 0 for count in count_tests(grounds).values()) > 10


def test_many_of_our_policies_state_contracts() -> None:
    """Those that are about a threshold or a switch state which way is stricter."""
    headers = [policy.header for policy in policyeng.load_bundle().policies]

    assert sum(bool(header.monotone_in) for header in headers) >= 25


def contracts(bundle: Bundle) -> list[tuple[str, str, str]]:
    """Every contract of the headers of a bundle: law, policy and place."""
    headers = [policy.header for policy in bundle.policies]
    stricter = [("monotone", header.id, place) for header in headers for place in header.monotone_in]
    return [*stricter, *(("insensitive", header.id, place) for header in headers for place in header.insensitive_to)]


def print_lines(*lines: str) -> None:
    """Print lines, those after the first further in."""
    sys.stdout.write("\n    ".join(lines) + "\n")
    sys.stdout.flush()


def main(examples: int = 2000, seed: int = 7) -> int:
    """Try our contracts; print what breaks them, and how often each was tried."""
    grounds, broken = LawContext(policyeng.load_bundle()), Counter[tuple[str, str]]()
    for number, example in enumerate(islice(examples_of(grounds.bundle, seed), examples)):
        trial = Trial(grounds, example, chance=f"{seed}/{number}")
        for law in LAWS:
            if violation := law.violated(trial):
                broken[law.name, violation.policy] += 1
                if broken[law.name, violation.policy] < 3:
                    print_lines(
                        f"{law.name} {violation.policy}: {violation.message}", violation.resource, *violation.lines
                    )
    for contract in contracts(grounds.bundle):
        print_lines(f"{count_tests(grounds)[contract]:6} {' '.join(contract)}")
    print_lines(f"{count_tests(grounds)['insensitive', '', 'letter case']:6} letter case of ids, types and references")
    print_lines(f"{examples} examples, seed {seed}: {broken.total()} violations")
    return int(broken.total() > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
