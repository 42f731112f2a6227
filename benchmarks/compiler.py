"""Compare the Rego compiler with `opa bench` and, if given, another checkout; write `docs/benchmarks-compiler.md`.

`make bench-compiler` runs it. Times are of the CPU, per pair of policy and resource; the rounds are interleaved, and a
figure is the smallest of its rounds, because other work on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_ROUNDS = 9


class Figures(NamedTuple):
    """What was measured.

    Attributes:
        pairs: of the estate.
        ours: microseconds per pair.
        other: the same for another checkout; None without one.
        sampled: pairs that OPA was given.
        ours_sampled: microseconds per pair of these.
        opa: the same for `opa bench`.
        text: milliseconds from the text of the built-in policies to a program.
        cached: the same from the cache.
        peak: MB of the process after the program was compiled, and before.
    """

    pairs: int
    ours: float
    other: float | None
    sampled: int
    ours_sampled: float
    opa: float
    text: float
    cached: float
    peak: tuple[float, float]


def main() -> int:
    """Measure and write; 1 when two contestants decide differently."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiler", description=__doc__)
    parser.add_argument("--opa", type=Path, default=ROOT / ".tools/bin/opa")
    parser.add_argument("--size", type=int, default=1_000, help="resources of the estate")
    parser.add_argument("--against", type=Path, help="another checkout of policyeng, with what it needs installed here")
    parser.add_argument("--named", default="another checkout", help="how the page calls it")
    parser.add_argument("--to", type=Path, default=ROOT / "docs", help="the folder of the page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        figures = measured(Path(folder), given.opa.resolve(), given.size, given.against)
    if figures is None:
        return 1
    (given.to / "benchmarks-compiler.md").write_text(page(figures, given.size, given.named), encoding="utf-8")
    return 0


def measured(folder: Path, opa: Path, size: int, against: Path | None, most: int | None = None) -> Figures | None:
    """Measure an estate of so many resources; None when two contestants decide differently.

    Args:
        folder: for files.
        opa: the program.
        size: resources.
        against: another checkout.
        most: pairs that OPA is given at most.
    """
    from benchmarks import estates

    file = folder / "estate.json"
    file.write_bytes(estates.document(size))
    with _Worker(ROOT, file) as ours:
        other = None
        if against is not None:
            with _Worker(against, file) as worker:
                if worker.started["digest"] != ours.started["digest"]:
                    print("no figures: the checkouts decide differently", file=sys.stderr)
                    return None
                times = [(ours.ask("all"), worker.ask("all")) for _ in range(_ROUNDS)]
                other = min(time for _, time in times) / ours.started["pairs"] * 1e6
                mine = min(time for time, _ in times)
        else:
            mine = min(ours.ask("all") for _ in range(_ROUNDS))
        inputs = folder / "inputs"
        sampled = ours.ask(f"write {inputs}")[:most]
        for each in sampled:
            if (found := _denies(opa, inputs / each["file"], each["query"])) != each["fails"]:
                print(f"no figures: {each['query']} of {each['file']}: OPA gives {found}", file=sys.stderr)
                return None
        by_opa = [_bench(opa, inputs / each["file"], each["query"]) for each in sampled]
        by_us = [min(ours.ask(f"repeat {each['pair']}") for _ in range(3)) for each in sampled]
        pairs = ours.started["pairs"]
    text = min(_alone("text") for _ in range(3))
    cached = min(_alone("cached") for _ in range(5))
    before, after = _alone("before"), _alone("after")
    count = len(sampled)
    return Figures(
        *(pairs, mine / pairs * 1e6, other, count, sum(by_us) / count, sum(by_opa) / count, text, cached),
        peak=(before, after),
    )


def page(figures: Figures, size: int, named: str) -> str:
    """Return the page of some figures."""
    rows = []
    if figures.other is not None:
        ratio = figures.other / figures.ours
        rows.append((f"per pair: {named}", ">= 4x", f"{ratio:.1f}x", ratio >= 4))
    ratio = figures.opa / figures.ours_sampled
    rows.append(("per pair: `opa bench`", ">= 15x", f"{ratio:.1f}x", ratio >= 15))
    rows.append(("the built-in policies, from text", "< 500 ms", f"{figures.text:.0f} ms", figures.text < 500))
    rows.append(("the same from the cache", "< 10 ms", f"{figures.cached:.1f} ms", figures.cached < 10))
    targets = "\n".join(
        f"| {what} | {bar} | {found} | {'met' if met else '**missed**'} |" for what, bar, found, met in rows
    )
    other = f" {named[0].upper()}{named[1:]}: {figures.other:.1f} us." if figures.other is not None else ""
    before, after = figures.peak
    return f"""# Benchmarks of the Rego compiler

Written by `make bench-compiler` on {platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores. Times are CPU times, except those of
`opa bench`, which are wall-clock times. Rounds are interleaved, and each figure is the minimum of its rounds. Every
result is compared before the measurement.

| target | bar | measured |  |
| --- | --- | --- | --- |
{targets}

* An estate of {size:,} resources has {figures.pairs:,} pairs of a resource and a policy in Rego. policyeng takes {figures.ours:.1f} us per
  pair, including the deadline and the limits of each evaluation.{other}
* `opa bench` evaluates a query repeatedly on a parsed input: {figures.opa:.0f} us per pair, the mean of
  {figures.sampled} pairs, one that passes and one that fails for each policy. policyeng takes {figures.ours_sampled:.1f} us for the same pairs.
* Compiling the built-in policies adds {after - before:.0f} MB to a process of {before:.0f} MB.
"""  # noqa: E501  # the lines of the page are shorter than those of its template


class _Worker:
    """A process of a checkout that has read an estate."""

    def __init__(self, root: Path, file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--work", str(root), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started = self._answer()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _answer(self) -> Any:  # what the worker wrote
        if self._process.stdout is None:
            raise RuntimeError("the worker has no output")
        return json.loads(self._process.stdout.readline())

    def ask(self, question: str) -> Any:  # what the worker wrote
        """Return its response."""
        if self._process.stdin is None:
            raise RuntimeError("the worker has no input")
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        return self._answer()


def work(root: Path, file: Path) -> None:
    """Answer questions on standard input; only what checkouts of 0.1 have is imported."""
    sys.path.insert(0, str(root))
    os.chdir(root)
    from benchmarks import preparing
    from policyeng.engines import embedded

    made = preparing.prepared(preparing.whole_bundle(), file)
    policies, given = made.bundle.policies, made.work
    pairs = [pair for pair in given.pairs if policies[pair.policy].rules]
    judgements = embedded.evaluate_pairs(given, pairs)
    lines = sorted(
        f"{policies[pair.policy].id} {pair.subject} {each.applies} {sorted(map(repr, each.denials))} "
        f"{sorted(map(repr, each.unknowns))} {bool(each.error)}"
        for pair, each in zip(pairs, judgements, strict=True)
    )
    _write({"pairs": len(pairs), "digest": sha256("\n".join(lines).encode()).hexdigest()})
    gc.collect()
    gc.disable()
    for line in sys.stdin:
        question, _, rest = line.strip().partition(" ")
        if question == "all":
            _write(_seconds(lambda: embedded.evaluate_pairs(given, pairs)))
        elif question == "repeat":
            repeated = [pairs[int(rest)]] * 500
            _write(_seconds(lambda: embedded.evaluate_pairs(given, repeated)) / 500 * 1e6)  # noqa: B023  # called at once
        else:
            chosen: dict[tuple[int, bool], int] = {}
            for place, (pair, judgement) in enumerate(zip(pairs, judgements, strict=True)):
                if judgement.applies:
                    chosen.setdefault((pair.policy, bool(judgement.denials)), place)
            _write(_inputs(Path(rest), made, [(pairs[place], place, fails) for (_, fails), place in chosen.items()]))


def _inputs(
    folder: Path, made: Any, chosen: Sequence[tuple[Any, int, bool]]
) -> list[dict[str, object]]:  # of either checkout
    from policyeng.engines.embedded import documents_of

    folder.mkdir()
    documents = documents_of(made.work)
    subjects = documents.subjects
    found: list[dict[str, object]] = []
    for number, (pair, place, fails) in enumerate(chosen):
        policy = made.bundle.policies[pair.policy]
        content = {
            "resource": subjects[pair.subject],
            "workspace": subjects[pair.workspace] if pair.workspace >= 0 else None,
            "snapshot": documents.snapshot,
            "parameters": made.work.parameters[pair.policy],
            "as_of": made.work.as_of.isoformat().replace("+00:00", "Z"),
        }
        (folder / f"{number}.json").write_text(json.dumps(content))
        found.append({"file": f"{number}.json", "query": dict(policy.rules)["deny"], "pair": place, "fails": fails})
    return found


def _alone(what: str) -> float:
    """Measure in a process of its own: milliseconds of compiling or loading, or MB before and after."""
    ran = subprocess.run(
        [sys.executable, "-P", __file__, "--alone", what], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return float(ran.stdout)


def alone(what: str) -> None:
    """Print what `_alone` requests."""
    sys.path.insert(0, str(ROOT))
    import resource

    from policyeng.bundle import load_bundle
    from policyeng.engines import embedded
    from policyeng.rego.linking import link

    bundle = load_bundle()
    if what == "text":
        modules = list(embedded.modules_of(bundle))
        print(_seconds(lambda: link(modules, {})) * 1e3)
        return
    if what == "cached":
        print(_seconds(lambda: embedded.compile_rego(bundle)) * 1e3)
        return
    if what == "after":
        link(embedded.modules_of(bundle), {})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _seconds(function: Callable[[], object]) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def _denies(opa: Path, file: Path, query: str) -> object:
    """Return whether a policy denies what OPA is given, or what it printed instead."""
    command = [str(opa), "eval", "--bundle", str(ROOT / "policies"), "--input", str(file), "--format", "raw"]
    ran = subprocess.run([*command, f"count({query}) > 0"], capture_output=True, text=True, check=False)
    return {"true": True, "false": False}.get(ran.stdout.strip(), ran.stdout + ran.stderr)


def _bench(opa: Path, file: Path, query: str) -> float:
    """Return the microseconds of the clock that OPA takes for a query."""
    command = [str(opa), "bench", "--bundle", str(ROOT / "policies"), "--input", str(file), "--format", "json", query]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    return float(found["T"]) / float(found["N"]) / 1e3


def _write(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--alone"]:
        alone(sys.argv[2])
    else:
        sys.exit(main())
