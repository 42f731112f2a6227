"""The Containerfiles: linted, from what the repository locks, without rights and without secrets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.container import BASES, CHECK, IGNORED, SERVER, below, environment, final, steps
from tests.container_root import missing, traced, within, written

HADOLINT = Path(sys.executable).with_name("hadolint")
each_file = pytest.mark.parametrize("file", [SERVER, CHECK], ids=lambda file: file.name)


@each_file
def test_the_linter_reports_nothing(file: Path) -> None:
    """None of its rules is switched off."""
    linted = subprocess.run([HADOLINT, "--no-color", file], capture_output=True, text=True, check=False)

    assert (linted.returncode, linted.stdout) == (0, "")
    assert "hadolint" not in file.read_text(encoding="utf-8")


@each_file
def test_it_is_built_from_what_is_locked(file: Path) -> None:
    """Everything that is installed has a hash, or was built from the repository; images have a version."""
    installs = [
        one for step in steps(file) if step.name == "RUN" for one in step.text.split("&&") if " install " in one
    ]
    images = [step.text.split()[0] for step in steps(file) if step.name == "FROM"]

    assert len(installs) == 3
    assert all("--require-hashes" in one or "--no-index --no-deps" in one for one in installs)
    assert [image.partition("@")[0] for image in images] == ["python:3.13-slim-trixie"] * 2
    assert environment(file, 0)["PIP_ONLY_BINARY"] == ":all:"


def test_what_it_copies_is_there_and_let_in() -> None:
    """Nothing else is sent to the builder: no history, no environment of this machine."""
    copies = [step for file in (SERVER, CHECK) for step in steps(file) if step[:2] == (0, "COPY")]
    sources = [word for step in copies for word in step.text.split()[:-1]]
    let_in = {line[1:] for line in IGNORED.read_text(encoding="utf-8").splitlines() if line.startswith("!")}

    assert set(sources) == let_in
    assert all((ROOT / source).exists() for source in sources)
    assert IGNORED.read_text(encoding="utf-8").splitlines()[1] == "*"


@each_file
def test_the_image_runs_without_rights_and_without_a_shell(file: Path) -> None:
    """A user by number, commands as lists, nothing copied but what was built, and no secret in a variable."""
    last = [step for step in steps(file) if step.stage == 1]

    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", final(file, "USER"))
    assert isinstance(json.loads(final(file, "CMD")), list)
    assert not [step for step in last if step.name == "RUN"]
    assert [step.text for step in last if step.name == "COPY"] == ["--from=build /opt/policyeng /opt/policyeng"]
    assert json.loads(final(file, "ENTRYPOINT")) == ["/opt/policyeng/bin/policyeng"]
    assert not re.search(r"token=|password|secret", json.dumps([environment(file, 0), environment(file, 1)]), re.I)


def test_the_image_of_the_server_serves() -> None:
    """On the port that it exposes, where it checks its health."""
    command = json.loads(final(SERVER, "CMD"))
    health = final(SERVER, "HEALTHCHECK").partition(" CMD ")[2]

    assert command[0] == "serve"
    assert isinstance(json.loads(health), list)
    assert final(SERVER, "EXPOSE") == command[4]
    assert f":{command[4]}/healthz" in health


def test_the_image_of_check_has_no_extra() -> None:
    """It checks its directory, listens nowhere, and installs what the package alone requires."""
    installs = [step.text for step in steps(CHECK) if step.name == "RUN"]

    assert json.loads(final(CHECK, "CMD")) == ["check", "."]
    assert not [step for step in steps(CHECK) if step.name in ("EXPOSE", "HEALTHCHECK")]
    assert "--requirement requirements.lock" in installs[0]
    assert "requirements-server.lock" not in "".join(installs)


@each_file
def test_the_size_of_the_base_is_known(file: Path) -> None:
    """Of the digest that is pinned, which `make container-test` adds to the size of what is installed."""
    assert final(file, "FROM").partition("@")[2] in BASES


def test_it_checks_its_health_with_python(tmp_path: Path) -> None:
    """A server that is not there is not healthy."""
    _, *arguments = json.loads(final(SERVER, "HEALTHCHECK").partition(" CMD ")[2])
    result = subprocess.run([sys.executable, *arguments], capture_output=True, check=False, cwd=tmp_path)

    assert result.returncode == 1
    assert b"URLError" in result.stderr


def test_places_are_moved_below_a_folder_alone() -> None:
    """What the steps are run with without an engine for containers."""
    moved = below("/opt/build/bin/python -m x --python /opt/policyeng/bin/python /usr/opt/x", Path("/t"))

    assert moved == "/t/opt/build/bin/python -m x --python /t/opt/policyeng/bin/python /usr/opt/x"


def test_what_is_written_elsewhere_is_read_off_the_calls(tmp_path: Path) -> None:
    """From the start of the program on: not what is read, nor what goes to the folder that it may write."""
    kept, log = tmp_path / "kept", tmp_path / "calls"
    fine = [
        '7 mkdir("/before", 0755) = 0',
        '7 execve("/bin/policyeng", ["policyeng"], 0x7) = 0',
        '7 openat(AT_FDCWD</>, "/usr/lib/x.py", O_RDONLY|O_CLOEXEC) = 3</usr/lib/x.py>',
        f'7 openat(AT_FDCWD</>, "{kept}/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<{kept}/a>',
        f'7 renameat2(AT_FDCWD</>, "{kept}/a", AT_FDCWD</>, "{kept}/b", RENAME_NOREPLACE) = 0',
        '7 openat(AT_FDCWD</>, "/dev/null", O_RDWR) = 3</dev/null>',
    ]
    tried = [
        '8 openat(AT_FDCWD</>, "/tmp/x", O_RDWR|O_CREAT|O_EXCL, 0600) = -1 EROFS (Read-only file system)',
        '8 mkdir("/home/x", 0777) = -1 EROFS (Read-only file system)',
        '8 unlinkat(5</etc>, "y", 0) = -1 EACCES (Permission denied)',
    ]
    log.write_text("\n".join([*fine, *tried]), encoding="utf-8")

    assert list(written(log, "/bin/policyeng", kept)) == tried


@pytest.mark.skipif(not traced(Path()), reason="there is no strace")
def test_the_calls_of_this_machine_are_read(tmp_path: Path) -> None:
    """Those of a program and of what it starts, also where they fail."""
    kept, log, away = tmp_path / "kept", tmp_path / "calls", tmp_path / "nowhere" / "x"
    kept.mkdir()
    script = f"echo > {kept}/a; mv {kept}/a {kept}/b; cat {kept}/b; mkdir {away}; : > {away}"
    subprocess.run([*traced(log), "/bin/sh", "-c", script], capture_output=True, check=False)

    assert [f'"{away}"' in call for call in written(log, "/bin/sh", kept)] == [True, True]


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_root_of_its_own_can_be_written_in_one_folder_alone(tmp_path: Path) -> None:
    """By a user without rights, who finds nothing else of the machine; it has nothing of it afterwards."""
    root, shown, kept = (tmp_path / name for name in ("root", "shown", "kept"))
    for folder in (root, shown, kept):
        folder.mkdir()
    kept.chmod(0o777)
    tried = f"for each in / /tmp {shown} {kept}; do touch $each/a; done"
    command = ["sh", "-c", f"id -u; grep CapEff /proc/self/status; ls /; {tried}"]
    ran = subprocess.run(
        [*within(root, "65532:65532", (shown,), (kept,)), *command], capture_output=True, text=True, check=False
    )
    user, rights, *there = ran.stdout.split("\n")

    assert (user, int(rights.split()[1], 16)) == ("65532", 0)
    assert set(there) == {
        *(name for name in ("bin", "lib", "lib64", "usr") if Path("/", name).exists()),
        "dev",
        "proc",
        "tmp",
        "",
    }
    assert ran.stderr.count("Read-only file system") == 3
    assert (kept / "a").stat().st_uid == 65532
    assert [*root.iterdir(), *shown.iterdir()] == []
