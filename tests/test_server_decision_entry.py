"""Entries of the decision log: their fields, what they mask, and what they leave out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from policyeng.bundle import load_bundle
from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.server.decision_log import line_of
from policyeng.server.file_watcher import Watched
from policyeng.server.service import Answered, Service
from tests.bundles import deny_when, rego, workspace, write
from tests.servers import send_to, service_of, setup_of, state_of
from tests.test_server_decision_log import LABELS, plain

#: Of the specification of W3C Trace Context.
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.all: list[Answered] = []

    def start(self) -> None:
        """There is nothing to begin."""

    def answered(self, answered: Answered) -> None:
        """Keep it."""
        self.all.append(answered)

    def close(self) -> None:
        """There is nothing to end."""


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A server whose log can be looked at."""
    service = service_of(setup_of(tmp_path), state_of(since=datetime.now(UTC)))
    service.log = Heard()  # type: ignore[assignment]  # a double
    return service


def entry_for(service: Service, path: str, content: object, **headers: str) -> JsonObject:
    """The entry of one request."""
    assert isinstance(service.log, Heard)
    send_to(service, path, content, **headers)
    entry: JsonObject = orjson.loads(line_of(service.log.all[-1], LABELS))
    return entry


def test_an_entry_states_the_decision_and_its_basis(service: Service) -> None:
    """In OPA's field names, and ours next to them."""
    entry = entry_for(service, "/v1/admit", workspace("there", x=2), traceparent=TRACE, x_request_id="mine")
    bundle = service.setup.current.bundle

    assert entry["bundles"] == {bundle.name: {"revision": bundle.revision}}
    assert (entry["policyset_digest"], entry["labels"], entry["path"]) == (bundle.digest, LABELS, "v1/admit")
    assert (entry["trace_id"], entry["span_id"]) == tuple(TRACE.split("-")[1:3])
    assert (entry["request_id"], entry["requested_by"].split(":")[0]) == ("mine", "127.0.0.1")
    assert entry["input"] == workspace("there", x=2)
    assert (entry["result"]["allowed"], entry["result"]["exitCode"]) == (False, 1)
    assert entry["result"]["denied"][0]["denials"] == [{"msg": "m", "path": "/properties/x", "actual": 1}]
    assert (entry["outcome_counts"]["denied"], entry["mode"], entry["point"]) == (1, "deny", "admit")
    decision = send_to(service, "/v1/admit", workspace("there", x=2)).json()
    assert (entry["snapshot_digest"], entry["engine"]) == (decision["snapshot"]["digest"], decision["engine"])
    assert entry["metrics"]["timer_server_handler_ns"] > 0
    assert datetime.fromisoformat(entry["timestamp"]).tzinfo is not None
    assert {"masked", "erased", "error"}.isdisjoint(entry)


def test_a_report_is_logged_with_its_counts_and_findings(service: Service) -> None:
    """Passes by their number only."""
    content = {"snapshotVersion": 1, "resources": [workspace("a", x=2), workspace("b", x=0)]}
    entry = entry_for(service, "/v1/check", content)

    assert entry["outcome_counts"] == {"pass": 1, "fail": 1, "unknown": 0, "error": 0, "exempt": 0}
    assert [finding["resource"] for finding in entry["result"]["findings"]] == [workspace("a")["id"]]
    assert "input" not in entry


def test_a_refusal_is_logged_too(service: Service) -> None:
    """With the detail that the caller got, and without policies that had no part in it."""
    entry = entry_for(service, "/v1/admit", b"{", traceparent="00-" + "0" * 32 + "-00f067aa0ba902b7-01")

    assert entry["error"] == {"code": "400", "message": "body:1:2: not valid JSON; correct the syntax there"}
    assert {"result", "bundles", "input", "trace_id"}.isdisjoint(entry)


def test_secrets_are_masked_and_named(service: Service) -> None:
    """By pointers that have their `~` and `/` escaped."""
    change = workspace("there", x=2, nested=[{"adminPassword": "hunter2"}], **{"a/b~secret": "s", "plain": "p"})
    entry = entry_for(service, "/v1/admit", change)

    assert entry["masked"] == ["/input/properties/nested/0/adminPassword", "/input/properties/a~1b~0secret"]
    assert entry["input"]["properties"]["nested"] == [{"adminPassword": "***"}]
    assert entry["input"]["properties"]["plain"] == "p"


def test_findings_and_messages_are_masked_too(service: Service) -> None:
    """In what a policy cites, and in messages, which cite what came in."""
    reading = rego(
        "limit", deny_when("input.resource.properties.x > 1").replace('"actual": 1', '"actual": input.resource')
    )
    bundle = load_bundle(write(Path(service.setup.current.bundle.roots[0]), {"area/limit.rego": reading}))
    found = replace(service.setup.current, bundle=bundle)
    service.setup = Watched("policies", lambda: found, ())
    entry = entry_for(service, "/v1/admit", workspace("there", x=2, adminPassword="hunter2"))
    assert entry["result"]["denied"][0]["denials"][0]["actual"]["properties"]["adminPassword"] == "***"

    refused = line_of(plain(refusal=InputError("unknown key `password=hunter2`")), LABELS)
    assert orjson.loads(refused)["error"]["message"] == "unknown key `***`"
    assert b"hunter2" not in refused + orjson.dumps(entry)


def test_too_long_values_are_left_out(service: Service) -> None:
    """The input first, and what came of it only where that is not enough."""
    assert isinstance(service.log, Heard)
    send_to(service, "/v1/admit", workspace("there", x=2, long="x" * 5000))
    for longest, erased in ((9000, None), (4000, ["/input"]), (500, ["/input", "/result"])):
        entry = orjson.loads(line_of(service.log.all[-1], LABELS, longest))
        assert entry.get("erased") == erased
        assert entry["outcome_counts"]["denied"] == 1


@pytest.mark.parametrize("odd", ['{"id": 123456789012345678901234567890}', '{"id": "\\ud800"}'])
def test_what_json_can_express_can_be_written(service: Service, odd: str) -> None:
    """Numbers beyond 64 bits and half characters come out as they came in, where they are taken at all."""
    entry = entry_for(service, "/v1/admit", odd.encode())
    assert "error" in entry or "input" in entry
    line = line_of(plain(document={"n": 10**30, "half": "\ud800"}), LABELS)
    assert b'"n":1000000000000000000000000000000,"half":"\\ud800"' in line
