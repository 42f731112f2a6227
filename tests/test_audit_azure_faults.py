"""What Azure and the network do wrong while a snapshot is collected, and what the user sees of it."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from policyeng.audit.collection import azure as collection
from policyeng.audit.collection.azure.clouds import find_cloud
from policyeng.audit.collection.azure.snapshot_builder import Loss, SnapshotBuilder, Task, WorkerPool
from policyeng.models import JsonObject
from tests.azure_fake import GROUP, ML, ROOT, SUBSCRIPTION, TOKEN, WORKSPACE, Azure, Fault, Response, error, served
from tests.command import Ran, policyeng

TYPE = f"{ML}/workspaces"
COMPUTES = f"{WORKSPACE}/computes"
#: A kind of network that a list needs little patience with.
QUICK = ("--patience", "PT0.5S")


def estate() -> Azure:
    """A workspace with three clusters and a job, and a network."""
    azure = Azure(page=2).add({"id": WORKSPACE, "type": TYPE, "location": "eastus", "properties": {}})
    for name in ("a", "b", "c"):
        inner = {"vmSize": "Standard_DS3_v2", "scaleSettings": {"maxNodeCount": 2, "minNodeCount": 0}}
        azure.add(
            {
                "id": f"{COMPUTES}/{name}",
                "properties": {"computeType": "AmlCompute", "properties": inner},
                "location": "eastus",
            }
        )
    azure.add({"id": f"{WORKSPACE}/jobs/j", "properties": {"jobType": "Command"}})
    return azure.add({"id": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v", "properties": {}})


def run_collect(azure: Azure, *arguments: str) -> Ran:
    """The result of the command."""
    with served(azure) as environ, patch.dict(os.environ, environ):
        return policyeng("snapshot", "collect", "--subscription", SUBSCRIPTION, *QUICK, *arguments)


def missing(ran: Ran) -> list[str]:
    """What the snapshot states as missing, as in the message for the user."""
    assert ran.returncode == 0, ran.stderr
    lines: list[str] = json.loads(ran.stdout).get("incomplete", [])
    assert [line for line in ran.stderr.splitlines() if "incomplete" in line] == [
        f"policyeng: incomplete: {line}" for line in lines
    ]
    return lines


def names(ran: Ran) -> set[str]:
    """The names of the computes that were read."""
    return {one["id"].rpartition("/")[2] for one in json.loads(ran.stdout)["resources"] if "/computes/" in one["id"]}


def failing(times: int, response: Response) -> Fault:
    """A fault of so many responses, after which all is well."""
    return lambda _query, before: response if before < times else None


@pytest.mark.parametrize(
    "response",
    [
        error(429, "TooManyRequests", Retry_After="0.05"),
        error(503, "ServerBusy", Retry_After="0.05"),
        error(500, "InternalServerError"),
        Response(body=b'{"value": []}', cut=5),
        Response(slow=1.0),
    ],
    ids=["throttled", "busy", "failed", "cut", "slow"],
)
def test_what_passes_is_tried_again(response: Response) -> None:
    """The user sees nothing of it."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = failing(1, response)
    with patch("policyeng.audit.collection.azure.READ_TIMEOUT", 0.5):
        ran = run_collect(azure)
    assert (missing(ran), names(ran)) == ([], {"a", "b", "c"})


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (error(403, "AuthorizationFailed"), "not allowed (403 AuthorizationFailed)"),
        (
            error(429, "TooManyRequests", Retry_After="3600"),
            "throttled (429 TooManyRequests) for longer than the patience of 0.5 s",
        ),
        (
            error(429, "TooManyRequests", Retry_After="0.2"),
            "throttled (429 TooManyRequests) for longer than the patience of 0.5 s",
        ),
        (error(500, "InternalServerError"), "failed (500 InternalServerError)"),
        (error(400, "BadRequest"), "refused (400 BadRequest)"),
        (error(400, "NoRegisteredProviderFound"), "refused (400 NoRegisteredProviderFound)"),
        (Response(302, b"", {"Location": "https://elsewhere.example/"}), "refused (302)"),
        (Response(body=b'{"value": [], "nextLink": "https://a.b/", "valu'), "the answer is not a JSON object"),
        (Response(body=b'{"value": [], "value": [1]}'), "the answer is not a JSON object"),
        (Response(body={"values": []}), "the answer has no `value` that is a list"),
        (Response(body=b"[]"), "the answer is not a JSON object"),
        (Response(body=b'{"value": []}', cut=5), "the connection was cut, again and again"),
        (Response(body={"value": [{"name": "x"}]}), "an entry is left out: not a resource, because"),
    ],
)
def test_what_stays_wrong_is_reported_and_costs_only_itself(response: Response, reason: str) -> None:
    """One line, in a form that evaluation understands; everything else is there."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = lambda _query, _times: response
    ran = run_collect(azure)
    [line] = missing(ran)
    assert line.startswith(f"{TYPE}/computes at {WORKSPACE}: {reason}")
    assert {one["id"] for one in json.loads(ran.stdout)["resources"]} >= {WORKSPACE, f"{WORKSPACE}/jobs/j"}


#: What is 20 kB as it is sent, and 20 MB unpacked.
_PACKED = gzip.compress(b'{"value": ["' + b"a" * 20_000_000 + b'"]}')


@pytest.mark.attack
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(body=b'{"value": ["' + b"a" * 200_000 + b'"]}'), "the answer has more than 100,000 bytes"),
        (Response(body=_PACKED, headers={"Content-Encoding": "gzip"}), "the answer has more than 100,000 bytes"),
        (Response(body=b"[" * 1000, endless=True), "the answer has more than 100,000 bytes"),
        (Response(500, b"[" * 1000, endless=True), "the answer has more than 100,000 bytes"),
        (
            Response(body=gzip.compress(_PACKED), headers={"Content-Encoding": "gzip, gzip"}),
            "the answer is packed more than once",
        ),
    ],
    ids=["long", "packed", "endless", "endless error", "packed twice"],
)
def test_an_answer_of_any_size_costs_no_more_than_the_limit(response: Response, reason: str) -> None:
    """It is not read to its end, and costs only itself."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = lambda _query, _times: response
    with patch("policyeng.audit.collection.azure.MAX_BYTES", 100_000):
        ran = run_collect(azure)
    assert missing(ran) == [f"{TYPE}/computes at {WORKSPACE}: {reason}"]
    assert azure.requests[COMPUTES.lower()] == 1  # it is not asked for again
    assert f"{WORKSPACE}/jobs/j" in {one["id"] for one in json.loads(ran.stdout)["resources"]}


