"""How much of a machine is used: what the samples of its metrics say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from policyeng.facts.words import folded
from policyeng.models import JsonObject


@dataclass(frozen=True, slots=True)
class Usage:
    """The highest p95 of a metric in percent; None where the samples do not tell, for the reason."""

    p95: float | None
    reason: str = ""


def samples_by_name(metrics: Iterable[JsonObject], as_of: datetime) -> Mapping[str, Sequence[JsonObject]]:
    """The samples of each metric, its name in lower case; none that begins or ends after the moment `as_of`.

    The metrics have the form of the snapshot, with `from` and `to` as RFC 3339 texts or None.
    """
    found: dict[str, list[JsonObject]] = {}
    for sample in metrics:
        moments = (_moment(sample.get("from")), _moment(sample.get("to")))
        if not any(moment is not None and moment > as_of for moment in moments):
            found.setdefault(folded(sample.get("name")) or "", []).append(sample)
    return found


def usage_over(samples: Sequence[JsonObject], days: float) -> Usage:
    """The highest p95 of the samples that reach into the so many days before the last of them ends.

    They cover these days together and without a gap; exactly that long is enough. How old they are makes no difference:
    they are of the time of the snapshot.
    """
    if not samples:
        return Usage(None, "a metric has no sample")
    windows = [(_moment(sample.get("from")), _moment(sample.get("to"))) for sample in samples]
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
    if not isinstance(high, int | float) or high < 0 or folded(sample.get("unit")) != "percent":
        return None
    return float(high)


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
