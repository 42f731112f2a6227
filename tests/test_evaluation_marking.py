"""What is not known of a snapshot: findings are unknown where a policy meets it, and nowhere else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.engines import OpaOptions
from policyeng.evaluation.pointers import overlap, values_at
from policyeng.evaluation.unknown_markers import LazyObject, OpenObject
from policyeng.models import Carried, Evaluation, Finding, JsonObject, Snapshot
from policyeng.rego import Undecided
from policyeng.rego.markers import Cause, MarkedList, MarkedObject, deep_causes, show
from policyeng.sources import read_inputs
from tests.bundles import deny_when, rego, write

GROUP = "/subscriptions/s/resourceGroups/g"
TYPE = "Microsoft.MachineLearningServices/workspaces"
WORKSPACE = f"{GROUP}/providers/{TYPE}/w"
OTHER = f"{GROUP}/providers/A.B/things/one"
DEFECTS = Path(__file__).parents[2] / "shared" / "defects"
PYTHON = """
from policyeng import Denial, policy

@policy(id="T-P-1", title="t", severity="low", judges=["{type}"], source="s"{more})
def judge(given):
    things = given.snapshot.by_type.get("a.b/things", ())
    {body}
"""

#: A body of a policy over the evaluated resource and things around it, in Rego and in Python; the markers; the outcome.
MEETINGS: dict[str, tuple[str, str, dict[str, dict[str, str]], str]] = {
    "the field itself": (
        "input.resource.properties.bad",
        "yield from [Denial(msg='m')] if given.resource['properties'].get('bad') else []",
        {WORKSPACE: {"/properties/bad": "?"}},
        "unknown",
    ),
    "all above the field": (
        "input.resource.properties.bad",
        "yield from [Denial(msg='m')] if given.resource['properties'].get('bad') else []",
        {WORKSPACE: {"/properties": "?"}},
        "unknown",
    ),
    "a part of the field": (
        "input.resource.properties.bad == {}",
        "yield from [Denial(msg='m')] if given.resource['properties'].get('bad') == {} else []",
        {WORKSPACE: {"/properties/bad/deeper": "?"}},
        "unknown",
    ),
    "an item of a list": (
        "3 in input.resource.properties.list",
        "yield from [Denial(msg='m')] if 3 in given.resource['properties']['list'] else []",
        {WORKSPACE: {"/properties/list/0": "?"}},
        "unknown",
    ),
    "another item decides": (
        "2 in input.resource.properties.list",
        "yield from [Denial(msg='m')] if 2 in given.resource['properties']['list'] else []",
        {WORKSPACE: {"/properties/list/0": "?"}},
        "fail",
    ),
    "another field": (
        "input.resource.properties.bad",
        "yield from [Denial(msg='m')] if given.resource['properties'].get('bad') else []",
        {WORKSPACE: {"/properties/badly": "?", "/tags": "?"}},
        "pass",
    ),
    "a field of another resource": (
        'input.snapshot.by_type["a.b/things"][_].properties.x == 2',
        "yield from [Denial(msg='m') for one in things if one['properties']['x'] == 2]",
        {OTHER: {"/properties/x": "?"}},
        "unknown",
    ),
    "another field of another resource": (
        'input.snapshot.by_type["a.b/things"][_].properties.x == 2',
        "yield from [Denial(msg='m') for one in things if one['properties']['x'] == 2]",
        {OTHER: {"/properties/y": "?"}},
        "pass",
    ),
    "a definite denial as well": (
        'input.resource.properties.list[_] == 2; input.snapshot.by_type["a.b/things"]',
        "yield Denial(msg='m')\n    [one['properties']['y'] == 2 for one in things]",
        {OTHER: {"/properties/y": "?"}},
        "fail",
    ),
}


def home(identity: str = WORKSPACE, **properties: object) -> JsonObject:
    """The evaluated workspace."""
    return {"id": identity, "type": TYPE, "properties": {"list": [1, 2], **properties}}


def thing(identity: str = OTHER, **properties: object) -> JsonObject:
    """A resource next to it."""
    return {"id": identity, "type": "A.B/things", "properties": {"x": 1, **properties}}


def evaluated(bundle: Bundle, *resources: JsonObject, lost: dict[str, dict[str, str]], **more: object) -> Evaluation:
    """The evaluation of resources of which some parts are lost."""
    given = {"resources": resources, "unreadable": {key.lower(): reason for key, reason in lost.items()}, **more}
    return evaluate(bundle, Snapshot.model_validate(given), as_of=DEFAULT_AS_OF)


def found(bundle: Bundle, *resources: JsonObject, lost: dict[str, dict[str, str]], **more: object) -> Finding:
    """The only finding of the first resource."""
    findings = evaluated(bundle, *resources, lost=lost, **more).findings
    [finding] = [one for one in findings if one.resource == resources[0]["id"]]
    return finding


@pytest.mark.parametrize("name", MEETINGS)
@pytest.mark.parametrize("language", ["rego", "python"])
def test_what_is_met_decides(tmp_path: Path, name: str, language: str) -> None:
    """In both languages alike; a denial that is certain counts whatever else is not known."""
    condition, body, lost, outcome = MEETINGS[name]
    files = {
        "rego": {"area/a/a.rego": rego("a", deny_when(condition))},
        "python": {"area/a/a.py": PYTHON.format(type=TYPE, body=body, more="")},
    }
    finding = found(load_bundle(write(tmp_path, files[language])), home(), thing(), lost=lost)
    assert finding.outcome == outcome
    if outcome == "unknown":
        [unknown] = finding.unknowns
        [(identity, pointers)] = lost.items()
        [(pointer, reason)] = pointers.items()
        place = pointer if identity == WORKSPACE else f"{identity}:{pointer}"
        assert (unknown.path, unknown.msg) == (place, reason)


@pytest.mark.parametrize("language", ["rego", "python"])
def test_what_does_not_apply_for_certain_has_no_finding(tmp_path: Path, language: str) -> None:
    """And where it is not known whether a policy applies, a denial is none."""
    python = PYTHON.format(
        type=TYPE,
        body="yield Denial(msg='m')",
        more=", applies=lambda given: given.resource['properties']['list'][0] == 1",
    )
    text = rego("a", deny_when("true") + "applies if input.resource.properties.list[0] == 1\n")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text} if language == "rego" else {"area/a/a.py": python}))
    elsewhere = {WORKSPACE: {"/properties/list/1": "?"}}
    assert found(bundle, home(), lost=elsewhere).outcome == "fail"
    assert evaluated(bundle, home(list=[2, 2]), lost=elsewhere).findings == ()
    assert found(bundle, home(), lost={WORKSPACE: {"/properties/list/0": "?"}}).outcome == "unknown"


@pytest.mark.parametrize("language", ["rego", "python"])
def test_what_a_denial_only_shows_need_not_be_known(tmp_path: Path, language: str) -> None:
    """It is written as unknown."""
    shown = 'deny contains {"msg": "m", "actual": object.get(input.resource, ["properties", "x"], null)}'
    body = "yield Denial(msg='m', actual={'list': given.resource['properties']['list']})"
    files = {
        "rego": {"area/a/a.rego": rego("a", shown)},
        "python": {"area/a/a.py": PYTHON.format(type=TYPE, body=body, more="")},
    }
    lost = {"rego": "/properties/x", "python": "/properties/list/0"}[language]
    finding = found(load_bundle(write(tmp_path, files[language])), home(), lost={WORKSPACE: {lost: "?"}})
    place = {"unknown": f"{WORKSPACE}:{lost}"}
    [denial] = finding.denials
    assert (finding.outcome, denial.actual) == ("fail", place if language == "rego" else {"list": [place, 2]})


@pytest.mark.parametrize(
    "body", ["re.match('a', x)", "''.join([x])", "float(x)", "json.dumps(x)", "sum([x])", "x is True or x == 1"]
)
def test_operations_that_refuse_a_marker_meet_it(tmp_path: Path, body: str) -> None:
    """Functions in C raise errors of their own."""
    text = PYTHON.format(
        type=TYPE,
        more="",
        body="import json, re\n    x = dict.get(given.resource['properties'], 'x')\n"
        f"    yield from [Denial(msg='m')] if {body} else []",
    )
    bundle = load_bundle(write(tmp_path, {"area/a/a.py": text}))
    assert found(bundle, home(), lost={WORKSPACE: {"/properties/x": "?"}}).outcome == "unknown"


def test_a_field_that_a_format_cannot_state_is_unknown(tmp_path: Path) -> None:
    """Where it can state a field, above that and below, what is not there is absent."""
    carried = Carried(pointers=("/properties/x", "/properties/deep/*/y"), reason="the format has no such field")
    outcomes = {
        "input.resource.properties.x": "pass",
        "input.resource.properties.x.deeper": "pass",
        "input.resource.properties.other": "unknown",
        "input.resource.properties.stated == 1": "fail",
        "input.resource.properties.deep[0].y": "pass",
        "input.resource.properties.deep[0].z": "unknown",
        "input.resource.tags.owner": "unknown",
    }
    one = home(stated=1, deep=[{}])
    for number, (condition, outcome) in enumerate(outcomes.items()):
        bundle = load_bundle(write(tmp_path / str(number), {"area/a/a.rego": rego("a", deny_when(condition))}))
        snapshot = Snapshot(resources=(one,), carried={WORKSPACE.lower(): carried})
        [finding] = evaluate(bundle, snapshot, as_of=DEFAULT_AS_OF).findings
        assert finding.outcome == outcome, condition
        assert all(unknown.msg == carried.reason for unknown in finding.unknowns)


def test_a_workspace_is_named_as_such(tmp_path: Path) -> None:
    """Its unknown fields have the prefix that policies use."""
    text = rego("a", deny_when("input.workspace.properties.x")).replace(TYPE, f"{TYPE}/computes")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    compute = {"id": f"{WORKSPACE}/computes/c", "type": f"{TYPE}/computes", "properties": {}}
    [unknown] = found(bundle, compute, home(), lost={WORKSPACE: {"/properties/x": "?"}}).unknowns
    assert (unknown.path, unknown.msg) == ("workspace:/properties/x", "?")


def test_a_finding_points_at_the_place_in_another_resource(tmp_path: Path) -> None:
    """The file, line and column of the field that could not be read."""
    condition, _, lost, _ = MEETINGS["a field of another resource"]
    bundle = load_bundle(write(tmp_path / "p", {"area/a/a.rego": rego("a", deny_when(condition))}))
    text = json.dumps([home(), thing()], indent=1)
    (tmp_path / "estate.json").write_text(text, encoding="utf-8")
    snapshot = read_inputs([str(tmp_path / "estate.json")]).snapshot
    unread = snapshot.model_copy(update={"unreadable": {OTHER.lower(): lost[OTHER]}})
    (finding,) = evaluate(bundle, unread, as_of=DEFAULT_AS_OF).findings
    place = finding.location.fields[f"{OTHER}:/properties/x"]
    assert text.splitlines()[place.line - 1].strip() == '"x": 1'


def test_an_index_made_of_a_field_that_is_not_known_is_open(tmp_path: Path) -> None:
    """A compute that may be in any cluster may be in this one."""
    cluster = {"id": f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/k", "properties": {}}
    cluster["type"] = "Microsoft.ContainerService/managedClusters"
    compute = {"id": f"{WORKSPACE}/computes/c", "type": f"{TYPE}/computes", "properties": {"resourceId": None}}
    text = rego("a", deny_when("count(input.snapshot.by_host[lower(input.resource.id)]) > 0"))
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text.replace(TYPE, str(cluster["type"]))}))
    assert found(bundle, cluster, compute, lost={}).outcome == "pass"
    assert found(bundle, cluster, compute, lost={str(compute["id"]): {"/properties/x": "?"}}).outcome == "pass"
    lost = {str(compute["id"]): {"/properties/resourceId": "?"}}
    assert found(bundle, cluster, compute, lost=lost).outcome == "unknown"


def test_a_thousand_lost_fields_are_not_all_listed(tmp_path: Path) -> None:
    """A finding stays readable, and names the same ones each time."""
    condition = MEETINGS["a field of another resource"][0]
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when(condition))}))
    things = [thing(f"{OTHER}{number}") for number in range(1000)]
    lost = {str(one["id"]): {"/properties/x": "?"} for one in things}
    unknowns = found(bundle, home(), *things, lost=lost).unknowns
    assert 0 < len(unknowns) < 10
    assert unknowns == found(bundle, home(), *reversed(things), lost=lost).unknowns


def test_opa_gives_what_the_embedded_engine_gives(tmp_path: Path, opa: Path) -> None:
    """It evaluates the pairs that meet nothing unknown, and show nothing unknown."""
    rule = 'deny contains {"msg": "m", "actual": input.resource.properties} if input.resource.properties.bad\n'
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", rule)}))
    resources = (home(), home(f"{WORKSPACE}2", bad=True, other=1), home(f"{WORKSPACE}3"))
    unread = {WORKSPACE.lower(): {"/properties/bad": "?"}, f"{WORKSPACE}2".lower(): {"/properties/other": "?"}}
    given = Snapshot(resources=resources, unreadable=unread)
    here = evaluate(bundle, given, as_of=DEFAULT_AS_OF)
    there = evaluate(bundle, given, as_of=DEFAULT_AS_OF, engine="opa", opa=OpaOptions(binary=opa))
    assert [one.outcome for one in here.findings] == ["unknown", "fail", "pass"]
    assert here.findings == there.findings


# The defects that real files and an attack showed.


def outcomes(path: str, *more: str, bundle: Bundle) -> dict[tuple[str, str], str]:
    """By policy and the last part of the id, what is found in files of the reproductions."""
    read = read_inputs([DEFECTS / one for one in (path, *more)])
    findings = evaluate(bundle, read.snapshot, as_of=DEFAULT_AS_OF).findings
    return {(one.policy, one.resource.rpartition("/")[2]): str(one.outcome) for one in findings}


@pytest.mark.skipif(not DEFECTS.is_dir(), reason="the reproductions are not next to the checkout")
def test_an_unrelated_cluster_hides_no_failure(bundle: Bundle) -> None:
    """A subnet of somebody else's cluster that a template computes is no reason not to decide."""
    regulated, closed, free = (
        outcomes(f"real/d02/{name}.json", bundle=bundle)
        for name in ("ws-regulated-open", "ws-regulated-closed", "ws-not-regulated")
    )
    assert (regulated["AML-NET-105", "ws"], closed["AML-NET-105", "ws"]) == ("fail", "pass")
    assert ("AML-NET-105", "ws") not in free
    own, tags = (
        outcomes(f"real/d03/{name}.json", bundle=bundle) for name in ("own-field-unresolved", "tags-one-unresolved")
    )
    assert own["AML-NET-105", "ws"] == "fail"
    assert tags["AML-COST-101", "ws"] == "fail"


