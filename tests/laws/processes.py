"""The command line as a path of evaluation: a process in a directory and an environment with nothing else."""

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
from tests.laws.queries import PathResult, Query

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


def checked(query: Query, given: str, *more: str) -> PathResult | None:
    """The output of `policyeng check` for a file, or for standard input."""
    if query.naming is None:
        return None
    ended = _ended(query, "check", *_options(query), "--format", "json", *more, given)
    return _result(query, ended.stdout, ended)


def audited(query: Query) -> PathResult | None:
    """What is in the store after `policyeng audit run`, which keeps no places but those of resources."""
    if query.naming is None or not can_audit():
        return None
    store = ("--store", f"sqlite:///{query.folder / 'audits.db'}")
    ended = _ended(query, "audit run", *_options(query), "--input", str(query.file), "--estate", "law", *store)
    report = _ended(query, "audit report", "--format", "json", *store)
    named = report.stdout.replace(f'"{query.file.name}'.encode(), b'"<stdin>')  # the part, which is no path
    result = query.placed(_result(query, named, ended))
    # Problems of exemptions are of the whole run, and come before those of its parts.
    return replace(result, problems=sorted(result.problems or (), key=_is_of_exemption))


def _is_of_exemption(problem: JsonObject) -> bool:
    return str(problem.get("place")).startswith("exemption ")


def can_audit() -> bool:
    """Whether the libraries of audits are installed."""
    return all(find_spec(name) for name in ("sqlalchemy", "alembic"))


def _options(query: Query) -> Sequence[str]:
    words = [*(query.naming or ()), "--as-of", query.trial.example.as_of.isoformat()]
    return [*words, "--exemptions", str(query.folder / "exemptions.json")] if query.exemptions else words


def _ended(query: Query, command: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    sources = os.pathsep.join(filter(None, [str(Path(policyeng.__file__).parents[1]), kept.get("PYTHONPATH")]))
    return subprocess.run(  # our own command line, with files that we wrote
        [sys.executable, "-P", "-m", "policyeng", *command.split(), *words],
        input=query.file.read_bytes() if words[-1] == "-" else b"",
        capture_output=True,
        cwd=query.folder,
        env={**kept, **_ELSEWHERE, "PYTHONPATH": sources},
        timeout=_PATIENCE,
        check=False,
    )


def _result(query: Query, report: bytes, ended: subprocess.CompletedProcess[bytes]) -> PathResult:
    try:
        return query.result(report.decode(), ended.returncode)
    except (KeyError, ValueError):
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return PathResult({}, [{"message": lines[-1] if lines else "nothing"}], ended.returncode)
