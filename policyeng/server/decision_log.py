"""Log decisions as one JSON line each, in files that rotate."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import orjson

from policyeng.errors import UsageError
from policyeng.models import Decision, Evaluation, Finding, JsonObject, Mode, Outcome
from policyeng.parsing.json_pointer import escaped
from policyeng.redaction import masked
from policyeng.server.request_body import status_of
from policyeng.server.service import Answered, SharedLock

#: The current file; completed files are next to it as `decisions-TIME.jsonl`.
NAME = "decisions.jsonl"
_CLOSED = -1


class Segments:
    """A folder of decision log files, which one server at a time writes.

    Args:
        folder: created if it does not exist.
        longest: the maximum size of a file in bytes.
        keep: the maximum number of files, including the current one.

    Attributes:
        torn: bytes of an incomplete last line of another process, which were removed; reset by the code that
            reports it.

    Raises:
        UsageError: the folder cannot be written, or another process writes it.
    """

    def __init__(self, folder: Path, *, longest: int = 64 << 20, keep: int = 10) -> None:
        self._folder, self._longest, self._keep = folder, longest, keep
        self.torn = 0
        self._file = _CLOSED
        self._size = 0
        self._writing = SharedLock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            remedy = "give each server a folder of its own"
            raise UsageError(
                "another process writes its decision log to this folder", place=(str(folder),), remedy=remedy
            ) from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"cannot write the decision log ({reason})"
            raise UsageError(message, place=(str(folder),), remedy="use a writable folder") from None

    def write(self, lines: bytes) -> None:
        """Append whole lines, all of them or none.

        Raises:
            OSError: they could not be written; none of them is written, and the next ones are tried again.
        """
        with self._writing as was_killed:
            if self._file == _CLOSED or was_killed or not self._is_there():
                self._open()
            else:
                self._size = os.fstat(self._file).st_size
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        if self._size and self._size + len(lines) > self._longest:
            self._rotate()
        try:
            written = os.write(self._file, lines)
            while written < len(lines):
                written += os.write(self._file, lines[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            self._close()
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Have all of it on the disk, and let others write."""
        if self._file != _CLOSED:
            with suppress(OSError):
                os.fsync(self._file)
        self._close()
        os.close(self._lock)

    def _open(self) -> None:
        self._close()
        path = self._folder / NAME
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        whole = _count_whole_lines(self._file, self._size)
        if whole < self._size:
            self.torn += self._size - whole
            os.ftruncate(self._file, whole)
            self._size = whole

    def _close(self) -> None:
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def _is_there(self) -> bool:
        """Return whether the file still has its name; other workers may rotate it, too."""
        try:
            return os.path.samestat((self._folder / NAME).stat(), os.fstat(self._file))
        except OSError:
            return False

    def _rotate(self) -> None:
        """Give the file its last name, which is one step, and begin another; too many of them go, the oldest first."""
        os.fsync(self._file)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        (self._folder / NAME).rename(self._folder / f"decisions-{moment}.jsonl")
        self._open()
        ended = sorted(self._folder.glob("decisions-*.jsonl"))
        for path in ended[: max(0, len(ended) - self._keep + 1)]:
            path.unlink(missing_ok=True)


def _count_whole_lines(file: int, size: int) -> int:
    """Return how many bytes of a file are whole lines."""
    end = size
    while end > 0:
        begin = max(0, end - 65536)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


#: How many bytes an entry may have before what is long in it is left out.
MAX_ENTRY_BYTES = 1 << 18

_TRACE = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
#: The lists of a decision that an entry includes; of `standing`, which may have thousands, only the count.
_LISTED = ("denied", "warned", "shadowed", "undecided", "exempted", "cleared")


def line_of(answered: Answered, labels: Mapping[str, str], longest: int = MAX_ENTRY_BYTES) -> bytes:
    """Return the entry as a line of masked JSON, without `input` or `result` if they are too long.

    Args:
        answered: the result of a request.
        labels: the labels of the server.
        longest: the maximum length of the line in bytes.
    """
    entry = entry_of(answered, labels)
    masks = [*_mask(entry, "input", "/input"), *_mask(entry, "error", "/error")]
    if (result := entry.get("result")) is not None:  # its findings are masked already, by their names
        masks += _mask(result, "problems", "/result/problems")
    if masks:
        entry["masked"] = masks
    line = _json(entry)
    for name in ("input", "result"):
        if len(line) > longest and name in entry:
            del entry[name]
            entry["erased"] = [*entry.get("erased", []), f"/{name}"]
            line = _json(entry)
    return line + b"\n"


