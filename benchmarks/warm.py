"""The warm policyeng as a contestant."""

from __future__ import annotations

import json
import subprocess
from collections import Counter

from benchmarks.estates import ROOT
from benchmarks.family import cpu_seconds
from benchmarks.preparing import Prepared
from benchmarks.verdicts import Verdicts
from benchmarks.worker import command


class Warm:
    """One task of a worker: end to end, the engine alone, or a measure of parsing."""

    sample: int | None = None

    def __init__(self, name: str, kind: str, made: Prepared, jobs: int) -> None:
        self.name = name
        self._kind = kind
        self._made = made
        self._process = subprocess.Popen(
            command(kind, made, jobs), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def _query(self, question: str) -> object:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the worker has no pipes")
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        answer: object = json.loads(self._process.stdout.readline())
        return answer

    def verdicts(self) -> Verdicts | None:
        """Return the verdicts of an evaluation; the others are compared with the engine alone."""
        answer = self._query("verdicts")
        if not isinstance(answer, list):
            return None
        statements, decided = answer
        return Verdicts(Counter({tuple(parts): count for *parts, count in statements}), decided)

    def expected(self) -> Verdicts | None:
        """Return the verdicts of the engine alone."""
        return self._made.expected() if self._kind in {"end to end", "through opa"} else None

    def run(self) -> float:
        """Seconds as the worker measures them."""
        return float(str(self._query("run")))

    def processor(self) -> float:
        """Seconds of processors of the worker and of what it starts."""
        return cpu_seconds(self._process.pid)

    def peak_mb(self) -> float:
        """Return the peak memory of the worker."""
        return float(str(self._query("peak")))

    def close(self) -> None:
        """End the worker."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()