def collect_by_clock(azure: Azure, deadline: float) -> JsonObject:
    """Collect with a clock that goes on by a second with each request."""
    wanted = collection.CollectionScope(subscription=SUBSCRIPTION, taken_at=datetime(2026, 6, 1, tzinfo=UTC))
    with served(azure) as environ, patch.dict(os.environ, environ):
        cloud = find_cloud("AzureCloud", azure.address)
        clock = lambda: float(azure.requests.total())  # noqa: E731
        return collection.collect(wanted, cloud, patience=0.5, deadline=deadline, clock=clock)


def endless_pages(azure: Azure) -> Fault:
    """A list that always has one page more."""
    return lambda _query, times: Response(
        body={"value": [], "nextLink": f"{azure.address}{COMPUTES}?api-version=x&page={times}"}
    )


@pytest.mark.attack
def test_pages_without_end_are_read_until_the_deadline() -> None:
    """What was read until then is there, and everything that was not is stated."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = endless_pages(azure)
    document = collect_by_clock(azure, 300)
    reason = "the deadline of 300 s for the whole collection has passed"
    assert f"{TYPE}/computes at {WORKSPACE}: a further page: {reason}" in document["incomplete"]
    assert all(line.endswith(reason) for line in document["incomplete"])
    assert not any(line.startswith(f"{TYPE}/computes at") for line in document["covers"])
    assert {one["id"] for one in document["resources"]} >= {WORKSPACE, f"{WORKSPACE}/jobs/j"}
    assert 300 <= azure.requests.total() <= 300 + collection.CONCURRENCY


def test_pages_without_end_are_read_up_to_a_number_of_them() -> None:
    """Without a deadline, too."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = endless_pages(azure)
    with patch("policyeng.audit.collection.azure.client._MOST", 20):
        document = collect_by_clock(azure, float("inf"))
    [line] = document["incomplete"]
    assert line == f"{TYPE}/computes at {WORKSPACE}: there are more than 20 further pages"


