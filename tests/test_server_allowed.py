"""Changes that were allowed count as part of the state: a violation cannot be split over several requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from policyeng.bundle import load_bundle
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.models import Blame, Change, JsonObject, Operation
from policyeng.server import service as serving
from policyeng.server.file_watcher import Watched
from policyeng.server.metrics import ServerMetrics
from policyeng.server.service import Allowed, Service, counting
from tests.bundles import rego, write
from tests.bundles import workspace as resource
from tests.cluster import GROUP, review_of, workspace_object
from tests.servers import get_from, send_to, service_of, state_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
#: Denies every workspace while there are more than two of them.
CROWD = (
    'deny contains {"msg": "too many", "path": "/id", "actual": n} if { n := count(input.snapshot.resources); n > 2 }'
)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """One that allows two workspaces, with an empty state."""
    bundle = load_bundle(write(tmp_path / "bundle", {"area/crowd.rego": rego("crowd", CROWD)}))
    return service_of(EvaluationSetup(bundle, (), {}, Settings()), empty(NOW))


def empty(since: datetime) -> Any:
    """A state with nothing in it."""
    state = state_of(since=since)
    return type(state)(state.snapshot.model_copy(update={"resources": ()}), since)


def admitted(service: Service, content: object) -> bool:
    """Whether a change is allowed."""
    response = send_to(service, "/v1/admit", content).json()
    assert response["exitCode"] in (0, 1), response
    allowed: bool = response["allowed"]
    return allowed


def reviewed(service: Service, verb: str, name: str, old: JsonObject | None = None, **more: object) -> bool:
    """Whether a review of the object of a workspace is allowed."""
    shown = named(name)
    allowed: bool = send_to(service, "/v1/admission-review", review_of(verb, shown, old, **more)).json()["response"][
        "allowed"
    ]
    return allowed


def named(name: str, **labels: str) -> JsonObject:
    """The object of a workspace."""
    document = workspace_object(azureName=name)
    document["metadata"] |= {"name": name, "labels": labels}
    document["spec"]["owner"] = {"armId": GROUP}
    return document


def test_changes_that_are_compliant_one_by_one_are_denied_together(service: Service) -> None:
    """By `/v1/admit` and the webhook, each of which counts what the other allowed."""
    assert admitted(service, resource("a"))
    assert reviewed(service, "CREATE", "b")
    assert not admitted(service, resource("c"))
    assert not reviewed(service, "CREATE", "c")
    assert admitted(service, resource("a")["id"])
    assert reviewed(service, "CREATE", "c")


def test_denied_changes_and_dry_runs_do_not_count(service: Service) -> None:
    """Changes against a state of the request, and documents of which a part is wrong, do not count either."""
    for _ in range(3):
        assert admitted(service, {"change": resource("dry"), "dryRun": True})
        assert reviewed(service, "CREATE", "dry", dryRun=True)
    assert not admitted(service, [resource("a"), resource("b"), resource("c")])
    assert service.allowed.entries == ()
    send_to(service, "/v1/admit", {"changes": [resource("a"), {"operation": "patch"}]})
    assert service.allowed.entries == ()

    own = service_of(service.setup.current)
    response = send_to(own, "/v1/admit", {"change": resource("a"), "state": {"snapshotVersion": 1, "resources": []}})
    assert response.json()["allowed"]
    assert own.allowed.entries == ()
    assert send_to(service, "/v1/admit", {"change": resource("a"), "dryRun": "yes"}).status_code == 422


def test_a_change_without_effect_does_not_count(service: Service) -> None:
    """What is as it was, where it was read does not matter; what takes back an allowed change has an effect."""
    first, second = resource("a", x=1), resource("a", x=2)
    service.state = Watched("state", lambda: state_of(first, since=NOW), ())
    same = {"properties": first["properties"], "type": first["type"], "id": first["id"]}
    for change in (first, same, [first], {"operation": "patch", "id": first["id"], "patch": {"properties": {"x": 1}}}):
        assert admitted(service, change)
        assert service.allowed.entries == ()
    both = [{"operation": "replace", "resource": one} for one in (first, second)]
    for change, count in (
        (second, 1),
        (second, 1),
        (both, 2),
        (first, 1),
        (first["id"], 2),
        (first["id"], 2),
    ):
        assert admitted(service, change)
        assert len(service.allowed.entries) == count, change


LONG = f"{resource('x')['id']}/computes/{'secret' * 500}"
#: What callers may send that is refused, undecided or without effect later.
ODD: tuple[object, ...] = (
    *("x", json.dumps(resource("a")), "secret" * 1000, ["secret"], {"secret": 1}, [resource("a"), "secret"]),
    *(LONG, [LONG], {"operation": "delete", "id": LONG}, {"operation": "patch", "id": LONG, "patch": {"secret": 1}}),
    *({**resource("secret"), "type": "x/y"}, {"changes": [resource("secret"), {"operation": "secret"}]}),
)


@pytest.mark.parametrize("change", ODD, ids=lambda change: str(change)[:40])
def test_nothing_of_a_refused_change_is_shown_to_others(service: Service, change: object) -> None:
    """Neither in decisions nor to users of kubectl; and nothing of it counts."""
    alone = [send_to(service, "/v1/admit", {"change": resource("b"), "dryRun": True}).json(), shown_to_kubectl(service)]
    refused = send_to(service, "/v1/admit", change)
    assert refused.status_code in (400, 422) or refused.json()["exitCode"] == 2
    assert len(refused.json().get("detail", "")) < 500
    assert all(len(problem["place"]) < 600 for problem in refused.json().get("problems", ()))
    assert service.allowed.entries == ()
    later = [send_to(service, "/v1/admit", {"change": resource("b"), "dryRun": True}).json(), shown_to_kubectl(service)]

    assert [without_ids(one) for one in later] == [without_ids(one) for one in alone]
    assert "secret" not in json.dumps(later)


def test_an_allowed_change_that_cannot_be_made_any_more_is_no_problem_of_others(service: Service) -> None:
    """Of a state that was read again and no longer contains what was patched, deleted or deployed."""
    deployment = {
        "id": f"{GROUP}/providers/Microsoft.Resources/deployments/secret",
        "type": "Microsoft.Resources/deployments",
        "properties": {"templateLink": {"uri": "https://secret"}},
    }
    service.state = Watched("state", lambda: state_of(resource("a"), resource("b"), since=NOW), ())
    stated = {"operation": "patch", "id": resource("a")["id"], "patch": {"tags": {"secret": "1"}}}
    assert admitted(service, stated)
    assert admitted(service, resource("b")["id"])
    entries = service.allowed.entries
    assert len(entries) == 2
    change = Change(operation=Operation.REPLACE, id=str(deployment["id"]), resource=deployment)
    more = (*entries, entries[0]._replace(change=change))
    service.allowed._kept.replace(lambda kept: kept._replace(entries=more))
    service.state = Watched("state", lambda: empty(NOW), ())
    response = send_to(service, "/v1/admit", resource("c"))

    assert (response.json()["allowed"], response.json()["problems"]) == (True, [])
    assert "warnings" not in shown_to_kubectl(service)
    assert "secret" not in response.text


def shown_to_kubectl(service: Service) -> JsonObject:
    """The response to a creation that is not made."""
    review = review_of("CREATE", named("b"), dryRun=True)
    response: JsonObject = send_to(service, "/v1/admission-review", review).json()["response"]
    return response


def without_ids(response: JsonObject) -> JsonObject:
    """A response without what is of one request."""
    left = {key: value for key, value in response.items() if key not in ("decisionId", "stateAgeSeconds", "asOf")}
    return left | {"auditAnnotations": {**left.get("auditAnnotations", {}), "decision-id": ""}}


def test_what_an_operator_writes_without_changing_azure_does_not_count(service: Service) -> None:
    """Its labels and finalizers would fill the memory."""
    assert reviewed(service, "UPDATE", "a", named("a", team="x"))
    assert service.allowed.entries == ()
    assert reviewed(service, "CREATE", "a")
    assert len(service.allowed.entries) == 1


def test_a_state_that_is_newer_than_what_was_allowed_takes_its_place(service: Service) -> None:
    """One that is read again, or taken before that, does not: it may not have it yet."""
    assert admitted(service, resource("a"))
    assert admitted(service, resource("b"))
    [first, _] = service.allowed.entries

    for since, allowed in ((NOW, False), (first.at - timedelta(seconds=1), False), (first.at, True)):
        service.allowed._kept.replace(
            lambda kept: kept._replace(entries=tuple(entry._replace(at=first.at) for entry in kept.entries))
        )
        service.state = Watched("state", lambda since=since: empty(since), ())  # type: ignore[misc]
        assert admitted(service, {"change": resource("c"), "dryRun": True}) is allowed
    assert admitted(service, resource("c"))
    assert len(service.allowed.entries) == 1


def test_two_at_a_time_do_not_get_past(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is allowed during another decision is evaluated again together with it."""
    assert admitted(service, resource("a"))
    together, decide = Barrier(2), serving.decide
    waiting = [True, True]

    def at_once(*given: Any, **options: Any) -> Any:
        decision = decide(*given, **options)
        if waiting:
            waiting.pop()
            together.wait(timeout=30)
        return decision

    monkeypatch.setattr(serving, "decide", at_once)
    setup, state = service.setup.current, empty(NOW)

    def put(name: str) -> bool:
        change = Change(operation=Operation.CREATE, id=resource(name)["id"], resource=resource(name))
        return service.decided(setup, state, [change], datetime.now(UTC), Blame.TOUCHED).allowed

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(put, ("b", "c"))) == [False, True]
    assert len(service.allowed.entries) == 2