def entry_of(answered: Answered, labels: Mapping[str, str]) -> JsonObject:
    """Return the entry before masking; empty members are omitted."""
    outcome, setup = answered.outcome, answered.setup
    entry: JsonObject = {
        "decision_id": answered.decision_id,
        "request_id": answered.request_id,
        "timestamp": timestamp(),
        "labels": dict(labels),
        "path": f"v1/{answered.point}",
        "point": answered.point,
        "requested_by": answered.requested_by or answered.client,
        "metrics": {"timer_server_handler_ns": round(answered.seconds * 1e9)},
    }
    if found := _TRACE.fullmatch(answered.traceparent):
        entry["trace_id"], entry["span_id"] = found[1], found[2]
    if setup is not None:
        entry["bundles"] = {setup.bundle.name: {"revision": setup.bundle.revision}}
        entry["policyset_digest"] = setup.bundle.digest
    if answered.document is not None:
        entry["input"] = answered.document
    if outcome is not None:
        entry |= _encode_answer(outcome)
    if answered.state_age is not None:
        entry["state_age_seconds"] = answered.state_age
    if answered.refusal is not None:
        entry["error"] = {"code": str(status_of(answered.refusal)), "message": str(answered.refusal)}
    return entry


def timestamp() -> str:
    """Return the current time as the log writes it, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def mode_of(decision: Decision) -> str:
    """Return the strictest mode of a decision with findings that do not pass; empty without any."""
    found = {Mode.DENY: decision.denied, Mode.WARN: decision.warned, Mode.SHADOW: decision.shadowed}
    return next((str(mode) for mode, findings in found.items() if findings), "")


def _encode_answer(outcome: Evaluation | Decision) -> JsonObject:
    findings: list[Finding]
    if isinstance(outcome, Decision):
        listed = {name: getattr(outcome, name) for name in _LISTED}
        findings = [finding for each in listed.values() for finding in each]
        counts = {name: len(getattr(outcome, name)) for name in (*_LISTED, "standing")}
        changes = [{"operation": str(each.operation), "id": each.id} for each in outcome.changes]
        shown = {name: [_encode_finding(finding) for finding in each] for name, each in listed.items() if each}
        result: JsonObject = {"allowed": outcome.allowed, "exitCode": outcome.exit_code, "changes": changes, **shown}
    else:
        counts = {
            name: count for name, count in outcome.summary.model_dump(by_alias=True).items() if isinstance(count, int)
        }
        findings = [finding for finding in outcome.findings if finding.outcome is not Outcome.PASS]
        result = {"exitCode": outcome.exit_code, "findings": [_encode_finding(finding) for finding in findings]}
    if outcome.problems:
        result["problems"] = [{"level": each.level, "message": each.message} for each in outcome.problems]
    if outcome.ledger:
        result["ledger"] = [entry.model_dump() for entry in outcome.ledger]
    return {
        "result": result,
        "outcome_counts": counts,
        "snapshot_digest": outcome.snapshot.digest,
        "exemptions_applied": sorted({each.exemption.id for each in findings if each.exemption is not None}),
        "engine": {"name": outcome.engine.name, "version": outcome.engine.version},
        "mode": mode_of(outcome) if isinstance(outcome, Decision) else "",
    }


def _encode_finding(finding: Finding) -> JsonObject:
    """Return the content of a finding, without the static fields of its policy."""
    return {
        "policy": finding.policy,
        "severity": str(finding.severity),
        "resource": finding.resource,
        "outcome": str(finding.outcome),
        "denials": [{"msg": each.msg, "path": each.path, "actual": each.actual} for each in finding.denials],
        "unknowns": [{"msg": each.msg, "path": each.path} for each in finding.unknowns],
    }


def _mask(container: JsonObject, name: str, pointer: str) -> list[str]:
    """Mask a part of an entry, and return the JSON Pointers of the masked values.

    Args:
        container: the object that may have the part.
        name: of the part in it.
        pointer: of the part in the entry.
    """
    if name not in container:
        return []
    before, container[name] = container[name], masked(container[name])
    return [] if before == container[name] else list(_find_differences(before, container[name], pointer))


def _find_differences(before: object, after: object, pointer: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, below in before.items():
            yield from _find_differences(below, after[key], f"{pointer}/{escaped(str(key))}")
    elif isinstance(before, list | tuple) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_differences(old, new, f"{pointer}/{index}")
    elif before != after:
        yield pointer


def _json(entry: JsonObject) -> bytes:
    try:
        return orjson.dumps(entry)
    except TypeError:  # a number beyond 64 bits, half a character: what came in as JSON goes out as JSON
        return json.dumps(entry, default=str, separators=(",", ":")).encode()


_log = logging.getLogger("policyeng.server")
#: How many entries go to the disk in one step, at most.
_BATCH = 64


class Fate(StrEnum):
    """What became of an entry."""

    WRITTEN = "written"
    DROPPED = "dropped"
    FAILED = "failed"


class Sink(Protocol):
    """Where lines go.

    Attributes:
        torn: bytes of a line that a process before began and did not end, and that were taken away.
    """

    torn: int

    def write(self, lines: bytes) -> None:
        """Append whole lines; raises OSError when that cannot be."""

    def close(self) -> None:
        """Stop writing."""


class Standard:
    """Standard output, as where lines go."""

    torn = 0

    def __init__(self) -> None:
        self._stream = sys.stdout.buffer  # while a policy in Python runs, `sys.stdout` is another stream
        self._writing = SharedLock()

    def write(self, lines: bytes) -> None:
        """Write them, on a line of their own where a worker was killed while it wrote."""
        with self._writing as was_killed:
            self._stream.write(b"\n" * was_killed + lines)
            self._stream.flush()

    def close(self) -> None:
        """Leave it open: it is not ours."""


class DecisionLog:
    """A queue of entries for a sink.

    If the queue is full because the sink is slow, an entry is dropped; if the sink fails, the entry is lost. Both are
    counted, and an entry `{"gap": {"dropped": N, "failed": N}}` takes their place once the sink accepts entries
    again.

    Args:
        sink: where lines go.
        labels: of the server, in each entry.
        waiting: entries that may wait.
        waiting_bytes: of the requests that they are about, together.

    Attributes:
        fates: how many entries were written, dropped, and lost because they could not be written.
    """

    def __init__(
        self, sink: Sink, labels: Mapping[str, str], *, waiting: int = 4096, waiting_bytes: int = 64 << 20
    ) -> None:
        self._sink, self._labels = sink, labels
        self._waiting, self._waiting_bytes = waiting, waiting_bytes
        self.fates: Counter[Fate] = Counter()
        self._entries: deque[Answered] = deque()
        self._bytes = 0
        self._gap: Counter[str] = Counter()
        self._failing = False
        self._ended = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        if sink.torn:
            self._write([])

    @property
    def waiting(self) -> int:
        """How many entries wait now."""
        return len(self._entries)

    def start(self) -> threading.Thread:
        """Begin to write, with a thread that only this process has: a fork would not take one along."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="policyeng-decision-log", daemon=True)
            self._thread.start()
        return self._thread

    def answered(self, answered: Answered) -> None:
        """Queue the result of a request for writing; never waits for the sink."""
        with self._changed:
            self.start()
            if len(self._entries) >= self._waiting or self._bytes + answered.size > self._waiting_bytes:
                self._lose(Fate.DROPPED, 1)
                return
            self._entries.append(answered)
            self._bytes += answered.size
            self._changed.notify()

    def close(self, seconds: float = 5.0) -> None:
        """Write what waits, and end; a sink that takes longer than `seconds` is not waited for."""
        with self._changed:
            self._ended = True
            thread = self.start()
            self._changed.notify()
        thread.join(seconds)
        if thread.is_alive():
            _log.warning("decision log: %d entries are not written: it is too slow", self.waiting)

    def _run(self) -> None:
        while batch := self._take():
            self._write(self._lines(batch))
        if self._gap or self._sink.torn:
            self._write([])
        self._sink.close()

    def _take(self) -> list[Answered]:
        """Return a limited number of waiting entries; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._entries or self._ended)
            batch = [self._entries.popleft() for _ in range(min(_BATCH, len(self._entries)))]
            self._bytes -= sum(each.size for each in batch)
            return batch

    def _lines(self, batch: list[Answered]) -> list[bytes]:
        lines = []
        for answered in batch:
            try:
                lines.append(line_of(answered, self._labels))
            except Exception:  # a thread that ends would end the log
                _log.exception("decision log: the entry of `%s` cannot be written down", answered.decision_id)
                with self._changed:
                    self._lose(Fate.FAILED, 1)
        return lines

    def _write(self, lines: list[bytes]) -> None:
        """Write the lines of entries, and before them what is missing."""
        with self._changed:
            gap, self._gap = self._gap, Counter()
        gap["torn_bytes"], self._sink.torn = gap["torn_bytes"] + self._sink.torn, 0
        try:
            self._sink.write(b"".join([*self._missing(+gap), *lines]))
        except (OSError, ValueError) as error:  # ValueError of a stream that is closed
            self._fail(error, gap, len(lines))
            return
        self.fates[Fate.WRITTEN] += len(lines)
        if self._failing:
            _log.warning("decision log: it is written again")
        self._failing = False

    def _missing(self, gap: Counter[str]) -> list[bytes]:
        """Return the line that records a gap, if there is one."""
        entry = {"gap": dict(gap), "timestamp": timestamp(), "labels": dict(self._labels)}
        return [orjson.dumps(entry) + b"\n"] if gap else []

    def _fail(self, error: Exception, gap: Counter[str], count: int) -> None:
        with self._changed:
            self._gap += gap
            self._lose(Fate.FAILED, count)
        if not self._failing:
            _log.warning("decision log: it cannot be written, and decisions go on without it: %s", error)
        self._failing = True

    def _lose(self, fate: Fate, count: int) -> None:
        self.fates[fate] += count
        self._gap[str(fate)] += count