@pytest.mark.attack
def test_all_answers_together_have_a_limit() -> None:
    """Many answers below the limit of one do not add up to more."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = endless_pages(azure)
    with patch("policyeng.audit.collection.azure.MAX_BYTES_IN_ALL", 50_000):
        document = collect_by_clock(azure, float("inf"))
    assert any("the answers together have more than 50,000 bytes" in line for line in document["incomplete"])
    assert azure.requests.total() < 1000


def test_a_request_without_an_answer_is_given_up_at_the_deadline() -> None:
    """The thread that waits for it holds nothing up, and adds nothing later."""
    answered = threading.Event()
    stopped = threading.Event()
    gathered = SnapshotBuilder()
    gathered.request(TYPE, ROOT)
    looks = iter(range(1000))

    def wait() -> list[Task]:
        answered.wait()
        gathered.lack(TYPE, ROOT, Loss("late"))
        return []

    with patch("policyeng.audit.collection.azure.snapshot_builder._LOOK", 0.001):
        assert WorkerPool(1, stopped, lambda: next(looks) >= 3).do([wait]) is False
    assert stopped.is_set()
    gathered.close("given up")
    answered.set()
    gathered.take({"id": WORKSPACE, "type": TYPE}, TYPE, ROOT)
    assert (gathered.missing, gathered.covers, gathered.resources) == (["given up"], [], {})


def test_slow_responses_are_given_up() -> None:
    """A response that does not come is a fault."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = lambda _query, _times: Response(slow=0.6)
    with patch("policyeng.audit.collection.azure.READ_TIMEOUT", 0.2):
        assert missing(run_collect(azure)) == [f"{TYPE}/computes at {WORKSPACE}: no answer within 0.2 s"]


def test_what_is_not_there_is_absent() -> None:
    """A type that Azure has no list of, at a place that is there, has nothing.

    An old type may be gone altogether, and a service may never have been used.
    """
    azure = estate()
    azure.faults[f"{WORKSPACE}/connections".lower()] = lambda _query, _times: error(404, "NotFound")
    azure.faults[f"{WORKSPACE}/services".lower()] = lambda _query, _times: error(400, "NoRegisteredProviderFound")
    unused = error(409, "MissingSubscriptionRegistration")
    azure.faults[f"{ROOT}/providers/microsoft.advisor".lower()] = lambda _query, _times: unused
    assert missing(run_collect(azure)) == []


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("https://evil.example/next", "the next page is on another host, `evil.example`, and was not asked for"),
        ("{address}{path}?page=1", "its pages never end: a `nextLink` leads back to a page before"),
        (7, "`nextLink` is no address"),
    ],
)
def test_pages_lead_nowhere_else(link: object, reason: str) -> None:
    """The token is for one host alone; what was on the first page stays."""
    azure = estate()
    first = azure.single[f"{COMPUTES}/a".lower()]

    def astray(_query: dict[str, str], _times: int) -> Response:
        there = link.format(address=azure.address, path=COMPUTES) if isinstance(link, str) else link
        return Response(body={"value": [first], "nextLink": there})

    azure.faults[COMPUTES.lower()] = astray
    ran = run_collect(azure)
    assert (missing(ran), names(ran)) == ([f"{TYPE}/computes at {WORKSPACE}: {reason}"], {"a"})


