"""The routes give what the evaluator gives in process, and refuse the rest with a problem."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

import policyeng
from policyeng.bundle import load_bundle
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup, load_resources
from policyeng.errors import InputError
from policyeng.evaluation import EvaluationOptions
from policyeng.models import JsonObject
from policyeng.report.json import render
from policyeng.server import service as serving
from policyeng.server.app import application
from policyeng.server.metrics import ServerMetrics
from policyeng.server.options import Route
from policyeng.server.service import Service, SnapshotState
from policyeng.sources import read_inputs
from tests.bundles import deny_when, rego, workspace, write
from tests.carriers import resource, template
from tests.cluster import object_of, review_of
from tests.conftest import ROOT
from tests.servers import get_from, post, send_all, send_to, service_of, setup_of, state_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLES = sorted((ROOT / "samples" / "workspaces").glob("*.json"))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's clock does not move."""
    for module in ("service", "routes.handling"):
        monkeypatch.setattr(f"policyeng.server.{module}.get_time", lambda: NOW)


@pytest.fixture(scope="module")
def built_in() -> EvaluationSetup:
    """The policies that come with the engine."""
    return load_resources((), (), Settings())


@pytest.fixture
def small(tmp_path: Path) -> Service:
    """A server with one policy and a state."""
    return service_of(setup_of(tmp_path), state_of(workspace("old", x=9), since=NOW - timedelta(seconds=90)))


