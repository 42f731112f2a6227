"""What a native snapshot without `covers` lists: the types that policies of ours look up, and no other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.admission import AdmissionOptions, decided_wholly
from policyeng.admission.changes import changes_of
from policyeng.admission.session import AdmissionSession
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import OpaOptions
from policyeng.models import Evaluation, Finding, JsonObject
from policyeng.sources import read_inputs
from tests.bundles import deny_when, rego, write
from tests.command import policyeng

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = "/subscriptions/11111111-1111-1111-1111-111111111111"
ML = "Microsoft.MachineLearningServices/workspaces"
HOME = f"{ROOT}/resourceGroups/g/providers/{ML}/w"
STORAGE = "Microsoft.Storage/storageAccounts"
FOLDED = STORAGE.lower()
ACCOUNT = f"{ROOT}/resourceGroups/g/providers/{STORAGE}/a"
OTHER = f"{ROOT}/resourceGroups/h/providers/{STORAGE}/b"

#: By name, what denies a workspace when the account that it names, or any, is not there: in Rego and in Python.
LOOKS = {
    "by type": (
        f'count(object.get(input.snapshot.by_type, "{FOLDED}", [])) == 0',
        f'not given.snapshot.by_type.get("{FOLDED}", ())',
    ),
    "by type, directly": (
        f'not input.snapshot.by_type["{FOLDED}"]',
        f'"{FOLDED}" not in given.snapshot.by_type',
    ),
    "by a text with a name in it": (
        f'not input.snapshot.by_id[lower(sprintf("{ROOT}/resourceGroups/g/providers/{STORAGE}/%s", ["a"]))]',
        f'("{ROOT}/resourceGroups/g/providers/{STORAGE}/%s" % "a").lower() not in given.snapshot.by_id',
    ),
    "by the id that a member has": (
        "not input.snapshot.by_id[lower(input.resource.properties.storageAccount)]",
        'given.resource["properties"]["storageAccount"].lower() not in given.snapshot.by_id',
    ),
    "by scope": (
        f'not input.snapshot.by_scope["{ROOT}"]["{FOLDED}"]',
        f'"{FOLDED}" not in given.snapshot.by_scope["{ROOT}"]',
    ),
    "by a loop": (
        f'count([1 | some one in input.snapshot.resources; lower(one.type) == "{FOLDED}"]) == 0',
        f'not [one for one in given.snapshot.resources if one["type"].lower() == "{FOLDED}"]',
    ),
    "by a namespace": (
        'count([1 | some kind, _ in input.snapshot.by_type; startswith(kind, "microsoft.storage/")]) == 0',
        'not any(kind.startswith("microsoft.storage/") for kind in given.snapshot.by_type)',
    ),
}
PYTHON = """\
from policyeng.bundle import policy
from policyeng.models import Denial


@policy(id="{identity}", title="t", severity="low", judges=[{judges!r}])
def judge(given):
    if {condition}:
        yield Denial(msg="m", path="/properties/x", actual=1, expected=2)
