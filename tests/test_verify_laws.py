"""The laws themselves: how they are named, and that each finds the policy that breaks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import UsageError
from policyeng.verify.laws import LAWS, laws_named
from policyeng.verify.runner import run

ROOT = Path(__file__).resolve().parents[1]
BROKEN = ROOT / "tests" / "broken"
#: The laws that have a broken policy in this module; the others have theirs next to their own tests.
MINE = ("repeatable", "order", "total", "both-sides")


def test_laws_have_numbers_in_order_and_names_once() -> None:
    """Numbers and names are what people call them by; the numbers that are missing were laws of the engine."""
    assert [law.number for law in LAWS] == [1, 2, 3, 4, 8, 9, 10, 11, 14, 15]
    assert len({law.name for law in LAWS}) == len(LAWS)


def test_laws_are_chosen_by_number_or_name_and_stay_in_order() -> None:
    """In any letter case; without a name all of them."""
    assert [law.name for law in laws_named(["total", "1", "Order"])] == ["repeatable", "order", "total"]
    assert laws_named([]) == LAWS


def test_an_unknown_law_is_refused_with_the_nearest() -> None:
    """A misspelt law must not widen or narrow a run without a word."""
    with pytest.raises(UsageError, match="no law is called `totals`; did you mean `total`"):
        laws_named(["order", "totals"])


def test_the_page_lists_every_law_as_it_is() -> None:
    """docs/laws.md has number, name, sentence and reference of each, in the same words."""
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| (.*) \| (.*) \|$", (ROOT / "docs/laws.md").read_text(), re.MULTILINE)

    assert rows == [(str(law.number), law.name, law.sentence, law.reference) for law in LAWS]


@pytest.mark.parametrize("name", MINE)
def test_a_law_finds_the_policy_that_breaks_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within some hundred examples, by id; the other laws of this module hold.

    Not those that state breaks too.
    """
    monkeypatch.setattr("policyeng.verify.runner._MOST_TRIALS", 10)  # how small it becomes is tested elsewhere
    bundle = load_bundle(BROKEN / name)
    (policy,) = bundle.policies
    laws = laws_named([name] if name == "repeatable" else MINE)

    done = run(bundle, laws, examples=40, seed=7)

    assert {(found.law.name, found.violation.policy) for found in done.found} == {(name, policy.id)}
    assert done.tally.broken == {}
    assert done.exit_code == 1
