"""The work in files of the Azure CLI as a whole: written estates, declared gaps, real files, places of findings."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from policyeng import evaluate, sources
from policyeng.bundle import Bundle
from policyeng.evaluation.pointers import has_value
from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_resource import stands_for_value
from policyeng.sources.azure_cli import KINDS, read
from policyeng.sources.parsed import Placed
from policyeng.testing.observed_reads import observe
from tests.azure_cli_work import WORKSPACE, around, kind_of
from tests.effort import effort
from tests.growth import assert_linear
from tests.writers import azure_cli_work
from tests.writers.azure_cli_work import seconds

ROOT = Path(__file__).resolve().parents[1]
_ML = "Microsoft.MachineLearningServices/workspaces/"
_COMPUTES = st.sampled_from([f"{WORKSPACE}/computes/{name}" for name in ("cpu", "gpu")])
_COUNTS = st.integers(0, 50)
_TAGS = st.dictionaries(st.sampled_from(["owner", "stage"]), st.sampled_from(["a", "prod"]))
_SPANS = st.sampled_from(["PT30S", "PT5M", "PT1H30M", "P1D"])
_ACCESS = st.sampled_from(["Enabled", "Disabled"])
_USER = f"{WORKSPACE.partition('/providers/')[0]}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
_IDENTITIES: st.SearchStrategy[JsonObject] = st.sampled_from(
    [
        {"type": "SystemAssigned"},
        {"type": "None"},
        {"type": "UserAssigned", "userAssignedIdentities": {_USER: {}}},
    ]
)


def _resource(
    below: str, properties: st.SearchStrategy[JsonObject], **rest: st.SearchStrategy[object]
) -> st.SearchStrategy[JsonObject]:
    kind = _ML + "/".join(below.split("/")[::2])
    fixed = {"id": st.just(f"{WORKSPACE}/{below}"), "name": st.just(below.rpartition("/")[2]), "type": st.just(kind)}
    return st.fixed_dictionaries({**fixed, "properties": properties, **rest})


def _some(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=fields)


_STEPS = st.dictionaries(
    st.sampled_from(["prep", "train"]),
    st.fixed_dictionaries(
        {"type": st.just("command"), "componentId": st.just(f"{WORKSPACE}/components/c/versions/1")},
        optional={"computeId": _COMPUTES, "resources": st.fixed_dictionaries({"instance_count": _COUNTS})},
    ),
    min_size=1,
)
ESTATE = st.one_of(
    _resource(
        "onlineEndpoints/e",
        st.builds(
            lambda mode, more: {"authMode": mode, **more},
            st.sampled_from(["Key", "AMLToken", "AADToken"]),
            _some(publicNetworkAccess=_ACCESS, compute=_COMPUTES),
        ),
        tags=_TAGS,
        identity=_IDENTITIES,
    ),
    _resource("batchEndpoints/e", st.just({"authMode": "AADToken"}), tags=_TAGS),
    _resource(
        "onlineEndpoints/e/deployments/d",
        st.builds(
            lambda kind, insights, more: {"endpointComputeType": kind, "appInsightsEnabled": insights, **more},
            st.sampled_from(["Managed", "Kubernetes"]),
            st.booleans(),
            _some(
                instanceType=st.sampled_from(["Standard_DS3_v2", "standard_nc6"]),
                egressPublicNetworkAccess=_ACCESS,
                model=st.just(f"{WORKSPACE}/models/m/versions/3"),
                requestSettings=st.fixed_dictionaries({"requestTimeout": _SPANS}),
                livenessProbe=st.fixed_dictionaries({"period": _SPANS, "failureThreshold": _COUNTS}),
            ),
        ),
        tags=_TAGS,
        sku=st.fixed_dictionaries({"capacity": _COUNTS}),
    ),
    _resource(
        "batchEndpoints/e/deployments/d",
        _some(
            compute=_COMPUTES,
            resources=st.fixed_dictionaries({"instanceCount": _COUNTS}),
            outputAction=st.sampled_from(["AppendRow", "SummaryOnly"]),
            retrySettings=st.fixed_dictionaries({"timeout": _SPANS}),
        ),
        tags=_TAGS,
    ),
    _resource(
        "jobs/j",
        st.one_of(
            st.builds(
                lambda more: {"jobType": "Command", "command": "x", **more},
                _some(computeId=_COMPUTES, tags=_TAGS, resources=st.fixed_dictionaries({"instanceCount": _COUNTS})),
            ),
            st.builds(
                lambda limits, more: {"jobType": "Sweep", "limits": limits, **more},
                st.fixed_dictionaries({"maxTotalTrials": _COUNTS, "timeout": _SPANS}),
                _some(
                    computeId=_COMPUTES,
                    earlyTermination=st.builds(
                        lambda kind, more: {"policyType": kind, **more},
                        st.sampled_from(["Bandit", "MedianStopping", "TruncationSelection"]),
                        _some(evaluationInterval=_COUNTS, delayEvaluation=_COUNTS, slackFactor=st.just(0.1)),
                    ),
                ),
            ),
            st.builds(
                lambda limits: {
                    "jobType": "AutoML",
                    "taskDetails": {"taskType": "Classification", "limitSettings": limits},
                },
                _some(maxTrials=_COUNTS, timeout=st.just("PT4H"), trialTimeout=st.just("PT20M")),
            ),
            st.builds(
                lambda steps, more: {"jobType": "Pipeline", "jobs": steps, **more},
                _STEPS,
                _some(settings=st.fixed_dictionaries({"default_compute": _COMPUTES})),
            ),
        ),
    ),
)


def _leaves(value: object, at: str = "") -> dict[str, object]:
    """Every plain value by its place, durations as seconds."""
    if isinstance(value, dict):
        return {place: leaf for key, inner in value.items() for place, leaf in _leaves(inner, f"{at}/{key}").items()}
    is_span = isinstance(value, str) and value.startswith("P") and any(sign.isdigit() for sign in value)
    return {at: seconds(str(value)) if is_span else value}


@settings(max_examples=effort(30, 150), deadline=None)
@drawn(ESTATE)
def test_written_files_are_read_back(resource: JsonObject) -> None:
    """Every field of an ARM resource that its file can have is read as it was, and none is unreadable."""
    [content] = azure_cli_work.write([resource]).values()
    document = yaml.safe_load(content)
    kind = kind_of(document)
    assert kind is not None
    [placed] = kind.bring(document, "", around())
    assert isinstance(placed, Placed)
    read = _leaves(placed.resource)
    assert {place: read.get(place) for place in _leaves(resource)} == _leaves(resource)
    assert all("provisioningState" in pointer for pointer in placed.unreadable)


def test_the_baselines_are_written_and_read() -> None:
    """One of each type: no field of the file is read as anything else."""
    written = 0
    for path in sorted((ROOT / "samples" / "baselines").glob("*.json")):
        resource = json.loads(path.read_text(encoding="utf-8"))
        for content in azure_cli_work.write([resource]).values():
            document = yaml.safe_load(content)
            kind = kind_of(document)
            assert kind is not None
            [placed] = kind.bring(document, "", around())
            assert isinstance(placed, Placed)
            there, read = _leaves(resource), _leaves(placed.resource)
            assert {place: value for place, value in read.items() if there.get(place, value) != value} == {}
            written += 1
    assert written == 8


#: By ARM type, what policies look at and such a file cannot state. Policies of several types look at fields of the
#: others: deployments have no `jobs`, and batch deployments no identity.
GAPS: dict[str, set[str]] = {
    "onlineEndpoints": set(),
    "batchEndpoints": {"/identity/type"},
    "onlineEndpoints/deployments": {"/properties/jobs", "/properties/modelSettings/modelId"},
    "batchEndpoints/deployments": {"/identity/type", "/properties/jobs", "/properties/modelSettings/modelId"},
    "jobs": {"/properties/componentId"},
    "schedules": set(),
}
_SAMPLES: dict[str, JsonObject] = {
    "onlineEndpoints": {"name": "e", "auth_mode": "key"},
    "batchEndpoints": {"name": "e", "auth_mode": "key", "defaults": {}},
    "onlineEndpoints/deployments": {"name": "d", "endpoint_name": "e", "instance_type": "x"},
    "batchEndpoints/deployments": {"name": "d", "endpoint_name": "e", "compute": "c"},
    "jobs": {"name": "j", "type": "command", "command": "x", "environment": "azureml:e:1"},
    "schedules": {"name": "s", "trigger": {"type": "cron"}, "create_job": "azureml:j"},
}


@pytest.mark.parametrize("below", GAPS)
def test_gaps_are_declared(below: str, bundle: Bundle) -> None:
    """A change of the tables or of what policies inspect shows here."""
    kind = kind_of(_SAMPLES[below])
    assert kind is not None
    placed = next(entry for entry in kind.bring(_SAMPLES[below], "", around()) if isinstance(entry, Placed))
    assert placed.carried is not None
    carried = [*placed.carried.pointers, "/id", "/type"]
    gaps = {
        pointer
        for policy in bundle.policies
        if any(lowered(target.type) == lowered(_ML + below) for target in policy.header.judges)
        for pointer in observe(bundle, policy).pointers
        if not pointer.startswith("workspace:")
        and not any(f"{pointer}/".startswith(f"{known}/") or f"{known}/".startswith(f"{pointer}/") for known in carried)
    }
    assert gaps | (placed.unreadable.keys() - {"/properties/provisioningState"}) == GAPS[below]


def test_a_finding_is_at_the_place_of_its_value(tmp_path: Path, bundle: Bundle) -> None:
    """Line and column of the step's compute in the file."""
    file = tmp_path / "job.yml"
    file.write_text(
        "type: pipeline\nname: p\njobs:\n  train:\n    command: x\n    compute: azureml:gone\n", encoding="utf-8"
    )
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"snapshotVersion": 1, "resources": []}), encoding="utf-8")
    read = sources.read_inputs([file, state], context=sources.normalize_context("", WORKSPACE, {}))
    evaluation = evaluate(bundle, read.snapshot, as_of=datetime(2026, 11, 1, tzinfo=UTC))
    [finding] = [each for each in evaluation.findings if each.policy == "AML-TRN-109"]
    place = finding.location.fields["/properties/jobs/train/computeId"]
    assert finding.outcome == "fail"
    assert (place.file, place.line, place.column) == (str(file), 6, 5)


