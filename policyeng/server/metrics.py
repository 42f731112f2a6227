"""What the server counts and measures, for Prometheus; no label has a value that callers choose."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from policyeng.engines import engine_version
from policyeng.models import Decision, Finding, Outcome
from policyeng.server.decision_entry import mode_of
from policyeng.server.decision_log import DecisionLog, Fate
from policyeng.server.problems import status_of
from policyeng.server.service import Answered, Service, now

#: Upper bounds in seconds: a change takes a millisecond, the longest deadline that is sensible ten seconds or more.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """A registry of its own: what answers come to is counted, and what a service is like is read when asked."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "policyeng_admission_requests_total",
            "Requests to decide on a change, by decision (allow, deny, refused), the strictest mode in which something "
            "was found, and where they came in.",
            ("decision", "mode", "point"),
            registry=self._registry,
        )
        self._checks = Counter(
            "policyeng_check_requests_total",
            "Requests to judge a document, by the exit code of the report; `refused` got none.",
            ("exit_code",),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "policyeng_admission_duration_seconds",
            "From the arrival of a request to its answer, by where it came in.",
            ("point",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._evaluations = Counter(
            "policyeng_evaluations_total",
            "Findings by policy and outcome; of decisions on changes those that determined them.",
            ("rule", "outcome"),
            registry=self._registry,
        )
        self._errors = Counter(
            "policyeng_evaluation_errors_total",
            "What could not be decided: findings that are errors or unknown, and problems of whole runs.",
            ("kind",),
            registry=self._registry,
        )
        self._refused = Counter(
            "policyeng_refused_requests_total",
            "Requests that got no verdict, by where they came in and the status that the reason has.",
            ("point", "status"),
            registry=self._registry,
        )
        for kind in ("error", "unknown", "problem"):
            self._errors.labels(kind)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def watch(self, service: Service) -> None:
        """Measure a service, too, each time that the metrics are asked for."""
        self._registry.register(_Measured(service))

    def answered(self, answered: Answered) -> None:
        """Count what came of a request."""
        outcome, refusal = answered.outcome, answered.refusal
        self._seconds.labels(answered.point).observe(answered.seconds)
        if refusal is not None:
            self._refused.labels(answered.point, str(status_of(refusal))).inc()
        if isinstance(outcome, Decision):
            decision = "allow" if outcome.allowed else "deny"
            self._requests.labels(decision, mode_of(outcome), answered.point).inc()
        elif answered.point == "check":
            self._checks.labels("refused" if outcome is None else str(outcome.exit_code)).inc()
        else:  # an AdmissionReview about nothing of ours is allowed without a decision
            self._requests.labels("allow" if refusal is None else "refused", "", answered.point).inc()
        if outcome is not None:
            findings = _determining(outcome) if isinstance(outcome, Decision) else outcome.findings
            self._count(findings, sum(problem.level == "error" for problem in outcome.problems))

    def exposition(self) -> bytes:
        """All of it, in the text format of Prometheus 0.0.4."""
        return generate_latest(self._registry)

    def _count(self, findings: Iterable[Finding], problems: int) -> None:
        counts = Counts((finding.policy, finding.outcome) for finding in findings)
        for (policy, outcome), count in counts.items():
            self._evaluations.labels(policy, str(outcome)).inc(count)
            if outcome in (Outcome.ERROR, Outcome.UNKNOWN):
                self._errors.labels(str(outcome)).inc(count)
        self._errors.labels("problem").inc(problems)


def _determining(decision: Decision) -> Iterator[Finding]:
    for findings in (decision.denied, decision.warned, decision.shadowed, decision.undecided, decision.exempted):
        yield from findings


class _Measured(Collector):
    """What a service is like at the moment."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The families."""
        yield from self._readings()
        yield from self._policies()
        yield from self._load()
        if isinstance(log := self._service.log, DecisionLog):
            yield from _log_families(log)

    def _readings(self) -> Iterator[Metric]:
        failures = CounterMetricFamily(
            "policyeng_load_failures", "Readings of changed files that were bad, by what is read.", labels=("of",)
        )
        degraded = GaugeMetricFamily(
            "policyeng_degraded", "Whether an earlier reading is in force, for the last is bad.", labels=("of",)
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
            self._service.holding.failures,
        )

    def _policies(self) -> Iterator[Metric]:
        held = self._service.holding.current
        revision = GaugeMetricFamily(
            "policyeng_policyset_info",
            "The policies in force; always 1.",
            labels=("name", "revision", "digest", "engine"),
        )
        revision.add_metric(
            (held.bundle.name, held.bundle.revision, held.bundle.digest, f"embedded {engine_version()}"), 1
        )
        yield revision
        yield GaugeMetricFamily("policyeng_policies", "How many policies are in force.", len(held.bundle.policies))
        clock = datetime.now(UTC)
        ends = sorted(each.expires_at for each in held.exemptions if each.expires_at > clock)
        states = GaugeMetricFamily("policyeng_exemptions", "Exemptions by whether they have ended.", labels=("state",))
        states.add_metric(("active",), len(ends))
        states.add_metric(("expired",), len(held.exemptions) - len(ends))
        yield states
        if ends:
            yield GaugeMetricFamily(
                "policyeng_exemption_expiry_timestamp_seconds", "When the next exemption ends.", ends[0].timestamp()
            )

    def _load(self) -> Iterator[Metric]:
        service, queue = self._service, self._service.queue
        yield GaugeMetricFamily("policyeng_ready", "Whether readiness says yes.", not service.unready())
        yield GaugeMetricFamily("policyeng_queue_requests", "Requests at work and waiting.", queue.taken)
        yield GaugeMetricFamily("policyeng_queue_places", "How many there may be.", queue.places)
        yield GaugeMetricFamily(
            "policyeng_queue_overdue", "Threads at work for which nobody waits any more.", queue.overdue
        )
        yield GaugeMetricFamily("policyeng_body_bytes", "Bytes of bodies that are held.", service.bodies.held)
        if service.state is not None:
            age = service.state.current.age(now())
            yield GaugeMetricFamily(
                "policyeng_state_age_seconds", "The age of the state that changes are judged against.", age
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


def _log_families(log: DecisionLog) -> Iterator[Metric]:
    entries = CounterMetricFamily(
        "policyeng_decision_log_entries",
        "Entries of the decision log: written, dropped for it was too slow, failed for it could not be written.",
        labels=("fate",),
    )
    for fate in Fate:
        entries.add_metric((str(fate),), log.fates[fate])
    yield entries
    yield GaugeMetricFamily("policyeng_decision_log_waiting", "Entries that wait to be written.", log.waiting)