@pytest.mark.skipif(not DEFECTS.is_dir(), reason="the reproductions are not next to the checkout")
def test_what_a_response_cannot_state_is_not_absent(tmp_path: Path, bundle: Bundle) -> None:
    """A workspace states no budgets or computes, a job no computes, a compute no machines; with them it is decided."""
    expected = {
        "workspace.json": ("AML-COST-103", "ws"),
        "workspace-hbi.json": ("AML-NET-105", "ws"),
        "jobs.json": ("AML-TRN-109", "j"),
        "computes.json": ("AML-OPS-103", "vm"),
        "azml-hbi.json": ("AML-NET-105", "ws"),
        "graph-hbi.json": ("AML-NET-105", "ws"),
    }
    assert {name: outcomes(f"real/d04/{name}", bundle=bundle)[key] for name, key in expected.items()} == dict.fromkeys(
        expected, "unknown"
    )
    assert outcomes("real/d04/workspace.json", bundle=bundle)["AML-SKU-105", "ws"] == "unknown"
    whole = {"snapshotVersion": 1, "resources": []}
    path = tmp_path / "whole.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    for name, key in expected.items():
        assert outcomes(f"real/d04/{name}", str(path), bundle=bundle)[key] == "fail", name


def test_keys_of_pointers_overlap_without_case_and_with_stars() -> None:
    """Azure has no case in the names of tags."""
    assert overlap("/tags/Owner", "/tags/owner")
    assert overlap("/tags", "/tags/owner/name")
    assert overlap("/properties/*/x", "/properties/0")
    assert not overlap("/tags/owner", "/tags/own")
    assert list(values_at({"a": [{"x": 1}, {"x": 2}, 3], "*": 4}, "/a/*/x")) == [1, 2]
    assert list(values_at({"*": 4, "b": 5}, "/*")) == [4]