def test_a_further_page_that_is_lost_leaves_the_first_ones() -> None:
    """What could be read is evaluated, and that it is not all is known."""
    azure = estate()
    azure.faults[COMPUTES.lower()] = lambda query, _times: (
        error(403, "AuthorizationFailed") if "skip" in query else None
    )
    ran = run_collect(azure)
    [line] = missing(ran)
    assert line.endswith("computes at " + WORKSPACE + ": a further page: not allowed (403 AuthorizationFailed)")
    assert names(ran) == {"a", "b"}


def test_policies_that_need_what_is_denied_are_unknown() -> None:
    """From the refusal to the report: neither pass nor fail."""
    azure = estate().deny(COMPUTES)
    azure.add({"id": f"{WORKSPACE}/jobs/k", "properties": {"jobType": "Command", "computeId": f"{COMPUTES}/a"}})
    shot = run_collect(azure)
    ran = policyeng("check", "-", "--format", "json", "--as-of", "2026-06-01T00:00:00Z", stdin=shot.stdout)
    found = json.loads(ran.stdout)["findings"]
    on_computes = [one for one in found if one["resourceType"].endswith("/computes")]
    assert {one["outcome"] for one in on_computes} == {"unknown"}
    assert {one["resource"] for one in on_computes} == {WORKSPACE}
    assert {"AML-CMP-002", "AML-SKU-101"} <= {one["policy"] for one in on_computes}
    # One job names no compute, the other one that may be among those that were denied.
    assert [one["outcome"] for one in found if one["policy"] == "AML-TRN-109"] == ["pass", "unknown"]


def test_workspaces_that_are_denied_leave_nothing_in_them_known() -> None:
    """All that lies in them is unknown with them."""
    ran = run_collect(estate().deny(f"{ROOT}/providers/{TYPE}"))
    kinds = {line.partition(" at ")[0].removeprefix(TYPE) for line in missing(ran)}
    assert {"", "/computes", "/jobs", "/onlineEndpoints", "/onlineEndpoints/deployments", "/datastores"} <= kinds


@pytest.mark.parametrize("status", [400, 404])
def test_a_version_that_a_cloud_does_not_have_is_no_absence(status: int) -> None:
    """Of workspaces, jobs and what is named elsewhere; the network that could be read is no whole snapshot."""
    machine = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/m"
    azure = estate().add({"id": f"{COMPUTES}/m", "properties": {"properties": {}, "resourceId": machine}})
    code = {400: "NoRegisteredProviderFound", 404: "InvalidResourceType"}[status]
    for place in (f"{WORKSPACE}/jobs", machine):
        azure.faults[place.lower()] = lambda _query, _times: error(status, code)
    assert missing(run_collect(azure)) == [
        f"{TYPE}/jobs at {WORKSPACE}: refused ({status} {code})",
        f"microsoft.compute/virtualmachines at {machine.lower()}: refused ({status} {code})",
    ]
    azure.faults[f"{ROOT}/providers/{TYPE}".lower()] = lambda _query, _times: error(status, code)
    assert f"{TYPE}/computes at {ROOT}: refused ({status} {code})" in missing(run_collect(azure))


@pytest.mark.parametrize(("status", "code"), [(401, "InvalidAuthenticationToken"), (403, "AuthorizationFailed")])
def test_a_subscription_that_is_wholly_denied_is_no_snapshot(tmp_path: Path, status: int, code: str) -> None:
    """An empty one would look as if all were well."""
    azure, output = estate(), tmp_path / "snapshot.json"
    azure.faults["*"] = lambda _query, _times: error(status, code)
    ran = run_collect(azure, "--output", str(output))
    assert (ran.returncode, output.exists()) == (2, False)
    assert f"{ROOT}: nothing of it can be read: not allowed ({status} {code}); give the identity" in ran.stderr