def in_process(setup: EvaluationSetup, content: bytes, **options: Any) -> bytes:
    """The JSON report on standard input."""
    read = read_inputs(["-"], stdin=content, **setup.bundle.wanted)
    chosen = EvaluationOptions(**{"as_of": NOW, "problems": read.problems, **options})
    return render(policyeng.evaluation.evaluate(setup.bundle, read.snapshot, chosen)).encode()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_check_responds_with_the_report_of_the_command(sample: Path, built_in: EvaluationSetup) -> None:
    """Byte for byte, at the server's time and at the one that is requested."""
    content = sample.read_bytes()
    service = service_of(built_in, deadline=60.0)  # the first request compiles the policies
    later = "2027-01-01T00:00:00Z"
    enveloped = orjson.dumps({"snapshot": orjson.loads(content), "asOf": later, "failOn": "critical"})
    plain, at = send_all(application(service), post("/v1/check", content), post("/v1/check", enveloped))

    assert plain.status_code == 200
    assert plain.content == in_process(built_in, content)
    compact = orjson.dumps(orjson.loads(content))
    moment = datetime.fromisoformat(later)
    assert at.content == in_process(built_in, compact, as_of=moment, fail_on=policyeng.models.Severity.CRITICAL)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_admit_responds_with_the_decision_of_admit(sample: Path, built_in: EvaluationSetup) -> None:
    """For a change of a resource of each sample, evaluated against the whole of it."""
    state = policyeng.load_snapshot(sample)
    resource = orjson.loads(orjson.dumps(state.resources[len(state.resources) // 2]))
    resource["properties"]["publicNetworkAccess"] = "Enabled"
    service = service_of(built_in, SnapshotState(state, NOW - timedelta(hours=1)))
    response = send_to(service, "/v1/admit", resource).json()

    assert len(response.pop("decisionId")) == 32
    assert response.pop("stateAgeSeconds") == 3600
    expected = policyeng.admit(built_in.bundle, state, resource, as_of=NOW)
    assert response == orjson.loads(expected.model_dump_json(by_alias=True, fallback=str))


def test_templates_in_a_request_are_evaluated(built_in: EvaluationSetup) -> None:
    """In a document to check, and in a change."""
    kind = "Microsoft.MachineLearningServices/workspaces"
    inner = {"type": kind, "name": "w", "properties": {"publicNetworkAccess": "Enabled"}}
    deployment = resource("Microsoft.Resources/deployments", {"template": template(inner)})
    service = service_of(built_in, SnapshotState(policyeng.models.Snapshot(), NOW))
    for path in ("/v1/check", "/v1/admit"):
        response = send_to(service, path, deployment).json()
        assert response["exitCode"] == 1
        findings = response.get("findings") or response["denied"]
        assert any(finding["policy"] == "AML-NET-001" and finding["resource"].endswith("/w") for finding in findings)


def test_yaml_is_evaluated_as_by_the_command(built_in: EvaluationSetup) -> None:
    """As `application/yaml`."""
    content = (ROOT / "samples/formats/manifests.yaml").read_bytes()
    response = send_to(service_of(built_in), "/v1/check", content, content_type="application/yaml; charset=utf-8")

    assert response.content == in_process(built_in, content)


def test_exemptions_of_the_request_precede_those_of_the_server(tmp_path: Path) -> None:
    """A faulty one is a problem of the report, as in a file."""
    service = service_of(setup_of(tmp_path))
    resource = workspace("w", x=2)
    given = {"id": "E", "policy": "T-A-1", "scope": resource["id"], "category": "waiver", "reason": "r", "owner": "o"}
    given |= {"approvedBy": "a", "createdAt": "2026-05-01T00:00:00Z", "expiresAt": "2026-07-01T00:00:00Z"}
    envelope: JsonObject = {"snapshot": resource, "exemptions": [given]}
    exempted, faulty = (
        response.json()
        for response in send_all(
            application(service),
            post("/v1/check", envelope),
            post("/v1/check", {**envelope, "exemptions": [{**given, "approvedBy": "o"}]}),
        )
    )

    assert (exempted["exitCode"], exempted["summary"]["exempt"]) == (0, 1)
    assert faulty["exitCode"] == 2
    assert "both `o`" in faulty["problems"][0]["message"]


def test_a_change_may_bring_its_state_where_the_server_has_none(tmp_path: Path) -> None:
    """It has to; where the server has one, a request cannot choose another."""
    setup = setup_of(tmp_path)
    change = workspace("w", x=2)
    state = {"snapshotVersion": 1, "takenAt": "2026-05-31T23:59:00Z", "resources": [workspace("a", x=5)]}
    without, with_one = service_of(setup), service_of(setup, state_of(since=NOW))
    brought = send_to(without, "/v1/admit?standing=true", {"change": change, "state": state})

    assert (brought.json()["allowed"], brought.json()["stateAgeSeconds"]) == (False, 60)
    assert [finding["resource"] for finding in brought.json()["standing"]] == [workspace("a")["id"]]
    assert send_to(without, "/v1/admit", {"change": change, "state": state}).json()["standing"] == []
    odd = send_to(without, "/v1/admit?standing=yes", {"change": change, "state": state})
    assert (odd.status_code, odd.json()["place"]) == (422, "query: /standing")
    unknown = send_to(without, "/v1/admit?standin=true", {"change": change, "state": state})
    assert (unknown.status_code, unknown.json()["detail"][:27]) == (422, "unknown parameter `standin`")
    assert "no state to evaluate" in send_to(without, "/v1/admit", change).json()["detail"]
    assert send_to(without, "/v1/admit", {"change": change, "state": {"snapshotVersion": 2}}).status_code == 422
    refused = send_to(with_one, "/v1/admit", {"change": change, "state": state})
    assert (refused.status_code, refused.json()["place"]) == (422, "/state")


def test_nothing_is_decided_by_a_state_that_is_too_old(tmp_path: Path) -> None:
    """A state from the future does not decide either; readiness reports it, and `check` needs no state."""
    for since in (NOW - timedelta(seconds=61), NOW + timedelta(days=1)):
        service = service_of(setup_of(tmp_path), state_of(since=since), max_snapshot_age=60)
        refused = send_to(service, "/v1/admit", workspace("w", x=1))
        ready = get_from(service, "/readyz")[0]

        assert refused.status_code == 503
        assert "no decision: the state is" in refused.json()["detail"]
        assert ready.status_code == 503
        assert ready.json()["reasons"] == [refused.json()["detail"]]
        assert send_to(service, "/v1/check", workspace("w", x=1)).json()["exitCode"] == 0
    fresh = service_of(setup_of(tmp_path), state_of(since=NOW - timedelta(seconds=60)), max_snapshot_age=60)
    assert send_to(fresh, "/v1/admit", workspace("w", x=1)).json()["allowed"] is True


@pytest.mark.parametrize(
    ("path", "content", "status", "message"),
    [
        ("/v1/check", b'{"a": 1, "a": 2}', 400, "duplicate key"),
        ("/v1/check", b'{"snapshot": 1, "snapshot": 2}', 400, "duplicate key"),
        ("/v1/check", b"[" * 200 + b"]" * 200, 400, "nested deeper"),
        ("/v1/check", b"[NaN]", 400, "not JSON"),
        ("/v1/check", b'"\xff"', 400, "not valid UTF-8"),
        ("/v1/check", b"\xff\xfe{\x00}\x00", 400, "UTF-16"),
        ("/v1/check", b'{"resources": [', 400, "not valid JSON"),
        ("/v1/check", b"", 400, "the body is empty"),
        ("/v1/check", b'{"snapshot": {}, "failOn": "hihg"}', 422, "failOn"),
        ("/v1/check", b'{"snapshot": {}, "fail": "high"}', 422, "unknown key `fail`"),
        ("/v1/check", b'{"snapshot": {}, "asOf": "2026-01-01"}', 422, "asOf"),
        ("/v1/check", b'{"snapshot": {}, "asOf": "0001-01-01T00:00:00+14:00"}', 422, "out of range"),
        ("/v1/check", b'{"snapshot": {}, "from": "arm"}', 422, "unknown format `arm`"),
        ("/v1/check", b'{"snapshot": {}, "scope": "rg"}', 422, "scope"),
        ("/v1/admit", b'{"id": "x", "id": "y"}', 400, "duplicate key"),
        ("/v1/admit", b"5", 422, "this is not a change"),
        ("/v1/admit", b"[]", 422, "the documents contain no changes"),
        ("/v1/admit", b'["x", 5]', 422, "a text is a change only if it is the full ARM id"),
        ("/v1/admit", b'{"change": "x", "as_of": 1}', 422, "unknown key `as_of`"),
        ("/v1/admit", b'{"id": "x"}', 422, "unsupported format: an object with the keys `id`"),
        ("/v1/admit", b'"x"', 422, "a text is a change only if it is the full ARM id"),
        ("/v1/check-policy-restrictions", b"[]", 422, ""),
        ("/v1/check-policy-restrictions", b'{"resourceDetails": {}}', 422, "`resourceContent` is missing"),
    ],
)
def test_an_invalid_request_is_refused(small: Service, path: str, content: bytes, status: int, message: str) -> None:
    """The response is a problem that names the fault."""
    response = send_to(small, path, content, x_request_id="mine-1")
    problem = response.json()

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert message in f"{problem['detail']} {problem.get('place')}"
    assert problem["status"] == status
    assert problem["requestId"] == response.headers["x-request-id"] == "mine-1"


def test_an_unknown_format_is_a_problem_of_the_report(small: Service) -> None:
    """As of the command, with its exit code."""
    report = send_to(small, "/v1/check", b'{"a": 1}').json()

    assert report["exitCode"] == 2
    assert "unsupported format" in report["problems"][0]["message"]


def test_paths_and_methods_that_there_are_not(small: Service) -> None:
    """Are refused as everything is."""
    missing, method = get_from(small, "/v1/nothing", "/v1/admit")

    assert (missing.status_code, method.status_code) == (404, 405)
    assert method.headers["allow"] == "POST"
    assert missing.json()["detail"] == "`GET /v1/nothing` is not answered here"


@pytest.mark.parametrize("only", [(Route.ADMISSION_REVIEW,), (Route.CHECK, Route.ADMIT, Route.CHECK)])
def test_other_routes_than_those_wanted_are_not_there(tmp_path: Path, only: tuple[Route, ...]) -> None:
    """Every request to them is refused; the routes for health and the document stay."""
    app = application(service_of(setup_of(tmp_path), state_of(since=NOW), only=only))
    statuses = {route: send_all(app, post(f"/v1/{route}", b"[]"))[0].status_code for route in Route}
    there = send_all(app, *(httpx.Request("GET", f"http://server{path}") for path in ("/readyz", "/openapi.json")))

    assert {route for route, status in statuses.items() if status != 404} == set(only)
    assert [response.status_code for response in there] == [200, 200]
    assert send_all(app, httpx.Request("OPTIONS", "http://server/v1/check-policy-restrictions"))[0].status_code == 404


def test_requests_have_an_id_and_responses_to_be_logged_another(small: Service) -> None:
    """The caller's where it is one; never one that would break a line of a log."""
    ids = ["a-b_c.1:/+=", "x" * 129, "two words", "a\tb", ""]
    given = [send_to(small, "/v1/admit", workspace("w"), x_request_id=each) for each in ids]

    assert given[0].headers["x-request-id"] == ids[0]
    assert all(len(response.headers["x-request-id"]) == 32 for response in given[1:])
    assert given[0].headers["x-decision-id"] == given[0].json()["decisionId"]
    assert len({response.headers["x-decision-id"] for response in given}) == len(ids)


def test_concurrent_responses_do_not_mix(tmp_path: Path) -> None:
    """Sixty requests on two threads, each with its own response."""
    service = service_of(setup_of(tmp_path), state_of(workspace("old", x=1), since=NOW), waiting=100)
    values = [(index, 1 + index % 3 % 2) for index in range(60)]
    requests = [post(f"/v1/{['check', 'admit'][index % 2]}", workspace(f"w{index}", x=x)) for index, x in values]
    for (index, x), request, response in zip(values, requests, send_all(application(service), *requests), strict=True):
        body = response.json()
        assert body["exitCode"] == x - 1
        if request.url.path == "/v1/admit":
            assert body["changes"] == [{"operation": "replace", "id": workspace(f"w{index}")["id"]}]
            findings = body["denied"]
        else:
            findings = [finding for finding in body["findings"] if finding["outcome"] == "fail"]
        assert [finding["resource"] for finding in findings] == [workspace(f"w{index}")["id"]] * (x - 1)


def test_an_unforeseen_error_reveals_nothing(small: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a problem with status 500, and the log has the rest."""
    monkeypatch.setattr("policyeng.server.routes.evaluation.evaluate", lambda *_, **__: 1 / 0)
    response = send_to(small, "/v1/check", workspace("w"))

    assert response.status_code == 500
    assert "zero" not in response.text
    assert response.json()["requestId"] == response.headers["x-request-id"]


def test_a_bundle_that_does_not_compile_decides_nothing(small: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the caller's fault, and nothing is allowed."""

    def broken(*_: object, **__: object) -> None:
        raise policyeng.errors.EngineError("the bundle does not compile")

    monkeypatch.setattr("policyeng.server.service.admit", broken)
    response = send_to(small, "/v1/admit", workspace("w"))
    assert response.status_code == 503
    assert "allowed" not in response.json()


def test_reviews_get_reviews_also_when_nothing_can_be_decided(tmp_path: Path) -> None:
    """Full, and with an old state, nothing is allowed; other documents are refused."""
    bad = object_of("Workspace", {"owner": {"name": "g"}, "description": "bad"}, name="w")
    policy = rego("limit", deny_when('input.resource.properties.description == "bad"'))
    setup = EvaluationSetup(load_bundle(write(tmp_path, {"area/limit.rego": policy})), (), {}, Settings())
    before = state_of(workspace("w"), since=NOW - timedelta(seconds=90))
    service = service_of(setup, before)

    def reviewed(service: Service, document: object) -> JsonObject:
        response = send_to(service, "/v1/admission-review", document)
        assert response.status_code == 200
        review: JsonObject = response.json()["response"]
        assert review.get("auditAnnotations", {}).get("decision-id") == response.headers["x-decision-id"]
        return review

    assert reviewed(service, review_of("CREATE", bad))["status"]["code"] == 403
    assert reviewed(service, review_of("UPDATE", {**bad, "status": {}}, bad))["allowed"] is True
    assert send_to(service, "/v1/admission-review", b"{").status_code == 400
    for document in ([1], {}, {**review_of("CREATE", bad), "apiVersion": "admission.k8s.io/v1beta1"}):
        assert send_to(service, "/v1/admission-review", document).status_code == 422
    service.queue.closed = True
    instance_type = object_of("InstanceType", {"resources": {}}, api_version="amlarc.azureml.com/v1alpha1")
    for unable in (service, service_of(setup, before, max_snapshot_age=1)):
        for shown in (bad, instance_type):
            assert reviewed(unable, review_of("CREATE", shown))["status"]["code"] == 500
            assert reviewed(unable, review_of("DELETE", None, shown))["status"]["code"] == 500


def test_reviews_get_a_response_without_a_state(tmp_path: Path) -> None:
    """The object is evaluated by itself; what other resources contain is unknown, and a warning says why."""
    files = {
        "area/limit.rego": rego("limit", deny_when('input.resource.properties.description == "bad"')),
        "area/near.rego": rego(
            "near", deny_when('not input.snapshot.by_type["microsoft.consumption/budgets"]'), identity="T-B-1"
        ),
    }
    bundle = load_bundle(write(tmp_path, files))
    bad, good = (
        object_of("Workspace", {"owner": {"name": "g"}, "description": word}, name="w") for word in ("bad", "good")
    )

    def reviewed(document: object, strict: bool = False) -> JsonObject:
        setup = EvaluationSetup(bundle, (), {}, Settings(strict_unknown=strict))
        response: JsonObject = send_to(service_of(setup), "/v1/admission-review", document).json()["response"]
        return response

    refused = reviewed(review_of("CREATE", bad))
    assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
    assert reviewed(review_of("UPDATE", bad, good))["allowed"] is False
    allowed = reviewed(review_of("CREATE", good))
    assert allowed["allowed"] is True
    assert any(one.startswith("the server has no state") for one in allowed["warnings"])
    assert any(one.startswith("T-B-1 could not be decided: ") for one in allowed["warnings"])
    assert reviewed(review_of("CREATE", good), strict=True)["allowed"] is False
    labelled = {**good, "metadata": {**good["metadata"], "labels": {"a": "b"}}}
    assert reviewed(review_of("UPDATE", labelled, good))["allowed"] is True
    assert reviewed(review_of("DELETE", None, good))["allowed"] is True
    instance_type = object_of("InstanceType", {"resources": {}}, api_version="amlarc.azureml.com/v1alpha1")
    assert reviewed(review_of("CREATE", instance_type))["allowed"] is True


def test_observers_are_notified_of_every_response(tmp_path: Path) -> None:
    """Of verdicts and of refusals, and metrics are shown."""

    class Listener(ServerMetrics):
        def __init__(self) -> None:
            super().__init__()
            self.heard: list[serving.Answered] = []

        def answered(self, event: serving.Answered) -> None:
            self.heard.append(event)
            raise OSError("the disk is full")  # which changes no response

        def exposition(self) -> bytes:
            return b"one 1\n"

        def start(self) -> None:
            """There is nothing to begin."""

        def close(self) -> None:
            self.heard.clear()

    listener = Listener()
    service = service_of(setup_of(tmp_path), state_of(since=NOW))
    service.log = service.metrics = listener  # type: ignore[assignment]  # a double
    send_to(service, "/v1/admit", workspace("w", x=2))
    send_to(service, "/v1/check", b"{")

    decided, refused = listener.heard[0], listener.heard[2]
    assert isinstance(decided.outcome, policyeng.models.Decision)
    assert (decided.point, decided.status, decided.state_age) == ("admit", 200, 0)
    assert decided.document == workspace("w", x=2)
    assert (refused.point, refused.status, refused.outcome) == ("check", 400, None)
    assert isinstance(refused.refusal, InputError)
    assert get_from(service, "/metrics")[0].text == "one 1\n"


def test_readiness_and_life(small: Service) -> None:
    """A server that leaves is alive, and not ready; a fault of a later reload is reported."""
    alive, ready = get_from(small, "/healthz", "/readyz")
    assert (alive.json(), ready.json()) == ({"status": "alive"}, {"ready": True, "reasons": [], "faults": []})
    small.leaving = True
    assert [response.status_code for response in get_from(small, "/healthz", "/readyz")] == [200, 503]
    assert send_to(small, "/v1/admit", workspace("w")).status_code == 200


def test_a_service_watches_while_it_serves(small: Service) -> None:
    """The watch ends with its application."""
    small.start()
    small.stop()
    assert small.unready() == []


def test_what_if_output_is_decided_as_by_the_command(small: Service) -> None:
    """As it comes; what cannot be known of it denies."""
    after = workspace("w", x=2)
    made = {"resourceId": after["id"], "changeType": "Create", "after": after}
    response = {"status": "Succeeded", "error": None, "changes": [made]}

    allowed = send_to(
        small, "/v1/admit", {**response, "changes": [{**made, "changeType": "NoChange", "before": after}]}
    )
    denied = send_to(small, "/v1/admit", response)
    refused = send_to(small, "/v1/admit", {**response, "changes": [{**made, "changeType": "Sideways"}]})

    assert allowed.json()["allowed"]
    assert not denied.json()["allowed"]
    assert refused.status_code == 422
