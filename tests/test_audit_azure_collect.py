"""Collecting live Azure: what is read of a scope, and that it is evaluated as a snapshot from files is."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from policyeng.audit.collection.azure import CollectionScope, collect
from policyeng.audit.collection.azure.clouds import find_cloud
from policyeng.facts.coverage import FURTHER, LISTED
from policyeng.facts.ids import is_at_or_under
from policyeng.models import JsonObject
from tests.azure_fake import GROUP, ML, ROOT, SUBSCRIPTION, WORKSPACE, Azure, Response, error, served
from tests.command import Ran, policyeng
from tests.real_files import needed

SAMPLES = Path(__file__).parents[1] / "samples" / "workspaces"


def sample(name: str) -> JsonObject:
    """A snapshot of the samples."""
    document: JsonObject = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    return document


def run_collect(azure: Azure, *arguments: str, subscription: str = SUBSCRIPTION) -> Ran:
    """The result of the command on an Azure."""
    with served(azure) as environ, patch.dict(os.environ, environ):
        return policyeng("snapshot", "collect", "--subscription", subscription, *arguments)


def collected(azure: Azure, *arguments: str, subscription: str = SUBSCRIPTION) -> JsonObject:
    """The snapshot that the command makes of an Azure."""
    ran = run_collect(azure, *arguments, subscription=subscription)
    assert ran.returncode == 0, ran.stderr
    document: JsonObject = json.loads(ran.stdout)
    return document


def within(document: JsonObject, kind: str) -> list[str]:
    """The names of the resources of a type."""
    return [one["id"].rpartition("/")[2] for one in document["resources"] if one["type"].lower() == kind.lower()]


def lost(document: JsonObject) -> list[str]:
    """What could not be read, without what was not requested."""
    return [line for line in document.get("incomplete", []) if ", as asked: " not in line]


def is_requested(resource: JsonObject, resources: list[JsonObject]) -> bool:
    """Whether a resource has to do with Machine Learning: clusters and machines where something names them."""
    kind, named = (
        resource["type"].lower(),
        json.dumps(resources).lower().count(f'"resourceid": "{resource["id"].lower()}"'),
    )
    return kind != "microsoft.containerinstance/containergroups" and (
        named > 0 or kind not in ("microsoft.containerservice/managedclusters", "microsoft.compute/virtualmachines")
    )


@pytest.mark.parametrize("name", ["compliant.json", "training.json", "inference.json"])
def test_reads_every_resource_of_a_subscription(name: str) -> None:
    """Lists, the lists in them, and what is only named; in pages of three."""
    resources = [one for one in sample(name)["resources"] if is_requested(one, sample(name)["resources"])]
    document = collected(Azure(page=3).add(*resources), subscription=resources[0]["id"].split("/")[2])
    assert sorted(one["id"].lower() for one in document["resources"]) == sorted(one["id"].lower() for one in resources)
    assert lost(document) == []


def test_the_same_responses_give_the_same_document() -> None:
    """However many questions are under way; never more than were allowed."""
    azure = Azure(page=2).add(*sample("compliant.json")["resources"])
    azure.faults["*"] = lambda _query, _times: None
    documents = [collected(azure, "--concurrency", number) for number in ("1", "3")]
    for document in documents:
        document.pop("takenAt")
    assert documents[0] == documents[1]
    assert azure.most_under_way <= 3


def test_what_was_collected_is_evaluated_as_the_file_is(tmp_path: Path) -> None:
    """The findings on everything that has to do with Machine Learning are those on the sample."""
    document = sample("compliant.json")
    document["resources"] = [one for one in document["resources"] if is_requested(one, document["resources"])]
    document["covers"] = [f"{kind} at /" for kind in (*LISTED, *FURTHER)]
    mine = {key: document[key] for key in ("approvals", "workloads", "quotas", "principals")}
    found = []
    for shot in (document, collected(Azure().add(*document["resources"])) | mine):
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps(shot), encoding="utf-8")
        ran = policyeng("check", str(path), "--format", "json", "--as-of", "2026-06-01T00:00:00Z", "--no-exemptions")
        found.append([{**one, "location": None} for one in json.loads(ran.stdout)["findings"]])
    assert found[0] == found[1]
    assert len(found[0]) > 50


def test_recorded_bodies_of_the_service_are_taken() -> None:
    """Workspaces, computes, locks, endpoints and registries as Azure returned them, each at its id."""
    recorded = needed() / "arm_rest_live"
    bodies = [json.loads(path.read_bytes()) for path in sorted(recorded.rglob("GET_*.json"))]
    entries = [entry for body in bodies for entry in body.get("value", [body]) if "/providers/" in entry.get("id", "")]
    assert len(entries) >= 8
    for entry in entries:
        subscription = entry["id"].split("/")[2]
        parent = entry["id"].partition("/workspaces/")[0] + "/workspaces/" + entry["id"].split("/")[8]
        azure = Azure().add(entry)
        if entry["id"] != parent and "/registries/" not in entry["id"]:
            azure.add({"id": parent, "type": f"{ML}/workspaces", "location": "eastus", "properties": {}})
        document = collected(azure, subscription=subscription)
        if "/data/" not in entry["id"]:  # which no policy reads, and is not requested
            assert entry["id"] in [one["id"] for one in document["resources"]]
        assert "incomplete" not in document


def test_a_resource_group_and_a_workspace_narrow_it() -> None:
    """Only what lies in them, and what that names elsewhere."""
    azure = Azure()
    for group, name in (("rg-ml", "ws"), ("rg-ml", "ws2"), ("rg-b", "ws3")):
        place = f"{ROOT}/resourceGroups/{group}/providers"
        subnet = f"{ROOT}/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/v-{name}"
        compute = {"computeType": "AmlCompute", "properties": {"subnet": {"id": f"{subnet}/subnets/s"}}}
        azure.add(
            {"id": f"{place}/{ML}/workspaces/{name}", "location": "eastus", "properties": {}},
            {"id": f"{place}/{ML}/workspaces/{name}/computes/c-{name}", "properties": compute},
            {"id": subnet, "properties": {"subnets": []}},
            {"id": f"{place}/Microsoft.Network/privateEndpoints/pe-{name}", "properties": {}},
            {"id": f"{place}/Microsoft.Compute/virtualMachines/nobody-names-{name}", "properties": {}},
        )
    ours = (f"{ML}/workspaces", f"{ML}/workspaces/computes")
    kinds = (*ours, *(f"Microsoft.{one}" for one in ("Network/virtualNetworks", "Network/privateEndpoints")))
    options = ((), ("--resource-group", "rg-ml"), ("--resource-group", "rg-ml", "--workspace", "ws"))
    documents = [collected(azure, *arguments) for arguments in options]
    whole, grouped, alone = ([within(document, kind) for kind in kinds] for document in documents)
    assert [len(names) for names in whole] == [3, 3, 3, 3]
    assert grouped == [["ws", "ws2"], ["c-ws", "c-ws2"], ["v-ws", "v-ws2"], ["pe-ws", "pe-ws2"]]
    assert alone == [["ws"], ["c-ws"], ["v-ws"], []]
    assert not any("nobody-names" in one["id"] for document in documents for one in document["resources"])


def test_what_is_named_elsewhere_is_requested_once() -> None:
    """Attached clusters in another subscription, their networks in turn, and hubs with what lies in them.

    What is gone is left out; the budgets of the other subscription count for the hub.
    """
    elsewhere = f"/subscriptions/{'2' * 8}-2222-2222-2222-{'2' * 12}/resourceGroups/g/providers"
    network, cluster = (
        f"{elsewhere}/Microsoft.Network/virtualNetworks/v",
        f"{elsewhere}/Microsoft.ContainerService/managedClusters/k",
    )
    hub = f"{elsewhere}/{ML}/workspaces/hub"
    azure = Azure().add(
        {"id": WORKSPACE, "location": "eastus", "properties": {"hubResourceId": hub}},
        {"id": hub, "location": "eastus", "properties": {}},
        {"id": cluster, "properties": {"agentPoolProfiles": [{"vnetSubnetID": f"{network}/subnets/s"}]}},
        {"id": network, "properties": {}},
    )
    for name, target in (
        ("a", cluster),
        ("b", cluster.upper()),
        ("gone", f"{elsewhere}/Microsoft.Compute/virtualMachines/x"),
        ("odd", f"{elsewhere}/A.B/things/x"),
    ):
        azure.add(
            {
                "id": f"{WORKSPACE}/computes/{name}",
                "properties": {"computeType": "Kubernetes", "properties": {}, "resourceId": target},
            }
        )
    azure.faults[f"{elsewhere}/microsoft.compute".lower()] = lambda _query, _times: error(404, "ResourceNotFound")
    azure.add({"id": f"{hub}/computes/shared", "properties": {"computeType": "AmlCompute", "properties": {}}})
    budget = f"{elsewhere.partition('/resourceGroups')[0]}/providers/Microsoft.Consumption/budgets/b"
    azure.add({"id": budget, "properties": {}})
    document = collected(azure)
    assert {cluster, network, hub, f"{hub}/computes/shared", budget} <= {one["id"] for one in document["resources"]}
    assert lost(document) == [f"a.b/things at {elsewhere.lower()}/a.b/things/x: it is not known how to read this type"]
    assert azure.requests[cluster.lower()] == azure.requests[network.lower()] == 1


def test_advice_and_budgets_are_those_that_concern_what_was_read() -> None:
    """Azure lists the advice on a whole subscription; budgets are those of it and of the groups of workspaces."""
    other = f"{GROUP}/providers/Microsoft.Sql/servers/s"
    azure = Azure().add({"id": WORKSPACE, "location": "eastus", "properties": {}})
    for name, target in (("ours", WORKSPACE), ("theirs", other)):
        azure.add({"id": f"{target}/providers/Microsoft.Advisor/recommendations/{name}", "properties": {}})
    for name, scope in (("root", ROOT), ("group", GROUP), ("far", f"{ROOT}/resourceGroups/rg-far")):
        azure.add({"id": f"{scope}/providers/Microsoft.Consumption/budgets/{name}", "properties": {}})
    azure.lists["/providers/microsoft.capacity/reservations"] = [
        {
            "id": "/providers/microsoft.capacity/reservationOrders/o/reservations/r",
            "type": "Microsoft.Capacity/reservations",
        }
    ]
    document = collected(azure)
    assert within(document, "Microsoft.Advisor/recommendations") == ["ours"]
    assert within(document, "Microsoft.Consumption/budgets") == ["root", "group"]
    assert within(document, "microsoft.capacity/reservationOrders/reservations") == ["r"]


def test_progress_is_reported_to_the_end() -> None:
    """How many requests are done and known, and how many resources were read."""
    calls: list[tuple[int, int, int]] = []
    azure = Azure().add({"id": WORKSPACE, "location": "eastus", "properties": {}})
    with served(azure) as environ, patch.dict(os.environ, environ):
        cloud = find_cloud("AzureCloud", azure.address)
        collect(CollectionScope(SUBSCRIPTION, datetime.now(UTC)), cloud, progress=lambda *now: calls.append(now))
    assert calls[-1] == (calls[-1][1], calls[-1][1], 1)
    assert [done for done, known, _ in calls if done > known] == []
    assert len(calls) > 20


def test_jobs_are_bounded_by_age_and_by_number() -> None:
    """Young jobs are read and the old ones are named as not requested; too many are a part that is missing."""
    now = datetime.now(UTC)
    azure = Azure(page=2).add({"id": WORKSPACE, "location": "eastus", "properties": {}})
    for name, days in (("new", 1), ("young", 5), ("old", 40), ("older", 50), ("oldest", 60), ("ancient", 70)):
        created = {"createdAt": (now - timedelta(days=days)).isoformat()}
        azure.add({"id": f"{WORKSPACE}/jobs/{name}", "properties": {"jobType": "Command"}, "systemData": created})
    jobs = f"{ML}/workspaces/jobs"
    document = collected(azure)
    assert within(document, jobs) == ["new", "young"]
    assert [line.partition(" created")[0] for line in document["incomplete"]] == [
        f"{jobs} at {WORKSPACE}, as asked: those"
    ]
    assert azure.requests[f"{WORKSPACE}/jobs".lower()] == 2  # the third page is not requested
    assert within(collected(azure, "--jobs-since", "P55D"), jobs) == ["new", "old", "older", "young"]
    document = collected(azure, "--jobs-since", "P1Y", "--max-jobs", "3")
    assert within(document, jobs) == ["new", "old", "young"]
    assert document["incomplete"] == [f"{jobs} at {WORKSPACE}: there are more than the 3 that were read"]


def test_versions_are_bounded() -> None:
    """The newest of each; one line states it for all models of a workspace."""
    azure = Azure(page=10).add({"id": WORKSPACE, "location": "eastus", "properties": {}})
    for model in ("a", "b"):
        azure.add({"id": f"{WORKSPACE}/models/{model}", "properties": {}})
        azure.add(*({"id": f"{WORKSPACE}/models/{model}/versions/{number}", "properties": {}} for number in range(12)))
    document = collected(azure)
    assert len(within(document, f"{ML}/workspaces/models/versions")) == 20
    place = f"{ML}/workspaces/models/versions at {WORKSPACE.lower()}"
    assert document["incomplete"] == [f"{place}, as asked: only the newest 10 of each were read"]
    azure.deny("/versions")
    assert collected(azure)["incomplete"] == [f"{place}: not allowed (403 AuthorizationFailed)"]


def test_a_compute_that_its_list_shows_in_part_is_requested_alone() -> None:
    """The list leaves out the inner properties of AKS."""
    whole = {"id": f"{WORKSPACE}/computes/k", "properties": {"computeType": "AKS", "properties": {"agentCount": 3}}}
    azure = Azure().add({"id": WORKSPACE, "location": "eastus", "properties": {}}, whole)
    azure.lists[f"{WORKSPACE}/computes".lower()] = [{**whole, "properties": {"computeType": "AKS", "properties": None}}]
    [compute] = [one for one in collected(azure)["resources"] if one["id"] == whole["id"]]
    assert compute["properties"]["properties"] == {"agentCount": 3}


def test_quotas_come_from_machine_learning() -> None:
    """By family, region and scope; totals and what is not limited are none."""
    azure = Azure().add({"id": WORKSPACE, "location": "East US", "properties": {}})
    place = f"{ROOT}/providers/{ML}/locations/eastus/usages".lower()
    azure.lists[place] = [
        quota(ROOT, "vmFamily", "Standard NCSv3 Family Cluster Dedicated vCPUs", 100),
        quota(WORKSPACE, "workspaces", "Standard NCSv3 Family Cluster Dedicated vCPUs", 40),
        quota(ROOT, "lowPriorityCores", "Total Cluster LowPriority Regional vCPUs", 20),
        quota(ROOT, "dedicatedCores", "Total Cluster Dedicated Regional vCPUs", 500),
        quota(ROOT, "vmFamily", "Standard D Family Cluster Dedicated vCPUs", -1),
    ]
    stated = {"region": "eastus", "family": "Standard NCSv3 Family"}
    assert collected(azure)["quotas"] == [
        {"scope": ROOT, "region": "eastus", "family": "lowPriorityCores", "limitVCpus": 20},
        {"scope": ROOT, **stated, "limitVCpus": 100},
        {"scope": WORKSPACE, **stated, "limitVCpus": 40},
    ]
    narrow = collected(azure, "--resource-group", "rg-ml", "--workspace", "ws")
    assert narrow["quotas"] == [{"scope": WORKSPACE, **stated, "limitVCpus": 40}]


def quota(scope: str, kind: str, name: str, limit: int) -> JsonObject:
    """A usage as Machine Learning returns it."""
    kind = f"{ML}/{kind}/usages"
    return {"id": f"{scope}/usages/x", "type": kind, "limit": limit, "currentValue": 1, "name": {"value": name}}


def test_metrics_have_the_names_of_a_snapshot() -> None:
    """The percentile is that of the highest value of each hour; a day with no point begins nothing."""
    computes = [f"{WORKSPACE}/computes/cpu", f"{WORKSPACE}/computes/vm"]
    machine = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/m"
    azure = Azure().add(
        {"id": WORKSPACE, "location": "eastus", "properties": {}},
        {"id": computes[0], "name": "cpu", "properties": {"computeType": "AmlCompute", "properties": {}}},
        {
            "id": computes[1],
            "name": "vm",
            "properties": {"computeType": "VirtualMachine", "properties": {}, "resourceId": machine},
        },
        {"id": machine, "properties": {}},
    )
    points: list[JsonObject] = [{"timeStamp": "2026-01-01T00:00:00Z"}]
    points += [
        {"timeStamp": f"2026-01-02T{hour:02}:00:00Z", "average": 10.0, "minimum": 1.0, "maximum": hour + 1.0}
        for hour in range(20)
    ]
    split = [{"name": {"value": "computename"}, "value": "CPU"}]
    azure.metrics[WORKSPACE.lower()] = measured("CpuUtilizationPercentage", points, split)
    azure.metrics[machine.lower()] = measured("Available Memory Percentage", points, [])
    used, free = collected(azure)["metrics"]
    whole = {"name": "cpuUtilization", "unit": "percent", "average": 10.0, "p95": 19.0, "minimum": 1.0, "maximum": 20.0}
    assert used == {**used, **whole, "resourceId": computes[0], "from": "2026-01-02T00:00:00Z"}
    rest = {"name": "memoryUtilization", "average": 90.0, "p95": 99.0, "minimum": 80.0, "maximum": 99.0}
    assert free == {**free, **rest, "resourceId": computes[1]}


def measured(name: str, points: list[JsonObject], split: list[JsonObject]) -> JsonObject:
    """The response of Azure Monitor for one metric."""
    return {"value": [{"name": {"value": name}, "timeseries": [{"metadatavalues": split, "data": points}]}]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no subscription is given; add `--subscription ID`"),
        (("--subscription", "mine"), "`mine` is no id of a subscription"),
        (("--subscription", SUBSCRIPTION, "--workspace", "ws"), "the workspace `ws` lacks its resource group"),
        (("--subscription", SUBSCRIPTION, "--resource-group", "a/b"), "`a/b` is no name of a resource group"),
        (("--subscription", SUBSCRIPTION, "--cloud", "AzureGlobal"), "there is no cloud `AzureGlobal`; did you mean"),
        (("--subscription", SUBSCRIPTION, "--endpoint", "http://arm.example"), "`http` is for this machine alone"),
        (
            ("--subscription", SUBSCRIPTION, "--endpoint", "https://u:p@arm.example"),
            "is no address of a resource manager",
        ),
        (("--subscription", SUBSCRIPTION, "--jobs-since", "a month"), "`a month` is not a duration for --jobs-since"),
        (
            ("--subscription", SUBSCRIPTION, "--output", "/nowhere/s.json"),
            "cannot write the snapshot: no such directory",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_any_request(arguments: tuple[str, ...], message: str) -> None:
    """Exit 3, with the remedy."""
    ran = policyeng("snapshot", "collect", *arguments)
    assert ran.returncode == 3
    assert message in ran.stderr


@pytest.mark.parametrize(
    ("name", "host", "authority"),
    [
        ("azurecloud", "management.azure.com", "login.microsoftonline.com"),
        ("AzureUSGovernment", "management.usgovcloudapi.net", "login.microsoftonline.us"),
        ("AzureChinaCloud", "management.chinacloudapi.cn", "login.chinacloudapi.cn"),
    ],
)
def test_each_cloud_has_its_own_hosts(name: str, host: str, authority: str) -> None:
    """Tokens of one are never sent to another."""
    cloud = find_cloud(name)
    assert (cloud.endpoint, cloud.authority, cloud.audience) == (
        f"https://{host}",
        authority,
        f"https://{host}/.default",
    )
    own = find_cloud(name, "https://arm.stack.example:444/")
    assert (own.endpoint, own.audience) == ("https://arm.stack.example:444", "https://arm.stack.example:444/.default")


def test_without_the_libraries_it_names_what_to_install() -> None:
    """They are an extra."""
    with patch("policyeng.audit.collection.azure.find_spec", return_value=None):
        ran = policyeng("snapshot", "collect", "--subscription", SUBSCRIPTION)
    assert (ran.returncode, "install `policyeng[azure]`" in ran.stderr) == (3, True)


def test_it_writes_a_file_and_can_be_quiet(tmp_path: Path) -> None:
    """What is in the file is what would be printed."""
    azure = Azure().add({"id": WORKSPACE, "location": "eastus", "properties": {}}).deny(f"{WORKSPACE}/jobs")
    ran = run_collect(azure, "--output", str(tmp_path / "s.json"), "--quiet")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    document = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert (document["scope"], within(document, f"{ML}/workspaces")) == (ROOT, ["ws"])


def test_every_option_is_on_the_page() -> None:
    """An option that the page does not know is not documented."""
    page = (SAMPLES.parents[1] / "docs" / "collecting.md").read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", policyeng("snapshot", "collect", "--help").stdout)) - {"--help"}
    assert len(options) >= 11
    assert [option for option in sorted(options) if f"`{option}`" not in page] == []


#: The workspace of the baselines.
COMPLIANT = f"{WORKSPACE}-ml"


def baselines() -> list[JsonObject]:
    """The resources of the compliant estate that concern Machine Learning."""
    paths = sorted((SAMPLES.parent / "baselines").glob("*.json"))
    resources: list[JsonObject] = [json.loads(path.read_bytes()) for path in paths]
    return [one for one in resources if is_requested(one, resources)]


#: The version of the API in requests for each further type.
VERSIONS = {
    "microsoft.authorization/locks": "2020-05-01",
    "microsoft.authorization/policyassignments": "2023-04-01",
    "microsoft.authorization/policyexemptions": "2022-07-01-preview",
    "microsoft.authorization/roleassignmentscheduleinstances": "2020-10-01",
    "microsoft.cognitiveservices/accounts": "2024-10-01",
    "microsoft.cognitiveservices/accounts/deployments": "2024-10-01",
    "microsoft.cognitiveservices/accounts/raipolicies": "2024-10-01",
    "microsoft.containerregistry/registries": "2023-07-01",
    "microsoft.insights/autoscalesettings": "2022-10-01",
    "microsoft.insights/components": "2020-02-02",
    "microsoft.insights/diagnosticsettings": "2021-05-01-preview",
    "microsoft.insights/metricalerts": "2018-03-01",
    "microsoft.keyvault/vaults": "2023-07-01",
    "microsoft.machinelearningservices/workspaces/components/versions": "2025-07-01-preview",
    "microsoft.machinelearningservices/workspaces/data": "2025-07-01-preview",
    "microsoft.machinelearningservices/workspaces/privateendpointconnections": "2025-07-01-preview",
    "microsoft.machinelearningservices/workspaces/serverlessendpoints": "2025-07-01-preview",
    "microsoft.network/privateendpoints/privatednszonegroups": "2024-05-01",
    "microsoft.security/pricings": "2024-01-01",
    "microsoft.storage/storageaccounts": "2023-05-01",
}


@pytest.mark.parametrize("arguments", [(), ("--resource-group", "rg-ml", "--workspace", "ws-ml")])
def test_what_surrounds_a_workspace_is_read(arguments: tuple[str, ...]) -> None:
    """Settings, locks, alerts, plans, policy, the services that it names; each with the version of its API."""
    versions: dict[str, set[str]] = {}
    azure, resources = Azure(), baselines()
    azure.add(*resources)
    connection = f"{COMPLIANT}/privateEndpointConnections/pe-ws"
    azure.add({"id": connection, "type": f"{ML}/workspaces/privateEndpointConnections", "properties": {}})
    real = azure.respond

    def respond(path: str, query: dict[str, str]) -> Response:
        parts = path.lower().rpartition("/providers/")[2].split("/")
        versions.setdefault("/".join((parts[0], *parts[1::2])), set()).add(query.get("api-version", ""))
        return real(path, query)

    with patch.object(azure, "respond", respond):
        document = collected(azure, *arguments)
    read = {one["id"].lower() for one in document["resources"]}
    expected = [
        one
        for one in resources
        if one["type"].lower() in VERSIONS and (not arguments or f"/{ML}/registries/" not in one["id"])
    ]
    assert len(expected) > 20
    assert {one["id"].lower() for one in expected} - read == set()
    assert connection.lower() in read
    assert lost(document) == []
    assert {kind: versions.get(kind) for kind in VERSIONS} == {kind: {version} for kind, version in VERSIONS.items()}


@pytest.mark.parametrize(
    ("kind", "denied", "scope", "elsewhere"),
    [
        ("Microsoft.Insights/metricAlerts", f"{ROOT}/providers/Microsoft.Insights/metricAlerts", ROOT, ROOT),
        ("Microsoft.Security/pricings", f"{ROOT}/providers/Microsoft.Security/pricings", ROOT, ROOT),
        ("Microsoft.Authorization/locks", f"{ROOT}/providers/Microsoft.Authorization/locks", ROOT, ROOT),
        (
            "Microsoft.Authorization/policyExemptions",
            f"{ROOT}/providers/Microsoft.Authorization/policyExemptions",
            ROOT,
            ROOT,
        ),
        (
            "Microsoft.Insights/diagnosticSettings",
            f"{COMPLIANT}/onlineEndpoints/endpoint/providers/Microsoft.Insights/diagnosticSettings",
            f"{COMPLIANT}/onlineEndpoints/endpoint",
            COMPLIANT,
        ),
        (f"{ML}/workspaces/data", f"{COMPLIANT}/data", COMPLIANT, COMPLIANT),
        (
            "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
            f"{GROUP}/providers/Microsoft.Network/privateEndpoints/pe-ws/privateDnsZoneGroups",
            f"{GROUP}/providers/Microsoft.Network/privateEndpoints/pe-ws",
            ROOT,
        ),
    ],
)
def test_further_lists_are_covered_unless_they_are_refused(kind: str, denied: str, scope: str, elsewhere: str) -> None:
    """A refusal is a line of `incomplete`, and the list is then not covered there."""
    whole, partly = (collected(azure) for azure in (Azure().add(*baselines()), Azure().add(*baselines()).deny(denied)))
    covered = [
        entry.partition(" at ")[2] for entry in whole["covers"] if entry.lower().startswith(f"{kind} at ".lower())
    ]
    left = [entry.partition(" at ")[2] for entry in partly["covers"] if entry.lower().startswith(f"{kind} at ".lower())]

    assert any(is_at_or_under(scope, one) for one in covered)
    assert not any(is_at_or_under(scope, one) or one == elsewhere for one in left)
    assert lost(whole) == []
    assert [line.lower() for line in lost(partly)] == [
        f"{kind} at {scope}: not allowed (403 authorizationfailed)".lower()
    ]


def test_an_initiative_that_is_assigned_is_read() -> None:
    """A single definition is not: its id is all that policies look at."""
    initiative = f"{ROOT}/providers/Microsoft.Authorization/policySetDefinitions/ours"
    definition = f"{ROOT}/providers/Microsoft.Authorization/policyDefinitions/one"
    azure = Azure().add(
        {"id": WORKSPACE, "location": "eastus", "properties": {}},
        {"id": initiative, "properties": {"policyDefinitions": []}},
        {"id": definition, "properties": {}},
        *(
            {
                "id": f"{GROUP}/providers/Microsoft.Authorization/policyAssignments/{name}",
                "properties": {"policyDefinitionId": target},
            }
            for name, target in (("a", initiative), ("b", definition))
        ),
    )
    document = collected(azure)

    assert within(document, "Microsoft.Authorization/policySetDefinitions") == ["ours"]
    assert within(document, "Microsoft.Authorization/policyDefinitions") == []
    assert lost(document) == []
