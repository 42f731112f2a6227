"""What the server counts and measures, for Prometheus; no label has a value that callers choose."""

from __future__ import annotations

import json
import math
import mmap
import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from policyeng.engines import engine_version
from policyeng.models import Decision, Finding, Outcome
from policyeng.server.decision_log import Fate, mode_of
from policyeng.server.request_body import status_of
from policyeng.server.service import Answered, Service, get_time

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
        self._parts = [_WorkerNumbers() for _ in range(workers)]
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
        """Return the sums over all workers."""
        sums: Counter[Key] = Counter()
        with self._lock:
            for part in self._parts:
                sums.update(part.read())
        return dict(sums)


class _WorkerNumbers:
    """The numbers of one worker: how many bytes their names take, the numbers, then the names."""

    def __init__(self) -> None:
        view = memoryview(mmap.mmap(-1, 8 + 8 * _NUMBERS + _NAMES))
        self._used = view[:8].cast("Q")
        self.values = view[8 : 8 + 8 * _NUMBERS].cast("d")
        self._names = view[8 + 8 * _NUMBERS :]
        self._places: dict[Key, int] = {}
        self._known = 0

    def place(self, key: Key) -> int:
        """Return the index of a key; a new one starts at 0.

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
            self._used[0] = begin + len(name)  # last, so that readers always find the whole name
            self._learn()
        return self._places[key]

    def read(self) -> dict[Key, float]:
        """Return the current numbers."""
        self._learn()
        return {key: self.values[place] for key, place in self._places.items()}

    def _learn(self) -> None:
        """Learn the names that have come, which another process may have written."""
        if (end := self._used[0]) == self._known:
            return
        for name in bytes(self._names[self._known : end]).splitlines():
            self._places[tuple(json.loads(name))] = len(self._places)
        self._known = end


#: Upper bounds in seconds: a change takes a millisecond, the longest deadline that is sensible ten seconds or more.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


#: By the name of a family of counters, what it counts and its labels.
_COUNTED = {
    "policyeng_admission_requests": (
        "Requests to decide on a change, by decision (allow, deny, refused), the strictest mode in which something "
        "was found, and where they came in.",
        ("decision", "mode", "point"),
    ),
    "policyeng_check_requests": (
        "Requests to evaluate a document, by the exit code of the report; `refused` got none.",
        ("exit_code",),
    ),
    "policyeng_evaluations": (
        "Findings by policy and outcome; of decisions on changes those that determined them.",
        ("rule", "outcome"),
    ),
    "policyeng_evaluation_errors": (
        "What could not be decided: findings that are errors or unknown, and problems of whole runs.",
        ("kind",),
    ),
    "policyeng_refused_requests": (
        "Requests that got no verdict, by where they came in and the status that the reason has.",
        ("point", "status"),
    ),
    "policyeng_decision_log_entries": (
        "Entries of the decision log: written, dropped for it was too slow, failed for it could not be written.",
        ("fate",),
    ),
}
_SECONDS = "policyeng_admission_duration_seconds"
#: What a worker has now; the sums of all workers are shown.
_GAUGES = {
    "policyeng_queue_requests": "Requests at work and waiting.",
    "policyeng_queue_overdue": "Threads that still work on abandoned requests.",
    "policyeng_body_bytes": "Bytes of request bodies in memory.",
    "policyeng_decision_log_waiting": "Entries that wait to be written.",
}
#: The keys of a worker's process id, and of the processor time of workers that ended.
_PROCESS, _ENDED = "process", "ended"


class ServerMetrics:
    """What all workers of a server count, and the state of the server when the metrics are requested.

    Args:
        workers: how many there are. The process that starts them counts, too, behind the last of them.
    """

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._numbers = Numbers(workers + 1)
        self._registry = CollectorRegistry()
        self._fates: Counter[Fate] = Counter()
        self._publishing = threading.Lock()
        self._service: Service | None = None
        for kind in ("error", "unknown", "problem"):
            self._numbers.add("policyeng_evaluation_errors", kind, amount=0)
        PlatformCollector(registry=self._registry)
        if workers == 1:
            GCCollector(registry=self._registry)

    def watch(self, service: Service) -> None:
        """Measure a service, too, each time that the metrics are requested."""
        self._service = service
        self._registry.register(_Measured(service, self._numbers))

    def become(self, worker: int) -> None:
        """Count as the worker of a number from 0."""
        self._numbers.become(worker)
        self._numbers.put(_PROCESS, str(worker), value=os.getpid())

    def add_ended(self, seconds: float) -> None:
        """Count the processor time of a worker that ended."""
        self._numbers.add(_ENDED, amount=seconds)

    def answered(self, answered: Answered) -> None:
        """Count the result of a request."""
        outcome, refusal, point = answered.outcome, answered.refusal, answered.point
        add = self._numbers.add
        add(_SECONDS, point, str(bisect_left(_BUCKETS, answered.seconds)))
        add(_SECONDS, point, "sum", amount=answered.seconds)
        if refusal is not None:
            add("policyeng_refused_requests", point, str(status_of(refusal)))
        if isinstance(outcome, Decision):
            decision = "allow" if outcome.allowed else "deny"
            add("policyeng_admission_requests", decision, mode_of(outcome), point)
        elif point == "check":
            add("policyeng_check_requests", "refused" if outcome is None else str(outcome.exit_code))
        else:  # an AdmissionReview about nothing of ours is allowed without a decision
            add("policyeng_admission_requests", "allow" if refusal is None else "refused", "", point)
        if outcome is not None:
            findings = _list_determining(outcome) if isinstance(outcome, Decision) else outcome.findings
            self._count(findings, sum(problem.level == "error" for problem in outcome.problems))

    def publish(self) -> None:
        """Show the other workers what this one has now."""
        if (service := self._service) is None:
            return
        log = service.log
        now = (
            service.queue.taken,
            service.queue.overdue,
            service.bodies.buffered,
            log.waiting if log is not None else 0,
        )
        for name, value in zip(_GAUGES, now, strict=True):
            self._numbers.put(name, value=value)
        if log is None:
            return
        with self._publishing:
            for fate in Fate:
                count = log.fates[fate]
                self._numbers.add("policyeng_decision_log_entries", str(fate), amount=count - self._fates[fate])
                self._fates[fate] = count

    def exposition(self) -> bytes:
        """Write all metrics in the text format of Prometheus 0.0.4."""
        self.publish()
        return generate_latest(self._registry)

    def _count(self, findings: Iterable[Finding], problems: int) -> None:
        counts = Counter((finding.policy, finding.outcome) for finding in findings)
        for (policy, outcome), count in counts.items():
            self._numbers.add("policyeng_evaluations", policy, str(outcome), amount=count)
            if outcome in (Outcome.ERROR, Outcome.UNKNOWN):
                self._numbers.add("policyeng_evaluation_errors", str(outcome), amount=count)
        if problems:
            self._numbers.add("policyeng_evaluation_errors", "problem", amount=problems)


def _list_determining(decision: Decision) -> Iterator[Finding]:
    for findings in (decision.denied, decision.warned, decision.shadowed, decision.undecided, decision.exempted):
        yield from findings


class _Measured(Collector):
    """What the workers have counted, and what a service is like at the moment."""

    def __init__(self, service: Service, numbers: Numbers) -> None:
        self._service = service
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        numbers = self._numbers.total()
        yield from self._readings()
        yield from self._policies()
        yield from self._load()
        yield from _count_workers(numbers, with_log=self._service.log is not None)
        yield from _process_families(numbers)

    def _readings(self) -> Iterator[Metric]:
        failures = CounterMetricFamily(
            "policyeng_load_failures", "Readings of changed files that were bad, by what is read.", labels=("of",)
        )
        degraded = GaugeMetricFamily(
            "policyeng_degraded", "Whether an earlier version is active because the newest is invalid.", labels=("of",)
        )
        loaded = GaugeMetricFamily(
            "policyeng_last_load_timestamp_seconds", "When what is in force was read, by what is read.", labels=("of",)
        )
        for watched in self._service.watched():
            failures.add_metric((watched.what,), watched.failures)
            degraded.add_metric((watched.what,), watched.fault is not None)
            loaded.add_metric((watched.what,), watched.loaded.timestamp())
        yield from (failures, degraded, loaded)
        yield CounterMetricFamily(
            "policyeng_bundle_load_failures",
            "Readings of changed policies, exemptions and settings that were bad.",
            self._service.setup.failures,
        )

    def _policies(self) -> Iterator[Metric]:
        setup = self._service.setup.current
        revision = GaugeMetricFamily(
            "policyeng_policyset_info",
            "The policies in force; always 1.",
            labels=("name", "revision", "digest", "engine"),
        )
        revision.add_metric(
            (setup.bundle.name, setup.bundle.revision, setup.bundle.digest, f"embedded {engine_version()}"), 1
        )
        yield revision
        yield GaugeMetricFamily("policyeng_policies", "How many policies are in force.", len(setup.bundle.policies))
        clock = datetime.now(UTC)
        ends = sorted(each.expires_at for each in setup.exemptions if each.expires_at > clock)
        states = GaugeMetricFamily("policyeng_exemptions", "Exemptions by whether they have ended.", labels=("state",))
        states.add_metric(("active",), len(ends))
        states.add_metric(("expired",), len(setup.exemptions) - len(ends))
        yield states
        if ends:
            yield GaugeMetricFamily(
                "policyeng_exemption_expiry_timestamp_seconds", "When the next exemption ends.", ends[0].timestamp()
            )

    def _load(self) -> Iterator[Metric]:
        service, queue = self._service, self._service.queue
        yield GaugeMetricFamily("policyeng_ready", "Whether the server is ready.", not service.unready())
        places = queue.places * service.options.workers
        yield GaugeMetricFamily("policyeng_queue_places", "How many there may be.", places)
        if service.state is not None:
            age = service.state.current.age(get_time())
            yield GaugeMetricFamily(
                "policyeng_state_age_seconds", "The age of the state that changes are compared with.", age
            )
            yield GaugeMetricFamily(
                "policyeng_allowed_changes",
                "Changes that were allowed and count as part of the state until it is newer than they are.",
                len(service.allowed.entries),
            )
            yield CounterMetricFamily(
                "policyeng_allowed_changes_forgotten",
                "Allowed changes that no longer count as part of the state because there were too many.",
                service.allowed.forgotten,
            )


def _count_workers(numbers: Mapping[Key, float], *, with_log: bool) -> Iterator[Metric]:
    """Yield the families of the workers' counters and gauges."""
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {
        name: CounterMetricFamily(name, text, labels=labels) for name, (text, labels) in _COUNTED.items()
    }
    families |= {name: GaugeMetricFamily(name, text, labels=()) for name, text in _GAUGES.items()}
    times: dict[str, dict[str, float]] = {}
    for (name, *labels), value in numbers.items():
        if name == _SECONDS:
            times.setdefault(labels[0], {})[labels[1]] = value
        elif name in families:
            families[name].add_metric(labels, value)
    yield from (family for name, family in families.items() if with_log or "decision_log" not in name)
    seconds = HistogramMetricFamily(
        _SECONDS, "From the arrival of a request to its answer, by where it came in.", labels=("point",)
    )
    for point, counts in times.items():
        each = (counts.get(str(place), 0.0) for place in range(len(_BUCKETS) + 1))
        bounds = map(floatToGoString, (*_BUCKETS, math.inf))
        seconds.add_metric((point,), list(zip(bounds, accumulate(each), strict=True)), counts["sum"])
    yield seconds


def _process_families(numbers: Mapping[Key, float]) -> Iterator[Metric]:
    """Yield all families: the sums over the workers, and those of the parent process."""
    processes = [int(value) for (name, *_), value in numbers.items() if name == _PROCESS] or [os.getpid()]
    families: dict[str, Metric] = {}
    for process in processes:
        for family in ProcessCollector(pid=partial(int, process), registry=None).collect():
            (sample,) = family.samples
            before = families.setdefault(family.name, family).samples[0].value
            if families[family.name] is not family:
                least = family.name in ("process_start_time_seconds", "process_max_fds")
                together = min(before, sample.value) if least else before + sample.value
                families[family.name].samples = [sample._replace(value=together)]
    if cpu := families.get("process_cpu_seconds"):
        cpu.samples = [cpu.samples[0]._replace(value=cpu.samples[0].value + numbers.get((_ENDED,), 0.0))]
    yield from families.values()
