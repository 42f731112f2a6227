"""The active policies are reloaded with all of their sources, and requests keep what they began with."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from policyeng.configuration import candidates, resolve
from policyeng.context import load_resources
from policyeng.errors import UsageError
from policyeng.server.file_watcher import PolicyReload, Watched
from policyeng.server.service import Service, SnapshotState
from tests.bundles import deny_when, rego, workspace, write
from tests.servers import POLICY, get_from, look, send_to, service_of, state_of

EXEMPTIONS = """\
exemptions:
- {id: E-1, policy: T-A-1, scope: /subscriptions/s, category: waiver, reason: r, owner: a, approvedBy: b,
   createdAt: 2026-01-01T00:00:00Z, expiresAt: "2026-12-31T00:00:00Z"}
"""


def reload_of(folder: Path, seconds: float = 2.0) -> PolicyReload:
    """The active policies of a bundle, as the configuration of a folder selects them."""
    policies = (folder / "bundle",)
    write(folder, {"bundle/area/limit.rego": POLICY})
    paths = (*policies, *candidates(folder))
    return PolicyReload(
        lambda: resolve({}, {}, folder), lambda given: load_resources(policies, (), given), paths, seconds=seconds
    )


def server(reload: PolicyReload) -> Service:
    """A server with it."""
    service = service_of(reload.current, state_of(since=datetime.now(UTC)))
    service.setup = reload
    return service


def test_policies_settings_and_exemptions_are_read_again(tmp_path: Path) -> None:
    """Also those that only a new configuration names."""
    reload = reload_of(tmp_path)
    service = server(reload)
    change = workspace("there", x=2)
    assert send_to(service, "/v1/admit", change).json()["allowed"] is False
    write(tmp_path, {"policyeng.toml": 'fail_on = "critical"\n'})
    look(reload)
    assert send_to(service, "/v1/admit", change).json()["allowed"] is True
    write(tmp_path, {"policyeng.toml": 'exemptions = ["mine.yaml"]\n', "mine.yaml": EXEMPTIONS})
    look(reload)
    assert [each["policy"] for each in send_to(service, "/v1/admit", change).json()["exempted"]] == ["T-A-1"]
    write(tmp_path, {"mine.yaml": "exemptions: []\n"})
    look(reload)
    assert send_to(service, "/v1/admit", change).json()["allowed"] is False
    write(tmp_path, {"bundle/area/limit.rego": rego("limit", deny_when("input.resource.properties.x > 5"))})
    look(reload)

    assert send_to(service, "/v1/admit", change).json()["allowed"] is True
    assert reload.failures == 0


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("bundle/area/limit.rego", "package area.limit\n\ndeny contains {", "limit.rego"),
        ("bundle/area/other.rego", POLICY, "other.rego"),
        ("policyeng.toml", 'fail_on = "loud"\n', "for `fail_on`"),
        ("policyeng.toml", "fail_on = \n", "not valid TOML"),
        ("policyeng.toml", 'exemptions = ["nowhere.yaml"]\n', "nowhere.yaml"),
        ("policyeng.toml", '[parameters."T-A-9"]\nx = 1\n', "T-A-9"),
        ("policyeng.toml", 'select = ["nothing"]\n', "`nothing` is no policy id"),
    ],
)
def test_a_failed_reload_keeps_the_last_good_one_and_reports_it(
    tmp_path: Path, file: str, text: str, fault: str
) -> None:
    """In readiness, which stays: what decides is good; with the option it goes down."""
    reload = reload_of(tmp_path)
    service = server(reload)
    write(tmp_path, {file: text})
    look(reload)
    (ready,) = get_from(service, "/readyz")

    assert (ready.status_code, ready.headers["x-policyeng-degraded"]) == (200, "policies")
    assert ready.json()["ready"] is True
    assert fault in ready.json()["faults"][0]
    assert send_to(service, "/v1/admit", workspace("there", x=2)).json()["allowed"] is False
    strict = service_of(reload.current, unready_on_fault=True)
    strict.setup = reload
    (unready,) = get_from(strict, "/readyz")
    assert (unready.status_code, unready.json()["ready"]) == (503, False)
    assert unready.json()["reasons"][0].startswith("an earlier version is active: policies: ")
    (tmp_path / file).unlink()
    write(tmp_path, {"bundle/area/limit.rego": POLICY})
    look(reload)
    (well,) = get_from(strict, "/readyz")
    assert (well.status_code, "x-policyeng-degraded" in well.headers, reload.failures) == (200, False, 1)


def test_a_faulty_exemption_is_a_bad_reading(tmp_path: Path) -> None:
    """In a run it would be one more problem; here the last good reading still decides."""
    write(tmp_path, {"policyeng.toml": 'exemptions = ["mine.yaml"]\n', "mine.yaml": EXEMPTIONS})
    reload = reload_of(tmp_path)
    write(tmp_path, {"mine.yaml": EXEMPTIONS.replace("approvedBy: b", "approvedBy: a")})
    look(reload)

    assert reload.fault is not None
    assert [each.id for each in reload.current.exemptions] == ["E-1"]
    write(tmp_path, {"policyeng.toml": "fail_on = 1\n"})
    with pytest.raises(UsageError, match="for `fail_on`"):
        reload_of(tmp_path)


def test_a_request_keeps_what_it_began_with(tmp_path: Path) -> None:
    """Although other policies are active before its response."""
    reload = reload_of(tmp_path)
    service = server(reload)
    waiting, go = threading.Event(), threading.Event()

    class Blocked(Watched[SnapshotState]):
        """A state that waits."""

        @property
        def current(self) -> SnapshotState:
            """Once it may."""
            waiting.set()
            assert go.wait(60)
            return super().current

    service.state = Blocked("state", lambda: state_of(since=datetime.now(UTC)), ())
    responses: list[httpx.Response] = []
    requesting = threading.Thread(
        target=lambda: responses.append(send_to(service, "/v1/admit", workspace("there", x=2)))
    )
    requesting.start()
    assert waiting.wait(60)
    before = reload.current.bundle.digest
    write(tmp_path, {"bundle/area/limit.rego": rego("limit", deny_when("input.resource.properties.x > 5"))})
    look(reload)
    go.set()
    requesting.join(20)

    assert (responses[0].json()["bundle"]["digest"], responses[0].json()["allowed"]) == (before, False)
    later = send_to(service, "/v1/admit", workspace("there", x=2)).json()
    assert (later["bundle"]["digest"], later["allowed"]) == (reload.current.bundle.digest, True)
    assert before != reload.current.bundle.digest


def test_the_state_is_read_again_for_other_policies(tmp_path: Path) -> None:
    """They may evaluate other parts of the documents that it is read from."""
    reload = reload_of(tmp_path)
    service = server(reload)
    read: list[bool] = []

    def load() -> SnapshotState:
        read.append(reload.current.bundle.wanted["documents"])
        return state_of(since=datetime.now(UTC))

    service.state = Watched("state", load, ())
    service.watch()
    try:
        of_documents = POLICY.replace("[Microsoft.MachineLearningServices/workspaces]", "[document]")
        write(tmp_path, {"bundle/area/limit.rego": of_documents})
        service.reload()
        ends = time.monotonic() + 60
        while True not in read and time.monotonic() < ends:
            time.sleep(0.01)
    finally:
        service.stop()
    assert (read[0], read[-1]) == (False, True)


def test_a_volume_that_kubernetes_turns_is_read_again(tmp_path: Path) -> None:
    """Its files are links through `..data`, a link to a directory next to it that is replaced in one step."""
    volume = tmp_path / "volume"
    for version, most in (("..v1", 1), ("..v2", 5)):
        text = rego("limit", deny_when(f"input.resource.properties.x > {most}"))
        write(volume, {f"{version}/limit.rego": text, f"{version}/area/values.json": "{}"})
    (volume / "..data").symlink_to("..v1")
    for name in ("limit.rego", "area"):
        (volume / name).symlink_to(f"..data/{name}")
    reload = PolicyReload(
        lambda: resolve({}, {}, tmp_path), lambda given: load_resources((volume,), (), given), (volume,)
    )
    before = reload.current.bundle.digest
    (volume / "..turned").symlink_to("..v2")
    (volume / "..turned").rename(volume / "..data")
    look(reload)

    assert reload.fault is None
    assert reload.current.bundle.digest != before
    assert len(reload.current.bundle.policies) == 1
