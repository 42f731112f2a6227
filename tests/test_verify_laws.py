"""The laws themselves: how they are named, and that each finds the policy that breaks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import UsageError
from policyeng.models import Evaluation
from policyeng.report import FORMATS, PROSE
from policyeng.verify.laws import LAWS, laws_named
from policyeng.verify.laws.elsewhere import beside_its_copy
from policyeng.verify.laws.reports_read import READERS
from policyeng.verify.running.run import run
from tests.bundles import snapshot, workspace

ROOT = Path(__file__).resolve().parents[1]
BROKEN = ROOT / "tests" / "broken"
#: The laws that have a broken policy in this module; the others have theirs beside their own tests.
MINE = ("repeatable", "order", "total", "exemptions", "gate", "both-sides", "clock")


def test_laws_have_numbers_in_order_and_names_once() -> None:
    """Numbers and names are what people call them by."""
    assert [law.number for law in LAWS] == sorted({law.number for law in LAWS})
    assert len({law.name for law in LAWS}) == len(LAWS)


def test_laws_are_chosen_by_number_or_name_and_stay_in_order() -> None:
    """In any letter case; without a name all of them."""
    assert [law.name for law in laws_named(["gate", "1", "Order"])] == ["repeatable", "order", "gate"]
    assert laws_named([]) == LAWS


def test_an_unknown_law_is_refused_with_the_nearest() -> None:
    """A misspelt law must not widen or narrow a run without a word."""
    with pytest.raises(UsageError, match="no law is called `gates`; did you mean `gate`"):
        laws_named(["order", "gates"])


def test_the_page_lists_every_law_as_it_is() -> None:
    """docs/laws.md has number, name, sentence and reference of each, in the same words."""
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| (.*) \| (.*) \|$", (ROOT / "docs/laws.md").read_text(), re.MULTILINE)

    assert rows == [(str(law.number), law.name, law.sentence, law.reference) for law in LAWS]


def test_every_machine_report_has_a_reader() -> None:
    """A format that is added must be read back, too."""
    assert set(READERS) == set(FORMATS) - set(PROSE)


@pytest.mark.parametrize("name", MINE)
def test_a_law_finds_the_policy_that_breaks_it(name: str) -> None:
    """Within some hundred examples, by id; the other laws of this module hold.

    Not those that state breaks too, nor the gate where a policy looks through its callers: admission has others.
    """
    bundle = load_bundle(BROKEN / name)
    (policy,) = bundle.policies
    others = {"repeatable": MINE, "exemptions": ["gate"]}.get(name, ())
    laws = laws_named([law for law in MINE if law == name or law not in others])

    done = run(bundle, laws, examples=90 if name == "gate" else 40, seed=7)

    assert {(found.law.name, found.violation.policy) for found in done.found} == {(name, policy.id)}
    assert done.tally.broken == {}
    assert done.exit_code == 1


def test_an_evaluation_that_is_read_back_as_another_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy can cause that: what it gives is plain JSON before it is a finding."""
    written = Evaluation.model_dump_json
    monkeypatch.setattr(Evaluation, "model_dump_json", lambda *a, **b: written(*a, **b).replace('"fail"', '"pass"'))

    done = run(load_bundle(BROKEN / "total"), laws_named(["round-trips"]), examples=40, seed=7)

    assert {found.violation.message for found in done.found} == {
        "an evaluation is another one after it was written as JSON and read back"
    }


def test_an_estate_elsewhere_shares_nothing_with_the_first() -> None:
    """Every id of the copy is in another subscription; what has no subscription is not copied."""
    private = {"id": "nowhere", "type": "x", "properties": {}}
    approval = {"id": "A", "scope": "/subscriptions/s", "status": "granted"}
    twice = beside_its_copy(snapshot(workspace(link="/subscriptions/s/x"), private, approvals=[approval]))

    assert [resource["id"].split("/")[2:3] for resource in twice.resources] == [["s"], [], ["s-copy"]]
    assert twice.resources[2]["properties"]["link"] == "/subscriptions/s-copy/x"
    assert [(entry.id, entry.scope) for entry in twice.approvals] == [
        ("A", "/subscriptions/s"),
        ("A-copy", "/subscriptions/s-copy"),
    ]
