"""The private server: one for a bundle, closed to others, killed with its owner, and missed when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import OpaOptions
from policyeng.engines import opa as engine
from policyeng.engines.opa_bundles import PrivatePlace
from policyeng.errors import EngineError
from policyeng.models import Evaluation, Snapshot
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.opa_servers import listens, until

pytestmark = pytest.mark.slow

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: So much work that no one waits for its end.
ENDLESS = deny_when(
    "n := numbers.range(1, 5000); count([1 | some i in n; some j in n; some k in n; i * j == k + 1]) > 0"
)


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    """No server outlives its test."""
    yield
    engine.close()


def small(folder: Path, body: str = "") -> Bundle:
    """A bundle of one policy."""
    return load_bundle(write(folder, {"area/p.rego": rego("p", body or deny_when("true"))}))


def evaluated(bundle: Bundle, options: OpaOptions, shot: Snapshot | None = None) -> Evaluation:
    """By OPA."""
    return evaluate(bundle, shot or snapshot(workspace()), as_of=AS_OF, engine="opa", opa=options)


def servers() -> list[PrivatePlace]:
    """Those that run, the last used one last."""
    return [place for place in engine._places.values() if isinstance(place, PrivatePlace)]


def runs(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processor_ticks(pid: int) -> int:
    """Time that a process has spent."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11])


def test_one_server_for_a_bundle_and_it_ends_on_request(tmp_path: Path, opa: Path) -> None:
    """However many snapshots and selections of policies."""
    bundle, options = small(tmp_path), OpaOptions(binary=opa)
    evaluated(bundle, options)
    evaluated(bundle.only(bundle.policies), options)
    [place] = servers()

    engine.close()

    until(lambda: not runs(place.server.pid))  # it closes its pipes a moment before it is gone
    assert not servers()


def test_servers_of_bundles_that_are_not_used_any_more_end(tmp_path: Path, opa: Path) -> None:
    """The last four stay."""
    started = []
    for number in range(6):
        evaluated(small(tmp_path / str(number), deny_when(f"{number} > 0")), OpaOptions(binary=opa))
        started.append(servers()[-1].server.pid)

    assert [runs(pid) for pid in started] == [False, False, True, True, True, True]


def test_no_one_else_may_query_it(tmp_path: Path, opa: Path) -> None:
    """It listens on loopback, and only who has its token gets a response."""
    evaluated(small(tmp_path), OpaOptions(binary=opa))
    url = servers()[0].connection.url

    assert url.startswith("http://127.0.0.1:")
    for path in ("/v1/data", "/v1/policies", "/metrics"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}{path}")  # noqa: S310  # our own server


def test_killed_between_two_snapshots_it_is_started_anew(tmp_path: Path, opa: Path) -> None:
    """Nothing was lost that we need."""
    bundle, options = small(tmp_path), OpaOptions(binary=opa)
    evaluated(bundle, options)
    [first] = servers()
    os.kill(first.server.pid, signal.SIGKILL)
    until(lambda: not first.alive)

    assert evaluated(bundle, options).summary.fail == 1
    assert servers()[0].server.pid != first.server.pid


def test_killed_half_way_through_a_batch(tmp_path: Path, opa: Path) -> None:
    """The snapshot could not be decided."""
    bundle = small(tmp_path, ENDLESS)
    raised: list[BaseException] = []

    def evaluating() -> None:
        try:
            evaluated(bundle, OpaOptions(binary=opa))
        except EngineError as error:
            raised.append(error)

    thread = threading.Thread(target=evaluating)
    thread.start()
    until(lambda: bool(servers()))
    pid = servers()[0].server.pid
    before = processor_ticks(pid)
    until(lambda: processor_ticks(pid) > before + 20)
    os.kill(pid, signal.SIGKILL)
    thread.join()

    assert "could not decide with the OPA server: the connection fails" in str(raised[0])
    assert not servers()


def test_a_batch_that_takes_too_long(tmp_path: Path, opa: Path) -> None:
    """The time is up for the snapshot, and the server, which may still be busy with it, ends."""
    with pytest.raises(EngineError, match="it does not respond in time"):
        evaluated(small(tmp_path, ENDLESS), OpaOptions(binary=opa, timeout=2))

    assert not servers()


