"""The command line as a path of judging: a process in a directory and an environment that hold nothing else."""

from __future__ import annotations

import os
import subprocess  # the command line is a process of its own
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import policyeng
from policyeng.models import JsonObject
from tests.laws.asked import Answer, Asked

#: Seconds that a process has for one estate.
_PATIENCE = 600
#: What Python needs of its environment to start, and to find what it keeps; no policy has any business with the rest.
_NEEDED = (
    "DYLD_LIBRARY_PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "PATH",
    "POLICYENG_CACHE_DIR",
    "PYTHONHOME",
    "PYTHONPATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USERPROFILE",
    "XDG_CACHE_HOME",
)
#: A machine elsewhere, where sets are in another order, too.
_ELSEWHERE = {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"}


def checked(asked: Asked, given: str, *more: str) -> Answer | None:
    """What `policyeng check` says of a file, or of standard input."""
    if asked.naming is None:
        return None
    ended = _ended(asked, "check", *_judging(asked), "--format", "json", *more, given)
    return _answer(asked, ended.stdout, ended)


def audited(asked: Asked) -> Answer | None:
    """What is in the store after `policyeng audit run`, which keeps no places but those of resources."""
    if asked.naming is None or not can_audit():
        return None
    store = ("--store", f"sqlite:///{asked.folder / 'audits.db'}")
    ended = _ended(asked, "audit run", *_judging(asked), "--input", str(asked.file), "--estate", "law", *store)
    report = _ended(asked, "audit report", "--format", "json", *store)
    named = report.stdout.replace(f'"{asked.file.name}'.encode(), b'"<stdin>')  # the part, which is no path
    answer = asked.placed(_answer(asked, named, ended))
    # What concerns exemptions is said of the whole run, before what is said of its parts.
    return replace(answer, problems=sorted(answer.problems or (), key=_is_of_exemption))


def _is_of_exemption(problem: JsonObject) -> bool:
    return str(problem.get("place")).startswith("exemption ")


def can_audit() -> bool:
    """Whether the libraries of audits are installed."""
    return all(find_spec(name) for name in ("sqlalchemy", "alembic"))


def _judging(asked: Asked) -> Sequence[str]:
    words = [*(asked.naming or ()), "--as-of", asked.trial.example.as_of.isoformat()]
    return [*words, "--exemptions", str(asked.folder / "exemptions.json")] if asked.exemptions else words


def _ended(asked: Asked, command: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    sources = os.pathsep.join(filter(None, [str(Path(policyeng.__file__).parents[1]), kept.get("PYTHONPATH")]))
    return subprocess.run(  # our own command line, with files that we wrote
        [sys.executable, "-P", "-m", "policyeng", *command.split(), *words],
        input=asked.file.read_bytes() if words[-1] == "-" else b"",
        capture_output=True,
        cwd=asked.folder,
        env={**kept, **_ELSEWHERE, "PYTHONPATH": sources},
        timeout=_PATIENCE,
        check=False,
    )


def _answer(asked: Asked, report: bytes, ended: subprocess.CompletedProcess[bytes]) -> Answer:
    try:
        return asked.answer(report.decode(), ended.returncode)
    except (KeyError, ValueError):
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        return Answer({}, [{"message": said[-1] if said else "nothing"}], ended.returncode)
