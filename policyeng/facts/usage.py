"""The utilization of a machine, and when it was last used, from the samples of its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from policyeng.facts.catalogue import VmSize
from policyeng.facts.ids import fold_id
from policyeng.facts.times import moment
from policyeng.facts.words import fold
from policyeng.models import JsonObject, lowered

_ALWAYS = ("cpuUtilization", "memoryUtilization")
_GPUS = "gpuUtilization"
#: The metrics of the utilization of a machine.
UTILIZATIONS = (*_ALWAYS, _GPUS)


class Usage(Struct, frozen=True):
    """The highest p95 of a metric in percent; None if the samples are not enough, with the reason."""

    p95: float | None
    reason: str = ""


def samples_of(
    resource: JsonObject, metrics: Sequence[JsonObject], by_measured: Mapping[str, Sequence[int]], as_of: datetime
) -> Mapping[str, Sequence[JsonObject]]:
    """Return the samples of a resource up to `as_of` by lower-case name of the metric.

    `metrics` and `by_measured` are those of the snapshot, with `from` and `to` as RFC 3339 texts or None.
    """
    found: dict[str, list[JsonObject]] = {}
    for position in by_measured.get(fold_id(resource["id"]), ()):
        sample = metrics[position]
        moments = (moment(sample.get("from")), moment(sample.get("to")))
        if not any(one is not None and one > as_of for one in moments):
            found.setdefault(fold(sample.get("name")) or "", []).append(sample)
    return found


def usages_of(samples: Mapping[str, Sequence[JsonObject]], size: VmSize, days: float) -> dict[str, Usage]:
    """Return how much of each part of a machine is used: CPUs, memory, and GPUs and FPGAs if present.

    `samples` are those of `samples_of`, of which the last so many days count.
    """
    gpus = (_GPUS,) if size.gpus or (lowered(_GPUS) in samples and not size.fpgas) else ()
    usages = {name: usage_over(samples.get(lowered(name), ()), days) for name in (*_ALWAYS, *gpus)}
    if size.fpgas:
        usages["FPGAs"] = Usage(None, "there is no metric of their use")
    return usages


def usage_over(samples: Sequence[JsonObject], days: float) -> Usage:
    """Return the highest p95 of the samples that reach into the so many days before the last of them ends.

    They cover these days together and without a gap; exactly that long is enough. How old they are makes no difference:
    they are of the time of the snapshot.
    """
    if not samples:
        return Usage(None, "a metric has no sample")
    windows = [(moment(sample.get("from")), moment(sample.get("to"))) for sample in samples]
    dated = [(begin, end, sample) for (begin, end), sample in zip(windows, samples, strict=True) if begin and end]
    if len(dated) < len(samples):
        return Usage(None, "a sample does not say from when to when it was taken")
    last, span = max(end for _, end, _ in dated), timedelta(days=days)
    if last - _covered_since(last, [(begin, end) for begin, end, _ in dated]) < span:
        return Usage(None, "the samples of a metric cover too few days")
    highs = [_percent(sample) for _, end, sample in dated if end == last or last - end < span]
    known = [high for high in highs if high is not None]
    if len(known) < len(highs):
        return Usage(None, "a sample states no p95 in percent")
    return Usage(max(known))


def _covered_since(last: datetime, windows: Iterable[tuple[datetime, datetime]]) -> datetime:
    """Since when the windows leave no gap up to the last of their ends."""
    since = last
    for begin, end in sorted(windows, key=lambda window: window[1], reverse=True):
        if end < since:
            break
        since = min(since, begin)
    return since


def _percent(sample: JsonObject) -> float | None:
    high = sample.get("p95")
    if not isinstance(high, int | float) or high < 0 or fold(sample.get("unit")) != "percent":
        return None
    return float(high)
