"""The state that changes are judged against: where it comes from, and how old it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from policyeng.bundle.loader import WantedInputs
from policyeng.errors import InputError
from policyeng.models import Snapshot
from policyeng.server.problems import refuse_busy
from policyeng.sources import Inputs, read_inputs
from policyeng.sources.kubernetes.owners import BesideSnapshot
from policyeng.sources.problems import raise_errors

#: How far ahead of ours, in seconds, the clock of who took a snapshot may be.
_AHEAD = 60.0


@dataclass(frozen=True)
class SnapshotState:
    """A state, and the moment of which it says what is there."""

    snapshot: Snapshot
    since: datetime

    @cached_property
    def beside(self) -> BesideSnapshot:
        """The state as the objects of a cluster are read beside it."""
        return BesideSnapshot(self.snapshot)

    def age(self, now: datetime) -> float:
        """Its age in seconds; less than zero where the clock that it was taken by is ahead."""
        return round((now - self.since).total_seconds(), 3)


def read_state(paths: Sequence[Path], wanted: WantedInputs) -> SnapshotState:
    """Read a state from files and directories, all of it or nothing.

    Its moment is the `takenAt` that it states, else that of the file that was written first.

    Args:
        paths: as the user named them.
        wanted: what is read of them.

    Raises:
        InputError: something in it cannot be read.
    """
    read = read_inputs(paths, **wanted)
    raise_errors(read.problems)
    return SnapshotState(read.snapshot, read.snapshot.taken_at or _write(read))


def require_fresh(standing: SnapshotState, now: datetime, longest: float | None) -> float:
    """Return the age in seconds of a state, if it is recent enough to decide by.

    Raises:
        RefusedError: it is older than that, or was taken at a time that has not come yet.
    """
    age = standing.age(now)
    if longest is not None and not -_AHEAD <= age <= longest:
        how = f"{age:g} seconds old, which is more than {longest:g}" if age > 0 else "of a time that has not come yet"
        raise refuse_busy(f"nothing is decided by the state, which is {how}")
    return age


def _write(read: Inputs) -> datetime:
    try:
        first = min(Path(file).stat().st_mtime for file in read.files)
    except (OSError, ValueError):
        raise InputError("the state disappeared while it was read", remedy="write a new file and rename it") from None
    return datetime.fromtimestamp(first, UTC)
