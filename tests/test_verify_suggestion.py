"""Suggestions: the smallest edit that fixes a finding, verified by all policies, and never one that hides it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate, load_snapshot
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import baselines_of, estate, read_cases
from policyeng.models import JsonObject, Outcome, Snapshot
from policyeng.verify.json_patch import apply_edits
from policyeng.verify.remediation import Suggester, Suggestion
from tests.bundles import rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
BUNDLE = load_bundle()
DENY = 'deny contains {{"msg": "{msg}", "path": "{path}", "actual": null, "expected": {expected}}} if {{ {condition} }}'


def deny(path: str, expected: str, condition: str, msg: str = "m") -> str:
    """A rule that denies a place."""
    return DENY.format(msg=msg, path=path, expected=expected, condition=condition)


def found(bundle: Bundle, given: Snapshot, policy: str) -> Suggestion:
    """The suggestion for the first failure of a policy."""
    evaluation = evaluate(bundle, given, as_of=AS_OF)
    finding = next(one for one in evaluation.findings if one.policy == policy and one.outcome is Outcome.FAIL)
    suggestion = Suggester(bundle, given, AS_OF).suggestion(finding)
    assert suggestion is not None
    return suggestion


def steps(suggestion: Suggestion) -> list[tuple[str, str, object]]:
    """The operations of a suggestion."""
    return [(step["op"], step["path"], step.get("value")) for edit in suggestion.edits for step in edit.patch]


@pytest.mark.parametrize(
    ("rule", "inspects", "resource", "wanted"),
    [
        (deny("/properties/x", '"On"', 'input.resource.properties.x != "On"'), "/properties/x", {"x": "Off"}, "On"),
        (deny("/properties/x", '["On"]', 'input.resource.properties.x != "On"'), "/properties", {"x": "Off"}, "On"),
        (deny("/properties/x", '"some"', "input.resource.properties.x"), "/properties/x", {"x": True}, False),
        (deny("/properties/x", '{"at most": 3}', "input.resource.properties.x > 3"), "/properties/x", {"x": 9}, 3),
        (deny("/properties/x", '"below"', "input.resource.properties.x >= 3"), "/properties/x", {"x": 9}, 2),
        (
            deny("/properties/x", '"Green, or Blue"', 'not input.resource.properties.x in {"green", "Blue"}'),
            "/properties/x",
            {"x": "Red"},
            "Blue",
        ),
    ],
)
def test_values_come_from_the_policy(
    tmp_path: Path, rule: str, inspects: str, resource: JsonObject, wanted: object
) -> None:
    """The expected one, one of a list, the other boolean, a threshold or its neighbour, a known word of a sentence."""
    more = f"inspects: [{inspects}]\nwhen_absent: pass"
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rule, more=more)}))

    suggestion = found(bundle, snapshot(workspace(**resource)), "T-A-1")

    assert [(path, value) for _, path, value in steps(suggestion)] == [("/properties/x", wanted)]
    assert suggestion.clears == (("T-A-1", str(workspace()["id"])),)


def test_several_denials_are_fixed_together(tmp_path: Path) -> None:
    """By one edit for each."""
    rules = [deny(f"/properties/{name}", "1", f"input.resource.properties.{name} != 1", msg=name) for name in "xyz"]
    more = "inspects: [/properties]\nwhen_absent: pass"
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", "\n".join(rules), more=more)}))

    suggestion = found(bundle, snapshot(workspace(x=0, y=0, z=0)), "T-A-1")

    assert {path for _, path, _ in steps(suggestion)} == {"/properties/x", "/properties/y", "/properties/z"}


def test_an_edit_that_breaks_another_policy_is_no_suggestion(tmp_path: Path) -> None:
    """The reason names the policy."""
    more = "inspects: [/properties/x]\nwhen_absent: pass"
    one = rego("a", deny("/properties/x", "1", "not input.resource.properties.x == 1"), more=more)
    other = rego("b", deny("/properties/x", "0", "input.resource.properties.x != 0"), more=more, identity="T-B-1")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": one, "area/b/b.rego": other}))

    suggestion = found(bundle, snapshot(workspace(x=0)), "T-A-1")

    assert suggestion.edits == ()
    assert "T-B-1" in suggestion.reason


@pytest.mark.parametrize("place", ["/tags/data-classification", "/properties/hbiWorkspace", "/kind", "/id"])
def test_nothing_that_decides_what_applies_is_changed(tmp_path: Path, place: str) -> None:
    """Declaring regulated work unregulated would clear every finding about it."""
    rule = deny(place, '"internal"', 'object.get(input.resource, ["tags", "data-classification"], "") == "regulated"')
    bundle = load_bundle(
        write(tmp_path, {"area/a/a.rego": rego("a", rule, more=f"inspects: [{place}, /tags]\nwhen_absent: pass")})
    )
    tagged = workspace(hbiWorkspace=True) | {"tags": {"data-classification": "regulated"}, "kind": "Default"}

    suggestion = found(bundle, snapshot(tagged), "T-A-1")

    assert suggestion.edits == ()
    assert suggestion.reason


def test_people_and_things_that_are_not_there_are_not_invented(tmp_path: Path) -> None:
    """No owner is made up, and no subnet is named that the snapshot has not."""
    rules = deny("/tags/owner", '"a@b.example"', "not input.resource.tags.owner")
    rules += "\n" + deny("/properties/subnet", '"/subscriptions/s/x/subnets/y"', "not input.resource.properties.subnet")
    rules += "\n" + deny("/properties/networkId", '"the id of a network"', "not input.resource.properties.networkId")
    more = "inspects: [/tags/owner, /properties/subnet, /properties/networkId]\nwhen_absent: pass"
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rules, more=more)}))

    assert found(bundle, snapshot(workspace()), "T-A-1").edits == ()


@pytest.mark.parametrize("place", ["/tags/owner", "/properties/subnet", "/properties/networkId"])
def test_no_single_one_of_them_is_invented(tmp_path: Path, place: str) -> None:
    """Each on its own: a word of the expected value is not an id."""
    name = place.rpartition("/")[2]
    holder = place.split("/")[1]
    rule = deny(place, '"the id of a network"', f"not input.resource.{holder}.{name}")
    more = f"inspects: [{place}]\nwhen_absent: pass"
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rule + '\nword := "id"', more=more)}))

    assert found(bundle, snapshot(workspace()), "T-A-1").edits == ()


def of_case(policy: str, name: str) -> Snapshot:
    """The estate of a fail case of a built-in policy."""
    found_policy = next(one for one in BUNDLE.policies if one.id == policy)
    file = read_cases(found_policy)
    assert file is not None
    return estate(baselines_of(BUNDLE), file.filled(file.fail[name]), name)


@pytest.mark.slow
def test_suggestions_for_a_sample_are_verified_and_done_twice_do_nothing_more(root: Path) -> None:
    """Each suggestion for a regulated workspace clears its failure, and breaks nothing."""
    given = load_snapshot(root / "samples" / "workspaces" / "regulated.json")
    before = evaluate(BUNDLE, given, as_of=AS_OF)
    failing = {(one.policy, one.resource) for one in before.findings if one.outcome is Outcome.FAIL}
    suggester = Suggester(BUNDLE, given, AS_OF)
    suggestions = [one for finding in before.findings if (one := suggester.suggestion(finding))]

    assert len(suggestions) == len(failing)
    assert sum(bool(one.edits) for one in suggestions) >= 8
    for suggestion in (one for one in suggestions if one.edits):
        after = apply_edits(given, suggestion.edits)
        assert after is not None
        left = evaluate(BUNDLE, after, as_of=AS_OF)
        still = {(one.policy, one.resource) for one in left.findings if one.outcome is Outcome.FAIL}
        assert still == failing - set(suggestion.clears)
        again = apply_edits(after, suggestion.edits)
        assert again is None or again.resources == after.resources
    retired = next(one for one in suggestions if one.finding.policy == "AML-ISO-103")
    assert steps(retired)[-1][2] == "Standard_NC96ads_A100_v4"  # isolated, and of the series that the vendor recommends


def of_size(policy: str, size: str, *others: str, regulated: bool = False) -> Suggestion:
    """Return the suggestion for a cluster of a size, in a workspace with clusters of other sizes."""
    clusters = [
        {
            "id": f"{workspace()['id']}/computes/c{number}",
            "type": "Microsoft.MachineLearningServices/workspaces/computes",
            "properties": {"computeType": "AmlCompute", "properties": {"vmSize": name}},
        }
        for number, name in enumerate((size, *others))
    ]
    bundle = BUNDLE.only(one for one in BUNDLE.policies if one.id == policy)
    return found(bundle, snapshot(workspace(hbiWorkspace=regulated), *clusters), policy)


@pytest.mark.parametrize(
    ("policy", "size", "others", "wanted"),
    [
        ("AML-ISO-101", "STANDARD_NC24ads_A100_v4", (), "Standard_NC96ads_A100_v4"),
        ("AML-ISO-101", "Standard_D32s_v3", (), "Standard_F72s_v2"),
        ("AML-SKU-102", "Standard_D4s_v6", (), "Standard_D4s_v5"),
        ("AML-SKU-102", "Standard_B4ms", (), "Standard_DS3_v2"),
        ("AML-SKU-102", "Standard_B4ms", ("Standard_D4ds_v5",), "Standard_D4ds_v5"),
    ],
)
def test_a_size_is_replaced_by_one_like_it(policy: str, size: str, others: tuple[str, ...], wanted: str) -> None:
    """Of the same series first, then one that the snapshot has, then one that the policy names."""
    suggestion = of_size(policy, size, *others, regulated=policy == "AML-ISO-101")

    assert [value for op, _, value in steps(suggestion) if op != "test"] == [wanted]


@pytest.mark.parametrize(
    ("policy", "size", "others", "reason"),
    [
        # Isolated sizes are far larger, or have another accelerator.
        ("AML-ISO-101", "Standard_D4s_v3", (), "no size like Standard_D4s_v3 (offered, the same kind of accelerator"),
        ("AML-ISO-101", "Standard_NC4as_T4_v3", (), "no size like Standard_NC4as_T4_v3"),
        ("AML-ISO-101", "Standard_NC6s_v3", (), "Standard_NC6s_v3 retired on 2025-09-30; move to a size of the series"),
        ("AML-SKU-101", "Standard_NC6s_v3", ("Standard_NC6_Promo",), "Standard_NC6s_v3 retired on 2025-09-30; move to"),
        ("AML-SKU-101", "Standard_NC24ads_A100_v4", ("Standard_NC6_Promo",), "no size like Standard_NC24ads_A100_v4"),
        ("AML-SKU-102", "Standard_NG32adms_V620_v1", ("Standard_NC24ads_A100_v4",), "no size like Standard_NG32adms"),
        # 72 times the cores.
        ("AML-SKU-102", "Standard_B1s", ("Standard_F72s_v2",), "no size like Standard_B1s"),
    ],
)
def test_no_other_hardware_is_proposed(policy: str, size: str, others: tuple[str, ...], reason: str) -> None:
    """No retired size, no other kind of accelerator, none that is many times as large; the reason has what to do."""
    suggestion = of_size(policy, size, *others, regulated=policy == "AML-ISO-101")

    assert suggestion.edits == ()
    assert suggestion.reason.startswith(reason)


def test_an_approver_is_no_edit() -> None:
    """An approval by the person who requested it."""
    suggestion = found(BUNDLE, of_case("AML-RBAC-104", next(iter(_fail_cases("AML-RBAC-104")))), "AML-RBAC-104")

    assert suggestion.edits == ()
    assert "decision of people" in suggestion.reason


def _fail_cases(policy: str) -> list[str]:
    file = read_cases(next(one for one in BUNDLE.policies if one.id == policy))
    assert file is not None
    return list(file.fail)


def test_passing_and_exempt_findings_have_no_suggestion(tmp_path: Path) -> None:
    """There is nothing to fix."""
    rule = deny("/properties/x", "1", "input.resource.properties.x != 1")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rule)}))
    given = snapshot(workspace(x=1))
    [finding] = evaluate(bundle, given, as_of=AS_OF).findings

    assert Suggester(bundle, given, AS_OF).suggestion(finding) is None


def test_an_entry_of_a_list_is_set_and_none_is_put_before_it(tmp_path: Path) -> None:
    """RFC 6902's `add` to a list makes room, so another entry would be next to the denied one."""
    rule = deny("/properties/x/0", '"On"', 'input.resource.properties.x[0] != "On"')
    more = "inspects: [/properties/x]\nwhen_absent: pass"
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rule, more=more)}))
    given = snapshot(workspace(x=["Off", "Other"]))

    suggestion = found(bundle, given, "T-A-1")

    after = apply_edits(given, suggestion.edits)
    assert after is not None
    assert after.resources[0]["properties"] == {"x": ["On", "Other"]}
