"""Contestants that are whole processes, from their start to their end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.preparing import Prepared
from benchmarks.verdicts import Verdicts


class Launcher:
    """A small process that starts the others and measures them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "printed"
        program = Path(__file__).with_name("launcher.py")
        # Installed packages have their bytecode, which the first run of each command writes otherwise.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, command: Sequence[str], expected: Sequence[int] = (0,)) -> tuple[float, float, float]:
        """Run a command to its end in the folder; give seconds, seconds of processors and peak memory in MB.

        Raises:
            RuntimeError: its exit code is not an expected one.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the launcher has no pipes")
        self._process.stdin.write(json.dumps([str(self.folder), str(self.output), *command]) + "\n")
        self._process.stdin.flush()
        seconds, processor, peak, code = json.loads(self._process.stdout.readline())
        if code not in expected:
            raise RuntimeError(f"{command[0]} ended with {code}: {self.printed()[-500:].decode(errors='replace')}")
        return seconds, processor, peak / 1024

    def printed(self) -> bytes:
        """Return the output of the last command."""
        return self.output.read_bytes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass
class WholeProcess:
    """A command that evaluates a snapshot, and how its verdicts are read from what it prints."""

    name: str
    launcher: Launcher
    made: Prepared | None
    command: Sequence[str]
    read: Callable[[bytes], Verdicts] | None = None
    codes: Sequence[int] = (0,)
    sample: int | None = None
    _peaks: list[float] = field(default_factory=list)
    _processor: float = 0.0

    def verdicts(self) -> Verdicts | None:
        """Run it and read what it prints."""
        self.run()
        return self.read(self.launcher.printed()) if self.read else None

    def expected(self) -> Verdicts | None:
        """Return the verdicts of policyeng's engine."""
        return self.made.expected() if self.made else None

    def run(self) -> float:
        """Seconds from start to end."""
        seconds, processor, peak = self.launcher.run(self.command, self.codes)
        self._processor += processor
        self._peaks.append(peak)
        return seconds

    def processor(self) -> float:
        """Seconds of processors of all runs."""
        return self._processor

    def peak_mb(self) -> float:
        """Return the largest peak of its runs."""
        return max(self._peaks)

    def close(self) -> None:
        """Nothing runs on."""


def policyeng_command() -> str:
    """Return the installed command of this Python."""
    return os.fspath(Path(sys.executable).with_name("policyeng"))
