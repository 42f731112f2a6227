"""The embedded engine, in a process of its own that is started again when a case brings it down."""

import json
import select
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from conformance.cases import RULE, Case
from conformance.values import Answer, exact

_SECONDS = 60


class Embedded:
    """The program `native/examples/conformance.rs`."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def answer(self, case: Case, *, interpreter: bool) -> Answer:
        """What the engine says of a case; a fault `refused` when it does not compile, `crash` when the process ends."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  they are pipes
        question = {
            "modules": case.modules,
            "facts": case.facts,
            "input": case.document,
            "term": case.term,
            "rule": RULE,
            "interpreter": interpreter,
        }
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else b""
        if not line:
            self._end()
            return Answer(fault=("crash", "the engine's process ended" if ready else f"no answer in {_SECONDS} s"))
        said = json.loads(line)
        if "refused" in said:
            return Answer(fault=("refused", said["refused"]))
        engine, why = said.get("engine", ""), said.get("why", "")
        if "fault" in said:
            return Answer(fault=tuple(said["fault"]), engine=engine, why=why)
        return Answer(rows=exact(said["value"]) if "value" in said else None, engine=engine, why=why)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
