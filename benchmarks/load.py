"""Requests at a constant rate, however long responses take, by k6; each is compared with the expected one."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

_SCRIPT = Path(__file__).with_name("load.js")
#: Seconds after which a request without a response is lost.
PATIENCE = 30
_NO_TALK = {"K6_NO_USAGE_REPORT": "true", "K6_AUTO_EXTENSION_RESOLUTION": "false"}


@dataclass(frozen=True, slots=True)
class Request:
    """A body to send, and the text that the body of the right answer ends with."""

    body: bytes
    says: str


@dataclass(frozen=True, slots=True)
class Phase:
    """A constant rate for some seconds.

    Attributes:
        rate: requests in a second.
        seconds: how long.
        start: after how many seconds of the run.
        most: requests that may be under way at a time; what would go beyond is not sent.
    """

    name: str
    rate: float
    seconds: float
    most: int
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds from the moment a request was due to its answer; None where there was none.

    Attributes:
        count: of answers.
    """

    count: int
    p50: float | None
    p99: float | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a phase.

    Attributes:
        right, wrong: 200 with the expected answer and with another.
        refused: 429 and 503.
        other: any other status.
        lost: no answer.
        unsent: as many were under way as may be.
    """

    rate: float
    seconds: float
    right: Times
    wrong: int
    refused: Times
    other: int
    lost: int
    unsent: int

    @property
    def whole(self) -> bool:
        """Whether every request was sent, and answered rightly."""
        return self.right.count > 0 and not (self.wrong or self.refused.count or self.other or self.lost or self.unsent)


class Generator(Protocol):
    """What sends requests."""

    def run(self, url: str, requests: Sequence[Request], *phases: Phase) -> list[Load]:
        """Send the requests in turn, and return the result of each phase."""


@dataclass(frozen=True, slots=True)
class K6:
    """k6, a process for each run.

    Attributes:
        program: the binary.
        folder: for what it reads and writes.
    """

    program: Path
    folder: Path

    def run(self, url: str, requests: Sequence[Request], *phases: Phase) -> list[Load]:
        """Send the requests in turn, and return the result of each phase.

        Raises:
            RuntimeError: k6 could not run it.
        """
        plan, summary = self.folder / "plan.json", self.folder / "summary.json"
        summary.unlink(missing_ok=True)
        given = [{"body": each.body.decode(), "says": each.says} for each in requests]
        plan.write_bytes(orjson.dumps({"url": url, "timeout": PATIENCE, "requests": given, "phases": list(phases)}))
        flags = ("--quiet", "--no-usage-report", "--no-color", "--address", "", "--log-output", "none")
        environ = {**os.environ, **_NO_TALK, "PLAN": str(plan), "SUMMARY": str(summary)}
        ran = subprocess.run([self.program, "run", *flags, _SCRIPT], env=environ, capture_output=True, check=False)
        if ran.returncode or not summary.exists():
            raise RuntimeError(f"k6 ended with {ran.returncode}: {(ran.stderr or ran.stdout)[-500:]!r}")
        metrics = orjson.loads(summary.read_bytes())
        return [load_of(metrics, phase) for phase in phases]


def load_of(metrics: Mapping[str, Any], phase: Phase) -> Load:
    """Return the counts of k6 for a phase; k6 leaves out a metric without values or gives it zeros."""

    def times(kind: str) -> Times:
        values = metrics.get(f"{phase.name}_{kind}", {}).get("values", {})
        count = int(values.get("count", 0))
        p50, p99, longest = (values[key] if count else None for key in ("med", "p(99)", "max"))
        return Times(count, p50, p99, longest)

    dropped = metrics.get(f"dropped_iterations{{scenario:{phase.name}}}", {}).get("values", {}).get("count", 0)
    return Load(
        phase.rate,
        phase.seconds,
        right=times("right"),
        wrong=times("wrong").count,
        refused=times("refused"),
        other=times("other").count,
        lost=times("lost").count,
        unsent=int(dropped),
    )


def places(rate: float, limit: float) -> int:
    """How many requests may be under way at a rate while a limit in seconds is kept, with some to spare."""
    return max(10, math.ceil(3 * rate * limit))
