"""Kill audits and retention as `kill -9` does, and see what the store is like: `python -m tests.killing sqlite 50 1`.

Each is a process of its own, killed after a random time, or by itself before a random statement or commit. The parts
of the estate change from run to run, and contents are written after each part, so that something is always under way.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine, event

from policyeng.audit.store import store as run_writer
from policyeng.audit.store.integrity import prune, verify
from policyeng.audit.store.store import Store
from tests.audits import Audited
from tests.databases import running

ROOT = Path(__file__).resolve().parents[1]
#: Parts of the estate that is audited.
PARTS = 8
#: Of the processes that are killed, so many are audits; the others take away what is old.
AUDITS = 0.8


@dataclass
class Kills:
    """What came of killing.

    Attributes:
        ways: how often a process was killed, by what it did and how.
        ended: how many processes ended before they were killed.
        became_visible: how many audits had made their run visible when they were killed.
        unused: the most contents that a kill left behind.
    """

    ways: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    became_visible: int = 0
    unused: int = 0


class Killing:
    """An estate, its store, and the processes that are killed at work on it."""

    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self.audited = Audited(folder, url)
        self.chance = random.Random(seed)
        self._change()
        self._undisturbed("audit")
        self.lengths = {work: self._undisturbed(work) for work in ("audit", "prune")}

    def close(self) -> None:
        """Close the store."""
        self.audited.close()

    def kill(self, kills: Kills) -> None:
        """Kill one process, and compare the store with what it was."""
        work = "audit" if self.chance.random() < AUDITS else "prune"
        before = hashes_of(self.audited.store)
        self._change()
        by_time = self.chance.random() < 0.5
        statements, seconds = self.lengths[work]
        at = 0 if by_time else self.chance.randint(1, statements)
        child = self._child(work, at)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if by_time:
            time.sleep(self.chance.uniform(0, 1.1 * seconds))
            child.send_signal(signal.SIGKILL)
        child.communicate()
        killed = child.returncode == -signal.SIGKILL
        assert killed or child.returncode == 0
        kills.ways[f"{work}, at a random {'time' if by_time else 'statement'}"] += killed
        kills.ended += not killed
        self._check(before, work, kills)

    def _check(self, before: Sequence[str], work: str, kills: Kills) -> None:
        """No earlier run is lost, there is no half run, and everything verifies."""
        after = hashes_of(self.audited.store)
        assert after[: len(before)] == before
        assert len(after) <= len(before) + (work == "audit")
        kills.became_visible += len(after) - len(before)
        verified = verify(self.audited.store)
        assert verified.faults == []
        kills.unused = max(kills.unused, verified.unused)

    def settle(self) -> None:
        """One more audit and retention go through, and nothing is left of what was killed."""
        before = len(hashes_of(self.audited.store))
        self._change()
        self.audited.audit()
        assert len(hashes_of(self.audited.store)) == before + 1
        prune(self.audited.store, now=datetime.now(UTC), keep_runs=2)
        verified = verify(self.audited.store)
        assert (verified.faults, verified.unused) == ([], 0)

    def _change(self) -> None:
        for part in range(PARTS):
            name = f"{self.chance.randrange(1 << 30)}"
            self.audited.put(f"part-{part}", {name: {"x": self.chance.randint(0, 1)}})

    def _undisturbed(self, work: str) -> tuple[int, float]:
        """The statements and commits of a process that is not killed, and how many seconds they take."""
        output, _ = self._child(work, 0).communicate()
        _, statements, seconds = output.split()
        return int(statements), float(seconds)

    def _child(self, work: str, at: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.killing", work, str(self.audited.folder), self.audited.url, str(at)]
        return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def hashes_of(store: Store) -> list[str]:
    """The hashes of all runs."""
    return [run.hash for run in store.runs("production")]


def work_on(work: str, folder: Path, url: str, at: int) -> None:
    """What a process does that is killed: by itself before the statement or commit of that number, from 1."""
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    run_writer._BATCH = 1
    audited = Audited(folder, url, fresh=False)
    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, tick)
    print("ready", flush=True)
    began = time.monotonic()
    if work == "audit":
        audited.audit()
    else:
        prune(audited.store, now=datetime.now(UTC), keep_runs=1)
    print(count, time.monotonic() - began, flush=True)
    audited.close()


def main(kind: str, count: int, seed: int) -> None:
    """Kill so many processes at work on a database of that kind, and print what came of it."""
    kills = Kills()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        url = "" if kind == "sqlite" else stack.enter_context(running()).database()
        killing = Killing(folder, url, seed)
        while sum(kills.ways.values()) < count:
            killing.kill(kills)
            if sum(kills.ways.values()) % 10 == 0:
                killing.settle()
        killing.settle()
        runs = len(hashes_of(killing.audited.store))
        killing.close()
    print(
        f"{kind}: {sum(kills.ways.values())} kills: {', '.join(f'{n} {way}' for way, n in sorted(kills.ways.items()))}"
    )
    print(f"  {kills.ended} processes ended first; of {runs} runs {kills.became_visible} are of processes to be killed")
    print(f"  runs lost 0, half runs 0, faults 0; contents left behind by a kill: at most {kills.unused}")


if __name__ == "__main__":
    if sys.argv[1] in ("audit", "prune"):
        work_on(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