def change(name: str, operation: str = "replace") -> Change:
    """A change of a workspace."""
    written: Any = {"replace": {"resource": resource(name)}, "patch": {"patch": {}}, "delete": {}}
    return Change(operation=Operation(operation), id=resource(name)["id"], **written[operation])


def test_a_resource_that_is_put_again_is_evaluated_again() -> None:
    """It replaces earlier puts and patches; a deletion stays, because it removes the children."""
    allowed = Allowed()
    first = [change("a", "delete"), change("a"), change("a", "patch"), change("b")]
    assert allowed.add(first, NOW, NOW - timedelta(1), allowed.entries)
    entries, long_ago = allowed.entries, NOW - timedelta(1)

    assert counting(entries, long_ago, [change("c")]) == first
    assert counting(entries, long_ago, [change("a")]) == [first[0], first[3]]
    for further in ("patch", "delete"):
        assert counting(entries, long_ago, [change("a", further)]) == first
    assert counting(entries, NOW, [change("c")]) == []
    assert allowed.add([change("a")], NOW, long_ago, entries)
    assert [entry.change for entry in allowed.entries] == [first[0], first[3], change("a")]


def test_of_equal_changes_the_last_counts() -> None:
    """A change that is allowed again and again takes one place."""
    allowed = Allowed()
    for name in ("a", "b", "a"):
        for operation in ("patch", "delete"):
            assert allowed.add([change(name, operation)], NOW, NOW - timedelta(1), allowed.entries)

    expected = [change(name, operation) for name in "ba" for operation in ("patch", "delete")]
    assert [entry.change for entry in allowed.entries] == expected


def test_only_so_many_count(caplog: pytest.LogCaptureFixture) -> None:
    """The oldest are left out, and that is logged and counted."""
    allowed = Allowed(2)
    long_ago = NOW - timedelta(1)
    for name in "ab":
        assert allowed.add([change(name)], NOW, long_ago, allowed.entries)
    assert not allowed.add([change("x")], NOW, long_ago, ())
    assert (allowed.forgotten, caplog.records) == (0, [])

    assert allowed.add([change("c")], NOW, long_ago, allowed.entries)
    assert [entry.change.id for entry in allowed.entries] == [resource(name)["id"] for name in "bc"]
    assert allowed.forgotten == 1
    assert "1 allowed changes no longer count" in caplog.text


def test_they_are_measured(service: Service) -> None:
    """How many there are, and how many are no longer."""
    metrics = ServerMetrics()
    metrics.watch(service)
    service.metrics = metrics
    assert admitted(service, resource("a"))
    [page] = get_from(service, "/metrics")

    assert "policyeng_allowed_changes 1.0" in page.text
    assert "policyeng_allowed_changes_forgotten_total 0.0" in page.text
