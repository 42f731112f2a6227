"""The page of a run of servers, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.load import PATIENCE, Load, Times
from benchmarks.page import table, time_of
from benchmarks.serving_runs import CHANGES, DOCUMENTS, FACTOR, UNDER_WAY, Measured, Outcome, Overloaded, Task
from policyeng.server.options import ServerOptions

_HOW = f"""\
Both servers run with default settings, on the same machine as [k6](https://k6.io): the load generator, which compares
every response, shares the cores with the server. Both use HTTP/1.1 on loopback, with open connections, no TLS and no
decision log. A request is sent at its scheduled time, whatever the responses before it take (an open loop), and its
time counts from then. A request that cannot be sent because too many are in flight is not a success.

Before the measurement the responses are compared: on each change, the results for the changed resource of the policies
in the query to OPA; on the document, every finding (policy, resource, message, path). During the measurement, each
response has to equal the compared one.

* **A decision on a change**: `POST /v1/admit` to a server with `--snapshot`, five changes in turn: a tag, a new
  deployment, a setting of a workspace, one that is denied, a network. Each is a dry run: otherwise policyeng counts
  allowed changes as part of the state, and OPA keeps nothing of its queries. policyeng applies the change, evaluates
  everything that it affects, compares it with the state before, and returns every existing failure, about 70 KB.
  OPA has the state before in its store, and the query names the policies in Rego for the changed resource. OPA
  evaluates neither what else the change affects nor what was wrong before, and returns about 200 bytes.
* **A whole document**: `POST /v1/check` with the snapshot as it is written; reading, validating, planning and the whole
  report, about 800 KB, are included. OPA gets the [batched query](benchmarks.md#how-it-is-measured), planned and
  indexed in advance, and returns only the failures, about 30 KB.

**Sustained** is the highest rate at which, for some seconds, every response is right and 99 of 100 arrive within
{CHANGES.limit:g} ms (changes) or {DOCUMENTS.limit:g} ms (documents). The search doubles and halves the rate and then
tests rates in between, with all servers in turns, so that other load on the machine affects all of them. It ends when
a sustained and a failed rate differ by less than an eighth, or after as many runs as there are rates in the last
column. If there are few responses, p99 is the slowest of them.
"""

_OVERLOAD = f"""\
{FACTOR} times the sustained rate of each, with up to {UNDER_WAY:,} requests in flight; further requests are not
sent. By default, policyeng lets {ServerOptions().waiting} requests wait in addition to the running ones, and refuses
the rest with 429. OPA's server has no such limit, and lets all of them wait. Lost requests have no response after
{PATIENCE} seconds. The low rate begins when the overload ends, so its first second competes with requests that still
wait, on the connections and in the server.
"""


def render(outcome: Outcome) -> str:
    """Return the whole page."""
    return "\n".join(_lines(outcome)).rstrip("\n") + "\n"


def _lines(outcome: Outcome) -> Iterator[str]:
    figures = "[benchmarks-serving.json](benchmarks-serving.json)"
    source = f"Written by `make bench-serving`; the figures are in {figures}. {outcome.remark}"
    yield from ("# Benchmarks of the server", "", source.rstrip(), "")
    if outcome.program != "full":
        yield from (f"**A {outcome.program} run: it tests the harness, and its figures prove nothing.**", "")
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
    yield from ("## Overload", "", _OVERLOAD)
    yield from table(
        (
            "server",
            "rate",
            "answered",
            "refused",
            "lost or other",
            "not sent",
            "responses, p50 / p99",
            "refusals, p50 / p99",
        ),
        [_overload(one) for one in outcome.overloaded],
    )
    yield from ("", "All responses were right. Memory, and the first seconds after the overload:", "")
    yield from table(
        ("server", "memory before", "peak", "after", "first second, p50 / p99", "second second, p50 / p99"),
        [_after(one) for one in outcome.overloaded],
    )
    yield from ("", "## How it is measured", "", _HOW)


def _task(task: Task, rows: Sequence[Measured]) -> Iterator[str]:
    head = (
        "server",
        "sustained",
        "p50 / p99 at it",
        f"p50 / p99 at {task.low:g}/s",
        "tested rates, sustained ones in bold",
    )
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
    answered = f"{_times(load.right)} of {load.right.count}" if load.right.count else "no response"
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