"""


def workspace(identity: str = HOME, **properties: object) -> JsonObject:
    """A workspace that names an account."""
    return {"id": identity, "type": ML, "location": "eastus", "properties": {"storageAccount": ACCOUNT, **properties}}


def account(identity: str = ACCOUNT) -> JsonObject:
    """A storage account."""
    return {"id": identity, "type": STORAGE, "location": "eastus", "properties": {}}


def native(*resources: JsonObject, **more: object) -> bytes:
    """A native snapshot."""
    return json.dumps({"snapshotVersion": 1, "resources": resources, **more}).encode()


def checked(bundle: Bundle, document: bytes, **how: object) -> Evaluation:
    """What is found in a native snapshot."""
    snapshot = read_inputs(["-"], stdin=document).snapshot
    return evaluate(bundle, snapshot, as_of=AS_OF, **how)  # type: ignore[arg-type]  # the arguments of `evaluate`


def looking(folder: Path, look: str, form: str) -> Bundle:
    """A policy of one form that looks for accounts."""
    in_rego, in_python = LOOKS[look]
    files = {
        "rego": {"a/a/a.rego": rego("a", deny_when(in_rego))},
        "python": {"a/a/a.py": PYTHON.format(identity="T-A-1", judges=ML, condition=in_python)},
    }
    return load_bundle(write(folder, files[form]))


def of_home(evaluation: Evaluation, policy: str = "T-A-1") -> Finding:
    """The finding on the workspace."""
    [finding] = [one for one in evaluation.findings if (one.resource, one.policy) == (HOME, policy)]
    return finding


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("form", ["rego", "python"])
def test_a_type_that_is_not_listed_may_be_there(tmp_path: Path, look: str, form: str) -> None:
    """It is unknown with the reason; one that is there decides, and so does what the snapshot states."""
    bundle = looking(tmp_path, look, form)
    finding = of_home(checked(bundle, native(workspace())))
    assert finding.outcome == "unknown"
    assert all(unknown.path.endswith(":") and unknown.path != ":" for unknown in finding.unknowns), finding.unknowns
    assert of_home(checked(bundle, native(workspace(), account()))).outcome == "pass"
    covers = [f"{kind} at /" for kind in (STORAGE, ML)]
    if look not in ("by a loop", "by a namespace"):  # these end in what may be there of other types
        assert of_home(checked(bundle, native(workspace(), covers=covers))).outcome == "fail"


@pytest.mark.parametrize("look", ["by a text with a name in it", "by the id that a member has"])
@pytest.mark.parametrize("form", ["rego", "python"])
def test_one_of_its_type_shows_that_the_list_was_read(tmp_path: Path, look: str, form: str) -> None:
    """In its subscription; one in another shows nothing."""
    bundle = looking(tmp_path, look, form)
    assert of_home(checked(bundle, native(workspace(), account(OTHER)))).outcome == "fail"
    elsewhere = account(OTHER.replace("1111", "2222"))
    assert of_home(checked(bundle, native(workspace(), elsewhere))).outcome == "unknown"


@pytest.mark.parametrize("look", LOOKS)
def test_opa_agrees(tmp_path: Path, opa: Path, look: str) -> None:
    """It is evaluated for what is decided."""
    bundle = looking(tmp_path, look, "rego")
    for resources in ((workspace(),), (workspace(), account()), (workspace(), account(OTHER))):
        document = native(*resources)
        embedded, other = (
            checked(bundle, document, engine=one, opa=OpaOptions(binary=opa)) for one in ("embedded", "opa")
        )
        assert embedded.findings == other.findings


def test_the_reason_names_the_type_and_the_place(tmp_path: Path) -> None:
    """With what to add."""
    finding = of_home(checked(looking(tmp_path, "by type", "rego"), native(workspace())))
    [unknown] = finding.unknowns
    assert unknown.path == f"{ROOT}:"
    assert unknown.msg.startswith("not all storage accounts were collected; add `az storage account list`")


def test_a_second_snapshot_can_state_that_there_is_none(tmp_path: Path) -> None:
    """The remedy that the reason names works: a second file with `covers`."""
    bundle = looking(tmp_path / "policies", "by type", "rego")
    whole, stated = tmp_path / "a.json", tmp_path / "b.json"
    whole.write_bytes(native(workspace()))
    stated.write_text(json.dumps({"snapshotVersion": 1, "covers": [f"{STORAGE} at {ROOT}"]}), encoding="utf-8")
    outcomes = [
        of_home(evaluate(bundle, read_inputs(paths).snapshot, as_of=AS_OF)).outcome.value
        for paths in ([whole], [whole, stated])
    ]
    assert outcomes == ["unknown", "fail"]


def test_another_policy_decides_as_it_does_alone(tmp_path: Path) -> None:
    """One that loops over all resources is not undecided because another policy looks for accounts."""
    counting = rego("b", deny_when("count(input.snapshot.resources) > 9"), identity="T-B-1")
    in_python = PYTHON.format(identity="T-C-1", judges=ML, condition="len(given.snapshot.resources) > 9")
    files = {"a/a/a.rego": rego("a", deny_when(LOOKS["by type"][0])), "a/b/b.rego": counting, "a/c/c.py": in_python}
    bundle = load_bundle(write(tmp_path, files))
    evaluation = checked(bundle, native(workspace()))
    outcomes = {one.policy: one.outcome.value for one in evaluation.findings}
    assert outcomes == {"T-A-1": "unknown", "T-B-1": "pass", "T-C-1": "pass"}


@pytest.mark.parametrize(
    "condition",
    [
        'input.resource.properties.action == "Microsoft.Storage/storageAccounts/write"',
        'input.resource.type == "Microsoft.MachineLearningServices/workspaces/computes"',
        'startswith(input.resource.type, "Microsoft.MachineLearningServices/")',
        'input.resource.properties.storageAccount == ""',
    ],
)
def test_what_is_no_look_up_costs_nothing(tmp_path: Path, condition: str) -> None:
    """Actions of roles, types that are listed, and members whose ids are not looked up."""
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": rego("a", deny_when(condition))}))
    assert bundle.queried_types == {}


def test_a_header_is_no_look_up(tmp_path: Path) -> None:
    """A policy in Python that evaluates accounts does not look for others."""
    text = PYTHON.format(identity="T-A-1", judges=STORAGE, condition='given.resource["kind"] == "x"')
    assert load_bundle(write(tmp_path, {"a/a/a.py": text})).queried_types == {}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("form", ["rego", "python"])
def test_a_change_is_decided_as_the_whole_is(tmp_path: Path, look: str, form: str) -> None:
    """A workspace or an account that comes; an account that a change adds shows nothing of others."""
    bundle = looking(tmp_path, look, form)
    snapshot = read_inputs(["-"], stdin=native(workspace())).snapshot
    far = HOME.replace("1111", "2222")
    basis, options = AdmissionSession(bundle, snapshot), AdmissionOptions(as_of=AS_OF)
    for change in (workspace(f"{HOME}2"), workspace(far), account(), account(OTHER)):
        wholly = decided_wholly(bundle, snapshot, changes_of(change), options)
        assert basis.decide(change, options) == wholly


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("form", ["rego", "python"])
def test_more_information_makes_no_finding_worse(tmp_path: Path, look: str, form: str) -> None:
    """A list that is covered decides what was unknown, and turns no pass into a failure."""
    bundle = looking(tmp_path, look, form)
    for resources in ((workspace(),), (workspace(), account()), (workspace(), account(OTHER))):
        kinds = (ML, STORAGE, f"{ML}/computes", "A.B/things")
        for number in range(len(kinds) + 1):
            before, after = (
                of_home(checked(bundle, native(*resources, covers=[f"{kind} at {ROOT}" for kind in covered]))).outcome
                for covered in (kinds[:number], kinds)
            )
            assert before in ("unknown", after)


def test_reports_show_the_scope(tmp_path: Path) -> None:
    """By its id; JSON has the path as a finding has it, and SARIF the scope as what the reason is about."""
    looking(tmp_path / "p", "by type", "rego")
    (tmp_path / "s.json").write_bytes(native(workspace()))
    arguments = ("check", str(tmp_path / "s.json"), "--policy", str(tmp_path / "p"), "--no-exemptions", "--format")
    shown = {name: policyeng(*arguments, name).stdout for name in ("text", "markdown", "html", "json", "sarif")}
    assert f"path      {ROOT}\n" in policyeng(*arguments, "text", "--verbose").stdout
    assert f"<code>{ROOT}</code>" in shown["markdown"]
    assert f'<code class="path">{ROOT}</code>' in shown["html"]
    [finding] = json.loads(shown["json"])["findings"]
    assert finding["unknowns"][0]["path"] == f"{ROOT}:"
    [notification] = json.loads(shown["sarif"])["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    [place] = notification["locations"][0]["logicalLocations"]
    assert place == {"name": ROOT, "fullyQualifiedName": ROOT, "kind": "resource"}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, "fail"),
        ({"covers": [f"{ML} at /"]}, "fail"),
        ({"incomplete": [f"{ML}/privateEndpointConnections at {HOME}: not permitted"]}, "unknown"),
    ],
)
def test_connections_are_in_their_workspace_too(tmp_path: Path, stated: dict[str, object], expected: str) -> None:
    """The list of private endpoint connections is not needed, but counts where it could not be read."""
    look = f'not input.snapshot.by_scope[lower(input.resource.id)]["{ML.lower()}/privateendpointconnections"]'
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": rego("a", deny_when(look))}))
    assert of_home(checked(bundle, native(workspace(), **stated))).outcome.value == expected
