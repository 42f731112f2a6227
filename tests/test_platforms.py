"""A platform without `fcntl`, forks and owners of files, as Windows: what needs them reports it, and the rest works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

#: Takes away what Windows lacks and a program here can do without, then runs the command line.
_WITHOUT = """
import os, signal, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getuid", "register_at_fork", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
             "pipe2", "fchmod", "killpg", "setsid", "sched_getaffinity"):
    delattr(os, name)
for name in ("SIGHUP", "pthread_sigmask", "SIGALRM", "SIG_BLOCK", "SIG_SETMASK"):
    delattr(signal, name)
from policyeng.cli import main
sys.argv[0] = "policyeng"
main()
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line there, with what it would keep in a folder of the test."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    line = [sys.executable, "-c", _WITHOUT, *words]
    return subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_checks_work(tmp_path: Path, jobs: str) -> None:
    """With the same report as anywhere else; nothing is cached, because owners cannot be compared."""
    sample = str(ROOT / "samples" / "workspaces" / "regulated.json")
    words = ("check", sample, sample, "--jobs", jobs, "--format", "json", "--as-of", "2026-06-01T00:00:00Z")
    here = [sys.executable, "-m", "policyeng", *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    expected = subprocess.run(here, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    ran = run(tmp_path, *words)

    assert (ran.returncode, ran.stderr) == (expected.returncode, expected.stderr)
    assert ran.stdout == expected.stdout
    assert ran.returncode == 1
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("serve", "--port", "0"), "`policyeng serve`"),
        (("audit", "schedule"), "`policyeng audit schedule`"),
        (
            ("audit", "run", "--input", str(ROOT / "samples/workspaces/compliant.json"), "--estate", "e"),
            "a SQLite audit",
        ),
    ],
)
def test_what_needs_posix_is_marked(tmp_path: Path, words: tuple[str, ...], what: str) -> None:
    """In one line with a remedy."""
    ran = run(tmp_path, *words)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.count("\n") == 1
    assert what in ran.stderr
    assert "requires a POSIX platform such as Linux or macOS; " in ran.stderr
