"""Every case of every policy has the same outcome in each format: it is written in each and read back.

The suite takes some of them; `python -m tests.test_formats_agree` takes all, and `... FORMAT` those of a format.
"""

from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime
from functools import cache

import pytest

from policyeng.bundle import load_bundle
from policyeng.sources import FORMATS
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.generators.examples import Example
from policyeng.verify.laws.law import LawContext, Trial, format_finding
from tests.laws.formats import compared
from tests.writers import WRITERS

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
GROUNDS = LawContext(load_bundle())
#: How many decided findings the estates of the suite must bring at least.
FLOORS = {
    "arm-template": 2500,
    "azure-cli": 1500,
    "az-output": 750,
    "terraform": 2500,
    "kubernetes": 1200,
    "resource-graph": 600,
}
#: The step between cases that are evaluated in a run of the suite.
STEP = 60


@cache
def trials() -> list[tuple[str, Trial]]:
    """Every case, with its policy and number."""
    return [
        (f"{policy} {number}", Trial(GROUNDS, Example(document, {}, AS_OF)))
        for policy, cases in sorted(EstateGenerator(GROUNDS.bundle).cases.items())
        for number, (_, document) in enumerate(cases)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOORS)
def test_one_estate_has_the_same_findings_in_each_format(name: str) -> None:
    """What the format decides at all, it decides as ARM does, denial for denial."""
    total = 0
    for case, trial in trials()[::STEP]:
        outcome = compared(trial, name)
        assert list(outcome.different) == [], case
        total += outcome.decided

    assert total >= FLOORS[name]


def test_every_format_of_others_has_a_writer() -> None:
    """Those in ARM shape need none: the estates are written in it."""
    assert {*FORMATS} - {*WRITERS} == {"native", "workspace-config", "role-access", "arm-rest"}
    assert {*WRITERS} == {*FLOORS}


if __name__ == "__main__":
    for chosen in sys.argv[1:] or WRITERS:
        counts: Counter[str] = Counter()
        for case_, trial_ in trials():
            found = compared(trial_, chosen)
            counts.update(decided=found.decided, different=len(found.different), refused=int(bool(found.refused)))
            for arm, other in found.different:
                shown = arm or other
                text = f"{format_finding(arm)} | {format_finding(other)}"
                sys.stdout.write(f"{chosen}: {case_}: {shown and shown.policy} {shown and shown.resource}: {text}\n")
        sys.stdout.write(f"{chosen}: {dict(counts)}\n")