def test_no_two_kinds_take_one_document() -> None:
    """Neither by schema nor by content."""
    schemas = Counter(schema for kind in KINDS for schema in kind.schemas)
    assert max(schemas.values()) == 1
    for sample in _SAMPLES.values():
        assert sum(kind.takes(sample) for kind in KINDS) == 1


@settings(max_examples=effort(60, 300), deadline=None)
@drawn(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "jobs",
                        "compute",
                        "component",
                        "trial",
                        "tags",
                        "resources",
                        "limits",
                        "settings",
                        "a",
                        "job",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    ),
    st.sampled_from([schema for kind in KINDS for schema in kind.schemas]),
    st.sampled_from(["create_job", "jobs", "trial", "identity", "trigger", "type", "name", "resources", "settings"]),
)
def test_nothing_raises(value: object, schema: str, key: str) -> None:
    """Any value anywhere in a document."""
    kind = next(kind for kind in KINDS if schema in kind.schemas)
    below = value if isinstance(value, dict) else {}
    for entry in kind.bring({**below, "$schema": schema, key: value}, "", around({"a": value})):
        assert isinstance(entry, Placed) == hasattr(entry, "resource")


#: Text that is a placeholder of a value, wherever a file of any kind has it.
STANDING = (
    "<x>",
    "${{ x }}",
    "$X",
    " $x ",
    "azureml:$X",
    "$(x)",
    "team-$(x)-1",
    "$(x)\n",
    "__X__",
    "__vm_size__",
    "azureml:__x__",
    "Standard___SIZE___v2",
    "ws__ENV__",
)