def test_a_scope_that_is_not_there_is_no_snapshot() -> None:
    """Nor is one whose name is misspelt."""
    azure = estate()
    azure.faults[f"{ROOT}/resourcegroups/rg-m".lower()] = lambda _query, _times: error(404, "ResourceGroupNotFound")
    ran = run_collect(azure, "--resource-group", "rg-m")
    assert ran.returncode == 2
    assert f"{ROOT}/resourceGroups/rg-m: there is no such scope" in ran.stderr


def test_missing_credentials_are_reported_with_the_remedy() -> None:
    """The message of azure-identity is in one line, without a traceback."""
    with (
        served(estate()) as environ,
        patch.dict(os.environ, {**environ, "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"}),
    ):
        ran = policyeng("snapshot", "collect", "--subscription", SUBSCRIPTION)
    assert ran.returncode == 2
    assert ran.stderr.startswith("policyeng: AzureCloud: no token for Azure: ")
    assert ran.stderr.endswith(
        "; sign in with `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and a secret, certificate or identity\n"
    )


def test_a_host_that_cannot_be_reached_is_reported() -> None:
    """Every request ends the same way, so there is nothing to evaluate."""
    with served(estate()) as environ, patch.dict(os.environ, environ):
        ran = policyeng(
            "snapshot", "collect", "--subscription", SUBSCRIPTION, *QUICK, "--endpoint", "http://127.0.0.1:9"
        )
    assert ran.returncode == 2
    assert "nothing of it can be read: the host cannot be reached; try again later" in ran.stderr


def test_keys_are_never_requested_and_secrets_never_kept() -> None:
    """Nothing but GET, no path that gives keys, and no secret or token in what is written or printed."""
    azure = estate()
    secret = {"key": "s3cret-2", "password": "s3cret-4"}
    resources: dict[str, JsonObject] = {
        "connections/c": {"authType": "ApiKey", "credentials": {"key": "s3cret-1"}},
        "datastores/d": {"credentials": {"credentialsType": "AccountKey", "secrets": secret}},
        "jobs/k": {"environmentVariables": {"PLAIN": "s3cret-3", "N": 1}},
        "computes/d": {
            "computeType": "VirtualMachine",
            "properties": {"administratorAccount": {"username": "u", "password": "s3cret-5"}},
        },
    }
    ran = run_collect(azure.add(*({"id": f"{WORKSPACE}/{name}", "properties": own} for name, own in resources.items())))
    assert missing(ran) == []
    assert not re.search(f"s3cret|{TOKEN}", ran.stdout + ran.stderr)
    assert azure.methods == {"GET"}
    assert not [path for path in azure.requests if re.search(r"list\w*keys|secrets|credentials", path)]
    assert azure.credentials == {f"Bearer {TOKEN}"}


def test_an_interrupted_run_ends_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    """Also while responses are awaited."""
    azure, output = estate(), tmp_path / "snapshot.json"
    azure.faults[COMPUTES.lower()] = lambda _query, _times: Response(slow=20)
    command = [sys.executable, "-m", "policyeng", "snapshot", "collect", "--subscription", SUBSCRIPTION]
    with served(azure) as environ:
        process = subprocess.Popen(
            [*command, "--output", str(output)],
            env={**os.environ, **environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stderr=subprocess.PIPE,
            text=True,
            # What runs in the background of a shell has interrupts ignored, and so would what it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        with process:
            while not azure.requests[COMPUTES.lower()]:
                assert process.poll() is None
                threading.Event().wait(0.01)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=15) == 130  # before the response comes
            assert process.stderr is not None
            assert process.stderr.read() == "policyeng: interrupted\n"
    assert list(tmp_path.iterdir()) == []
