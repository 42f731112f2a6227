"""Metrics: the counts, in a form that Prometheus reads, under names and labels that do not grow."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from policyeng.bundle import load_bundle
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.models import Exemption
from policyeng.server.decision_log import DecisionLog, Segments
from policyeng.server.metrics import ServerMetrics
from policyeng.server.service import Service
from tests.bundles import deny_when, rego, workspace, write
from tests.cluster import object_of, review_of, workspace_object
from tests.servers import get_from, look, send_to, service_of, setup_of, state_of
from tests.test_server_tokens import line

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A server that measures itself."""
    return measured(service_of(setup_of(tmp_path), state_of(since=datetime.now(UTC) - timedelta(seconds=90))))


def measured(service: Service) -> Service:
    """The same server with metrics."""
    metrics = ServerMetrics()
    metrics.watch(service)
    service.metrics = metrics
    return service


def samples(service: Service) -> Samples:
    """The samples of the metrics route, by name and labels."""
    (response,) = get_from(service, "/metrics")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(response.text))
    assert all(family.documentation for family in families)
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(name: str, /, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """The key of a sample."""
    return f"policyeng_{name}", frozenset(labels.items())


def test_responses_are_counted_by_their_result(service: Service) -> None:
    """Decisions, reports and refusals, and the findings of both by policy."""
    for path, content in (
        ("/v1/admit", workspace("there", x=2)),
        ("/v1/admit", workspace("there", x=1)),
        ("/v1/admit", b"{"),
        ("/v1/check", {"snapshotVersion": 1, "resources": [workspace("a", x=2), workspace("b", x=0)]}),
        ("/v1/check", b"{"),
    ):
        send_to(service, path, content)
    counted = samples(service)

    assert counted[of("admission_requests_total", decision="deny", mode="deny", point="admit")] == 1
    assert counted[of("admission_requests_total", decision="allow", mode="", point="admit")] == 1
    assert counted[of("admission_requests_total", decision="refused", mode="", point="admit")] == 1
    assert counted[of("refused_requests_total", point="admit", status="400")] == 1
    assert counted[of("check_requests_total", exit_code="1")] == 1
    assert counted[of("check_requests_total", exit_code="refused")] == 1
    assert counted[of("evaluations_total", rule="T-A-1", outcome="fail")] == 2
    assert counted[of("evaluations_total", rule="T-A-1", outcome="pass")] == 1
    assert counted[of("evaluation_errors_total", kind="error")] == 0
    assert counted[of("admission_duration_seconds_count", point="admit")] == 3
    assert 0 < counted[of("admission_duration_seconds_sum", point="admit")] < 20
    assert not [name for name, _ in counted if name.endswith("_created")]


def test_reviews_are_counted_by_their_response(tmp_path: Path) -> None:
    """Reviews outside the scope and passing ones are allowed; unreadable and undecidable ones are refused."""
    policy = rego("limit", deny_when('input.resource.properties.description == "bad"'))
    bundle = load_bundle(write(tmp_path, {"area/limit.rego": policy}))
    before = state_of(since=datetime.now(UTC) - timedelta(seconds=90))
    service = measured(service_of(EvaluationSetup(bundle, (), {}, Settings()), before))
    there = workspace_object(description="good")
    for document in (
        review_of("CREATE", object_of("ConfigMap", {}, api_version="v1")),
        review_of("CREATE", there),
        review_of("CREATE", workspace_object(description="bad")),
        review_of("CREATE", object_of("Workspace", 1)),
    ):
        assert send_to(service, "/v1/admission-review", document).status_code == 200
    service.options = dataclasses.replace(service.options, max_snapshot_age=1)
    assert send_to(service, "/v1/admission-review", review_of("CREATE", there)).json()["response"]["allowed"] is False
    counted = samples(service)
    by_decision = {
        decision: counted[of("admission_requests_total", decision=decision, mode=mode, point="admission-review")]
        for decision, mode in (("allow", ""), ("deny", "deny"), ("refused", ""))
    }

    assert by_decision == {"allow": 2, "deny": 1, "refused": 2}
    for status in ("422", "503"):
        assert counted[of("refused_requests_total", point="admission-review", status=status)] == 1


def test_what_cannot_be_decided_is_an_error(service: Service) -> None:
    """A document that is no snapshot leaves a report with a problem."""
    send_to(service, "/v1/check", {"nothing": "known"})
    assert samples(service)[of("evaluation_errors_total", kind="problem")] >= 1


def test_a_service_is_measured_on_each_request(service: Service, tmp_path: Path) -> None:
    """The active policies, their faults, their age, the queue, the log, and the process."""
    bundle = service.setup.current.bundle
    service.log = DecisionLog(Segments(tmp_path / "log"), {})
    send_to(service, "/v1/admit", workspace("there", x=2))
    service.log.close()
    counted = samples(service)

    (engine,) = (dict(labels)["engine"] for name, labels in counted if name == "policyeng_policyset_info")
    assert engine.startswith("embedded ")
    info = {"name": bundle.name, "revision": bundle.revision, "digest": bundle.digest, "engine": engine}
    assert counted[of("policyset_info", **info)] == 1
    assert 89 <= counted[of("state_age_seconds")] < 200
    assert (counted[of("ready")], counted[of("queue_requests")]) == (1, 0)
    assert counted[of("queue_places")] == service.queue.places
    assert counted[of("decision_log_entries_total", fate="written")] == 1
    assert counted[of("decision_log_entries_total", fate="dropped")] == 0
    assert {counted[of("degraded", of=what)] for what in ("policies", "state")} == {0}
    assert counted[("process_resident_memory_bytes", frozenset())] > 1e6
    service.leaving = True
    assert samples(service)[of("ready")] == 0


def test_bad_readings_are_counted(tmp_path: Path) -> None:
    """By the reloaded file; those of the policies have a name of their own."""
    tokens = tmp_path / "tokens"
    tokens.write_text(line("prom", "metrics", "one"), encoding="utf-8")
    service = measured(service_of(setup_of(tmp_path), tokens=tokens))
    assert service.tokens is not None
    tokens.write_text("nothing of the kind", encoding="utf-8")
    look(service.tokens)
    service.tokens.reload()

    assert get_from(service, "/metrics")[0].status_code == 401
    text = get_from(service, "/metrics", Authorization="Bearer one")[0].text
    assert 'policyeng_load_failures_total{of="tokens"} 2.0' in text
    assert 'policyeng_degraded{of="tokens"} 1.0' in text
    assert "policyeng_bundle_load_failures_total 0.0" in text


def test_exemptions_are_counted_by_whether_they_have_ended(tmp_path: Path) -> None:
    """An alarm can be set on when the next one ends."""
    clock = datetime.now(UTC)
    ends = [clock - timedelta(days=1), clock + timedelta(days=2), clock + timedelta(days=1)]
    exemptions = [
        Exemption(
            id=f"e{number}",
            policy="T-A-1",
            scope="/subscriptions/s",
            category="waiver",
            reason="r",
            owner="a",
            approved_by="b",
            created_at=clock - timedelta(days=9),
            expires_at=end,
        )
        for number, end in enumerate(ends)
    ]
    counted = samples(measured(service_of(replace(setup_of(tmp_path), exemptions=exemptions))))

    assert counted[of("exemptions", state="active")] == 2
    assert counted[of("exemptions", state="expired")] == 1
    assert counted[of("exemption_expiry_timestamp_seconds")] == pytest.approx(ends[2].timestamp())


def test_callers_choose_no_label(service: Service) -> None:
    """However many paths, ids and names they make up, there is no series more."""
    send_to(service, "/v1/admit", workspace("one", x=2), x_request_id="a")
    before = samples(service).keys()
    for number in range(20):
        send_to(service, "/v1/admit", workspace(f"other{number}", x=2), x_request_id=f"b{number}")
        send_to(service, f"/v1/{number}", {})

    assert samples(service).keys() == before