@pytest.mark.parametrize("text", STANDING)
@pytest.mark.parametrize(
    ("document", "key", "pointer"),
    [
        ({"name": "c", "type": "amlcompute"}, "size", "/properties/properties/vmSize"),
        ({"name": "w", "hbi_workspace": True}, "image_build_compute", "/properties/imageBuildCompute"),
        ({"name": "d", "endpoint_name": "e", "model": "azureml:m:1"}, "instance_type", "/properties/instanceType"),
        ({"name": "e", "auth_mode": "key"}, "public_network_access", "/properties/publicNetworkAccess"),
        ({"command": "x", "environment": "azureml:e:1", "code": "y"}, "compute", "/properties/computeId"),
        ({"trigger": {"type": "cron"}, "create_job": "azureml:j"}, "is_enabled", "/properties/isEnabled"),
    ],
)
def test_a_placeholder_is_no_value_in_any_kind(document: JsonObject, key: str, pointer: str, text: str) -> None:
    """A placeholder of one kind is not a value in another; tags and prose are not affected."""
    [placed] = read({**document, key: text, "tags": {"a": "b"}, "description": text}, around()).resources

    assert "placeholder" in placed.unreadable[pointer]
    assert not has_value(placed.resource, pointer)
    assert not [at for at in placed.unreadable if "tags" in at or "description" in at]
    assert placed.resource["properties"]["description"] == text


@pytest.mark.parametrize("text", STANDING)
@pytest.mark.parametrize("document", [{"name": "e", "auth_mode": "key"}, {"name": "c", "type": "amlcompute"}])
def test_a_placeholder_in_a_tag_leaves_the_others(document: JsonObject, text: str) -> None:
    """It is the one that is unreadable."""
    [placed] = read({**document, "tags": {"owner": text, "stage": "dev"}}, around()).resources

    assert "placeholder" in placed.unreadable["/tags/owner"]
    assert placed.resource["tags"] == {"stage": "dev"}


@pytest.mark.parametrize(
    "text", ["Standard_DS3_v2", "team__ml__prod", "a__b", "US$5", "a $b", "__", "____", "cost: 5$", "$", "x__1__2", ""]
)
def test_text_that_only_looks_so_is_a_value(text: str) -> None:
    """Names may have underscores and dollars."""
    assert not stands_for_value(text)


@pytest.mark.parametrize(
    ("begin", "again", "end"), [("_", "_", "a"), ("", "__a", ""), ("", "a__A", ""), ("", "$", ""), ("$", "a", "-")]
)
def test_long_text_is_read_in_linear_time(begin: str, again: str, end: str) -> None:
    """No token is so long that its end would be looked for again and again."""
    assert_linear(lambda size: stands_for_value(begin + again * size + end), 20_000)