#: What is started in the background ignores SIGINT, unless it is set otherwise.
PROGRAM = """\
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from policyeng import load_bundle
from policyeng.engines import OpaOptions, opa
from policyeng import evaluate
from tests.bundles import snapshot, workspace
signal.signal(signal.SIGINT, signal.default_int_handler)
options = OpaOptions(binary=Path(sys.argv[2]))
evaluate(load_bundle(sys.argv[1]), snapshot(workspace()), as_of=datetime.now(UTC), engine="opa", opa=options)
print(next(iter(opa._places.values())).server.pid, flush=True)
if sys.argv[3] == "raise":
    raise RuntimeError
if sys.argv[3] == "wait":
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["return", "raise", "SIGINT", "SIGTERM", "SIGKILL"])
def test_it_ends_with_the_process_that_started_it(tmp_path: Path, opa: Path, root: Path, end: str) -> None:
    """In whatever way that ends."""
    small(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(opa), "wait" if end.startswith("SIG") else end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        if end.startswith("SIG"):
            assert runs(pid)
            process.send_signal(signal.Signals[end])
        process.wait(timeout=60)

    until(lambda: not runs(pid))


#: A shell that was killed is missed by none of these, and waited for by none.
LOSING_ITS_SHELL = """
import os, signal
[place] = opa._places.values()
os.kill(place.server._guard.pid, signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["return", "raise"])
def test_it_ends_although_its_shell_was_killed(tmp_path: Path, opa: Path, root: Path, end: str) -> None:
    """Without waiting for a pipe that is not closed."""
    small(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("if sys", f"{LOSING_ITS_SHELL}if sys", 1), str(tmp_path), str(opa), end],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
        timeout=60,
    )

    until(lambda: not runs(int(ran.stdout)))
    assert ran.returncode == (0 if end == "return" else 1)


def test_it_ends_as_soon_as_its_shell_is_killed(tmp_path: Path, opa: Path) -> None:
    """Nothing would end it if its owner were killed too; the next snapshot has a new one."""
    bundle, options = small(tmp_path), OpaOptions(binary=opa)
    evaluated(bundle, options)
    [first] = servers()
    os.kill(first.server._guard.pid, signal.SIGKILL)
    until(lambda: not runs(first.server.pid))
    until(lambda: not first.alive)

    assert evaluated(bundle, options).summary.fail == 1
    assert servers()[0].server.pid != first.server.pid


def test_a_program_that_starts_another_leaves_none(tmp_path: Path, opa: Path) -> None:
    """All of the group ends, not only what the shell has started itself."""
    program = tmp_path / "opa"
    program.write_text(f'#!/bin/sh\n"{opa}" "$@" &\necho $! > "{tmp_path}/pid"\nwait\n', encoding="utf-8")
    program.chmod(0o755)
    assert evaluated(small(tmp_path / "p"), OpaOptions(binary=program)).summary.fail == 1
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert runs(pid)

    engine.close()

    until(lambda: not runs(pid))


def test_killed_at_its_start_the_folder_goes_too(tmp_path: Path, root: Path) -> None:
    """The token and the policies stay nowhere; the program here never responds."""
    small(tmp_path / "p")
    program, temporary = tmp_path / "opa", tmp_path / "tmp"
    program.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec sleep 600\n', encoding="utf-8")
    program.chmod(0o755)
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "p"), str(program), "return"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(temporary)},
    ) as process:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="utf-8").endswith("\n"))
        assert list(temporary.iterdir())
        process.kill()

    until(lambda: not list(temporary.iterdir()))
    until(lambda: not runs(int((tmp_path / "pid").read_text(encoding="utf-8"))))


def test_no_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy names all ways out."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(EngineError, match=r"no `opa` program found.*install OPA.*`--opa-binary`.*`--opa-url`"):
        evaluated(small(tmp_path), OpaOptions())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "no such program; name an executable `opa` program"),
        ("exit 3", "the private OPA server does not start: it ended without a message"),
        ("echo 'Error: boom' >&2; exit 1", "the private OPA server does not start: Error: boom"),
    ],
)
def test_a_program_that_is_no_opa(tmp_path: Path, script: str | None, message: str) -> None:
    """The end of its output is the reason."""
    program = tmp_path / "opa"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        evaluated(small(tmp_path / "p"), OpaOptions(binary=program))

    assert message in str(caught.value)


def test_a_bundle_that_opa_does_not_take(tmp_path: Path, opa: Path) -> None:
    """Its own words, with the place."""
    with pytest.raises(EngineError, match=r"does not start: .*area/p\.rego:10.*lib_missing"):
        evaluated(small(tmp_path, deny_when("lib_missing(1)")), OpaOptions(binary=opa))


def test_the_port_of_another_is_given_up(tmp_path: Path, opa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is taken in the meantime is no verdict and no failure: another one is tried."""
    evaluated(small(tmp_path / "a"), OpaOptions(binary=opa))
    taken = int(servers()[0].connection.url.rpartition(":")[2])
    ports = iter([taken, taken])
    from policyeng.engines import opa_server

    free_port = opa_server._find_free_port
    monkeypatch.setattr(opa_server, "_find_free_port", lambda: next(ports, None) or free_port())

    assert evaluated(small(tmp_path / "b", deny_when("1 > 0")), OpaOptions(binary=opa)).summary.fail == 1
    assert listens(taken)


def test_threads_share_a_server(tmp_path: Path, opa: Path) -> None:
    """Each gets the verdicts of its own snapshot."""
    from concurrent.futures import ThreadPoolExecutor

    bundle, options = small(tmp_path), OpaOptions(binary=opa)
    with ThreadPoolExecutor(4) as pool:
        runs_of = [
            pool.submit(evaluated, bundle, options, snapshot(*(workspace(f"w{n}") for n in range(count))))
            for count in range(1, 9)
        ]

    assert [run.result().summary.fail for run in runs_of] == list(range(1, 9))
    assert len(servers()) == 1
