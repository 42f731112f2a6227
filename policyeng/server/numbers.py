"""Numbers of a server that all of its workers count, each in memory of its own that the others read."""

from __future__ import annotations

import json
import mmap
import threading
from collections import Counter

#: How many numbers a worker may have, and bytes of their names. Memory is taken only as far as it is used.
_NUMBERS, _NAMES = 1 << 16, 1 << 23

#: The name of a family, and the values of its labels.
Key = tuple[str, ...]


class Numbers:
    """Numbers by their keys; they outlive a worker that is killed, and its successor counts on.

    Args:
        workers: how many count. Until `become` is called, a process counts as the first.
    """

    def __init__(self, workers: int = 1) -> None:
        self._parts = [_Part() for _ in range(workers)]
        self._own = self._parts[0]
        self._lock = threading.Lock()

    def become(self, worker: int) -> None:
        """Count as the worker of a number from 0."""
        self._own = self._parts[worker]

    def add(self, *key: str, amount: float = 1.0) -> None:
        """Add to a number of this worker."""
        with self._lock:
            self._own.values[self._own.place(key)] += amount

    def put(self, *key: str, value: float) -> None:
        """Replace a number of this worker."""
        with self._lock:
            self._own.values[self._own.place(key)] = value

    def total(self) -> dict[Key, float]:
        """The sums of all workers."""
        sums: Counter[Key] = Counter()
        with self._lock:
            for part in self._parts:
                sums.update(part.read())
        return dict(sums)


class _Part:
    """The numbers of one worker: how many bytes their names take, the numbers, then the names."""

    def __init__(self) -> None:
        view = memoryview(mmap.mmap(-1, 8 + 8 * _NUMBERS + _NAMES))
        self._used = view[:8].cast("Q")
        self.values = view[8 : 8 + 8 * _NUMBERS].cast("d")
        self._names = view[8 + 8 * _NUMBERS :]
        self._places: dict[Key, int] = {}
        self._known = 0

    def place(self, key: Key) -> int:
        """Where the number of a key is; a new one is 0.

        Raises:
            MemoryError: there are too many.
        """
        if (place := self._places.get(key)) is not None:
            return place
        self._learn()
        if key not in self._places:
            begin = self._used[0]
            name = json.dumps(key).encode() + b"\n"
            if len(self._places) == _NUMBERS or begin + len(name) > _NAMES:
                raise MemoryError("there are more numbers than metrics have room for")
            self._names[begin : begin + len(name)] = name
            self._used[0] = begin + len(name)  # last, so that whoever reads it finds the whole name
            self._learn()
        return self._places[key]

    def read(self) -> dict[Key, float]:
        """The numbers as they are now."""
        self._learn()
        return {key: self.values[place] for key, place in self._places.items()}

    def _learn(self) -> None:
        """Learn the names that have come, which another process may have written."""
        if (end := self._used[0]) == self._known:
            return
        for name in bytes(self._names[self._known : end]).splitlines():
            self._places[tuple(json.loads(name))] = len(self._places)
        self._known = end
