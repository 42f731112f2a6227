"""What is in force is read again with all that it comes from, and requests keep what they began with."""

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
from tests.servers import POLICY, asked, got, look, service_of, standing

EXEMPTIONS = """\
exemptions:
- {id: E-1, policy: T-A-1, scope: /subscriptions/s, category: waiver, reason: r, owner: a, approvedBy: b,
   createdAt: 2026-01-01T00:00:00Z, expiresAt: "2026-12-31T00:00:00Z"}
"""


def holding_of(folder: Path, seconds: float = 2.0) -> PolicyReload:
    """What is in force of a bundle, as the configuration of a folder says."""
    policies = (folder / "bundle",)
    write(folder, {"bundle/area/limit.rego": POLICY})
    paths = (*policies, *candidates(folder))
    return PolicyReload(
        lambda: resolve({}, {}, folder), lambda given: load_resources(policies, (), given), paths, seconds=seconds
    )


def server(holding: PolicyReload) -> Service:
    """A server with it."""
    service = service_of(holding.current, standing(since=datetime.now(UTC)))
    service.setup = holding
    return service


def test_policies_settings_and_exemptions_are_read_again(tmp_path: Path) -> None:
    """Also those that only a new configuration names."""
    holding = holding_of(tmp_path)
    service = server(holding)
    change = workspace("there", x=2)
    assert asked(service, "/v1/admit", change).json()["allowed"] is False
    write(tmp_path, {"policyeng.toml": 'fail_on = "critical"\n'})
    look(holding)
    assert asked(service, "/v1/admit", change).json()["allowed"] is True
    write(tmp_path, {"policyeng.toml": 'exemptions = ["mine.yaml"]\n', "mine.yaml": EXEMPTIONS})
    look(holding)
    assert [each["policy"] for each in asked(service, "/v1/admit", change).json()["exempted"]] == ["T-A-1"]
    write(tmp_path, {"mine.yaml": "exemptions: []\n"})
    look(holding)
    assert asked(service, "/v1/admit", change).json()["allowed"] is False
    write(tmp_path, {"bundle/area/limit.rego": rego("limit", deny_when("input.resource.properties.x > 5"))})
    look(holding)

    assert asked(service, "/v1/admit", change).json()["allowed"] is True
    assert holding.failures == 0


@pytest.mark.parametrize(
    ("file", "text", "said"),
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
def test_a_bad_reading_keeps_the_last_good_one_and_says_so(tmp_path: Path, file: str, text: str, said: str) -> None:
    """In readiness, which stays: what decides is good; with the option it goes down."""
    holding = holding_of(tmp_path)
    service = server(holding)
    write(tmp_path, {file: text})
    look(holding)
    (ready,) = got(service, "/readyz")

    assert (ready.status_code, ready.headers["x-policyeng-degraded"]) == (200, "policies")
    assert ready.json()["ready"] is True
    assert said in ready.json()["faults"][0]
    assert asked(service, "/v1/admit", workspace("there", x=2)).json()["allowed"] is False
    strict = service_of(holding.current, unready_on_fault=True)
    strict.setup = holding
    (unready,) = got(strict, "/readyz")
    assert (unready.status_code, unready.json()["ready"]) == (503, False)
    assert unready.json()["reasons"][0].startswith("an earlier version is active: policies: ")
    (tmp_path / file).unlink()
    write(tmp_path, {"bundle/area/limit.rego": POLICY})
    look(holding)
    (well,) = got(strict, "/readyz")
    assert (well.status_code, "x-policyeng-degraded" in well.headers, holding.failures) == (200, False, 1)


def test_a_faulty_exemption_is_a_bad_reading(tmp_path: Path) -> None:
    """In a run it would be a problem beside the others; here the last good reading is there to decide by."""
    write(tmp_path, {"policyeng.toml": 'exemptions = ["mine.yaml"]\n', "mine.yaml": EXEMPTIONS})
    holding = holding_of(tmp_path)
    write(tmp_path, {"mine.yaml": EXEMPTIONS.replace("approvedBy: b", "approvedBy: a")})
    look(holding)

    assert holding.fault is not None
    assert [each.id for each in holding.current.exemptions] == ["E-1"]
    write(tmp_path, {"policyeng.toml": "fail_on = 1\n"})
    with pytest.raises(UsageError, match="for `fail_on`"):
        holding_of(tmp_path)


def test_a_request_keeps_what_it_began_with(tmp_path: Path) -> None:
    """Though other policies are in force before it is answered."""
    holding = holding_of(tmp_path)
    service = server(holding)
    waiting, go = threading.Event(), threading.Event()

    class Held(Watched[SnapshotState]):
        """A state that waits."""

        @property
        def current(self) -> SnapshotState:
            """Once it may."""
            waiting.set()
            assert go.wait(60)
            return super().current

    service.state = Held("state", lambda: standing(since=datetime.now(UTC)), ())
    said: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: said.append(asked(service, "/v1/admit", workspace("there", x=2))))
    asking.start()
    assert waiting.wait(60)
    before = holding.current.bundle.digest
    write(tmp_path, {"bundle/area/limit.rego": rego("limit", deny_when("input.resource.properties.x > 5"))})
    look(holding)
    go.set()
    asking.join(20)

    assert (said[0].json()["bundle"]["digest"], said[0].json()["allowed"]) == (before, False)
    later = asked(service, "/v1/admit", workspace("there", x=2)).json()
    assert (later["bundle"]["digest"], later["allowed"]) == (holding.current.bundle.digest, True)
    assert before != holding.current.bundle.digest


def test_the_state_is_read_again_for_other_policies(tmp_path: Path) -> None:
    """They may judge other parts of the documents that it is read from."""
    holding = holding_of(tmp_path)
    service = server(holding)
    read: list[bool] = []

    def load() -> SnapshotState:
        read.append(holding.current.bundle.wanted["documents"])
        return standing(since=datetime.now(UTC))

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
    """Its files are links through `..data`, a link to a directory beside it that is replaced in one step."""
    volume = tmp_path / "volume"
    for version, most in (("..v1", 1), ("..v2", 5)):
        text = rego("limit", deny_when(f"input.resource.properties.x > {most}"))
        write(volume, {f"{version}/limit.rego": text, f"{version}/area/values.json": "{}"})
    (volume / "..data").symlink_to("..v1")
    for name in ("limit.rego", "area"):
        (volume / name).symlink_to(f"..data/{name}")
    holding = PolicyReload(
        lambda: resolve({}, {}, tmp_path), lambda given: load_resources((volume,), (), given), (volume,)
    )
    before = holding.current.bundle.digest
    (volume / "..turned").symlink_to("..v2")
    (volume / "..turned").rename(volume / "..data")
    look(holding)

    assert holding.fault is None
    assert holding.current.bundle.digest != before
    assert len(holding.current.bundle.policies) == 1
