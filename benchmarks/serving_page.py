"""The page of a run of servers, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.load import PATIENCE, Load, Times
from benchmarks.page import table, time_of
from benchmarks.serving_runs import CHANGES, DOCUMENTS, FACTOR, UNDER_WAY, Measured, Outcome, Overloaded, Task
from policyeng.server.options import ServerOptions

_HOW = f"""\
Both servers run as they come, on the same machine, and [k6](https://k6.io) beside them: whoever is asked has the
generator, which compares every answer, as its neighbour on the same cores. Both are asked over HTTP/1.1 on loopback,
connections stay open, no TLS, no decision log. A request is sent when it is due, whatever the answers before it take
(an open loop), and its time counts from then; what cannot be sent because too much is under way is no success.

Before anything is timed the answers are compared: on each change, what the policies that OPA is asked for say of the
changed resource; on the document, every statement (policy, resource, message, path). While it is timed, each answer has
to be the one that was compared.

* **A decision on a change**: `POST /v1/admit` to a server with `--snapshot`, five changes in turn: a tag, a new
  deployment, a setting of a workspace, one that is denied, a network. Each is a dry run: the server otherwise counts
  changes that it allowed as part of the state, and OPA keeps nothing of what it is asked. policyeng applies the
  change, judges all that it affects, compares it with before, and answers with every failure that stands, some 70 KB.
  OPA has the state of before in its store, and is asked for the policies in Rego that judge the changed resource, which
  are named in the question; it is told neither what else the change affects nor what was wrong before, and answers with
  some 200 bytes.
* **A whole document**: `POST /v1/check` with the snapshot as it is written; reading, validating, planning and the whole
  report, some 800 KB, are part of it. OPA gets the [batched query](benchmarks.md#how-it-is-measured), planned and
  indexed before, and answers with the failures alone, some 30 KB.

**Sustained** is the highest rate at which, for some seconds, every answer is right and 99 of 100 come within
{CHANGES.limit:g} ms (changes) or {DOCUMENTS.limit:g} ms (documents). It is searched by doubling and halving and then
in between, all servers in turns, so that what else the machine does meets all of them. The search ends when what is
kept and what is not are less than an eighth apart, or after as many runs as there are rates in the last column. With
few answers p99 is the slowest of them.
"""

_OVERLOAD = f"""\
{FACTOR} times the sustained rate of each, with up to {UNDER_WAY:,} requests under way; what would go beyond is not
sent. policyeng lets {ServerOptions().waiting} requests wait beside those at work, as it does unless told otherwise, and
refuses the rest with 429; OPA's server has no such bound, and lets all of them wait. Lost is what has no answer after
{PATIENCE} seconds. The low rate begins the moment the overload ends, so its first second meets what still waits, on the
connections and in the server.
"""


def render(outcome: Outcome) -> str:
    """Return the whole page."""
    return "\n".join(_lines(outcome)).rstrip("\n") + "\n"


def _lines(outcome: Outcome) -> Iterator[str]:
    figures = "[benchmarks-serving.json](benchmarks-serving.json)"
    said = f"Written by `make bench-serving`; the figures are in {figures}. {outcome.remark}"
    yield from ("# Benchmarks of the server", "", said.rstrip(), "")
    if outcome.program != "full":
        yield from (f"**A {outcome.program} run: it tries the harness, and its figures prove nothing.**", "")
    facts = ", ".join(f"{name} {value}" for name, value in outcome.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in outcome.versions.items())
    yield from (
        f"Run of {outcome.began}, {outcome.minutes:.1f} minutes, a state of {outcome.size} resources.",
        f"Machine: {facts}.",
        f"Versions: {versions}.",
        "",
    )
    for task in (CHANGES, DOCUMENTS):
        rows = [one for one in outcome.measured if one.task == task]
        yield from (f"## {task.name.capitalize()}", "", *_task(task, rows), "")
    yield from ("## Ten times as much", "", _OVERLOAD)
    yield from table(
        (
            "server",
            "asked",
            "answered",
            "refused",
            "lost or other",
            "not sent",
            "answers, p50 / p99",
            "refusals, p50 / p99",
        ),
        [_overload(one) for one in outcome.overloaded],
    )
    yield from ("", "None of the answers was wrong. Memory, and what comes after:", "")
    yield from table(
        ("server", "memory before", "most", "after", "first second after, p50 / p99", "the second, p50 / p99"),
        [_after(one) for one in outcome.overloaded],
    )
    yield from ("", "## How it is measured", "", _HOW)


def _task(task: Task, rows: Sequence[Measured]) -> Iterator[str]:
    head = ("server", "sustained", "p50 / p99 at it", f"p50 / p99 at {task.low:g}/s", "rates tried, those kept in bold")
    yield from table(
        head,
        [
            (
                one.contestant,
                f"{one.sustained.rate:g}/s" if one.sustained else "none",
                _times(one.sustained.right) if one.sustained else "",
                _low(one.low),
                ", ".join(f"**{rate:g}**" if kept else f"{rate:g}" for rate, kept in one.tried),
            )
            for one in rows
        ],
    )


def _low(load: Load) -> str:
    answered = f"{_times(load.right)} of {load.right.count}" if load.right.count else "no answer"
    return answered if load.whole else f"{answered}; {_failed(load)}"


def _failed(load: Load) -> str:
    kinds = {
        "refused": load.refused.count,
        "wrong": load.wrong,
        "lost": load.lost,
        "other": load.other,
        "not sent": load.unsent,
    }
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)


def _overload(one: Overloaded) -> Sequence[str]:
    load = one.load
    return (
        one.contestant,
        f"{load.rate:g}/s, {load.seconds:g} s",
        str(load.right.count),
        str(load.refused.count),
        str(load.lost + load.other),
        str(load.unsent),
        _times(load.right),
        _times(load.refused),
    )


def _after(one: Overloaded) -> Sequence[str]:
    memory = (f"{mb:.0f} MB" for mb in (one.before_mb, one.most_mb, one.after_mb))
    return (one.contestant, *memory, *map(_low, one.after))


def _times(times: Times) -> str:
    if times.p50 is None or times.p99 is None:
        return ""
    return f"{time_of(times.p50 / 1e3)} / {time_of(times.p99 / 1e3)}"