def lacks(kind: str) -> tuple[Cause, ...]:
    """Report the list of one type as not read."""
    return ((f"{GROUP}:", "not read"),) if kind == "jobs" else ()


def read_collection(collection: MarkedObject) -> list[object]:
    """What each way of reading shows of a collection, or raises."""
    results: list[object] = []
    for read in (
        lambda: {key: list(collection[key]) for key in ("locks",)},
        lambda: collection["jobs"][0],
        lambda: collection.get("jobs"),
        lambda: collection["others"],
        lambda: "others" in collection,
        lambda: dict(take_known(collection.items())),
        lambda: dict(take_known(collection.each())),
        lambda: collection.bounds(),
        lambda: deep_causes(collection),
        lambda: dict(copy.deepcopy(collection).stored()),
    ):
        try:
            results.append(show(read()))
        except Undecided as error:
            results.append(error.causes)
        except KeyError:
            results.append(KeyError)
    return results


def take_known(entries: Iterator[tuple[object, object]]) -> Iterator[tuple[object, object]]:
    """Yield entries until something is undecided."""
    with suppress(Undecided):
        yield from entries


def test_a_lazily_marked_object_reads_as_one_marked_at_once() -> None:
    """In whatever order its values are read."""
    lists = {"jobs": ["a", "b"], "locks": ["c"]}

    def mark_list(kind: str, members: list[str]) -> object:
        return MarkedList(members, lacks(kind)) if lacks(kind) else members

    for first in ((), ("jobs",), ("locks", "jobs"), ("others",)):
        lazy = LazyObject(lists, lacks("jobs"), lacks, mark_list)
        eager = OpenObject({kind: mark_list(kind, members) for kind, members in lists.items()}, lacks("jobs"), lacks)
        for key in first:
            with suppress(Undecided, KeyError):
                _ = lazy[key]
        assert read_collection(lazy) == read_collection(eager)


def test_lists_of_scopes_get_markers_only_where_a_policy_reads_them(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy of one group reads the lists of its groups, not those of the others."""
    marked: list[str] = []
    mark_value = LazyObject._mark

    def count_marked(lazy: LazyObject, key: str) -> None:
        marked.append(key)
        mark_value(lazy, key)

    monkeypatch.setattr(LazyObject, "_mark", count_marked)
    resources = [
        {"id": f"{GROUP}{number}/providers/{TYPE}/w", "type": TYPE, "name": "w", "properties": {}}
        for number in range(50)
    ]
    counts = []
    for several in (resources[:5], resources):
        marked.clear()
        snapshot = Snapshot(resources=tuple(several), covers=(f"{TYPE} at /",))
        evaluate(
            bundle.only([policy for policy in bundle.policies if policy.id == "AML-LOG-001"]),
            snapshot,
            as_of=DEFAULT_AS_OF,
        )
        counts.append(len(marked))
    assert 0 < counts[0] <= counts[1] <= 10 * counts[0]
