"""Four times the estate takes about four times the steps, for every policy: none walks what it need not.

Steps are lines of Python that run, in policies, in compiled Rego and in what they call; a loop in C is none. Estates grow
in two ways: subscriptions side by side, and one workspace with ever more of everything in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from types import FrameType
from typing import Any

import orjson
import pytest

from benchmarks.estates import ROOT
from policyeng import load_bundle, load_snapshot
from policyeng.bundle import Bundle
from policyeng.engines import judge
from policyeng.engines.embedded import compile_rego
from policyeng.evaluation.context import EvaluationContext, prepare
from policyeng.models import JsonObject
from policyeng.verify.cases import STATED, Baselines

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SMALL, LARGE = 6, 24
#: Quadratic work takes 16 times as many steps, less what does not grow.
MOST = 5.0
_ONCE = frozenset(("workspace", "virtual_network"))


def count_steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python run, with the calls and returns around them."""
    steps = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


if __name__ == "__main__":
    import time, tempfile
    from tests import growing_estates

    bundle = load_bundle(ROOT / "policies")
    compile_rego(bundle)
    PAR = {"AML-RBAC-104": {"approver_roles": ["Owner"]}}
    for name in ("subscriptions", "workspaces", "computes"):
        t = time.time()
        found = {}
        for size in (SMALL, LARGE):
            path = "/tmp/growing.json"
            open(path, "wb").write(getattr(growing_estates, name)(size))
            print(name, size, "load", count_steps(lambda: load_snapshot(path)))
            s = load_snapshot(path)
            print(size, len(s.resources), "prep", count_steps(lambda: prepare(bundle, s, PAR)))
            p = prepare(bundle, s, PAR)
            w = p.work(AS_OF)
            for k, pol in enumerate(bundle.policies):
                prs = [x for x in w.pairs if x.policy == k]
                ww = replace(p.work(AS_OF), pairs=prs)
                js = []
                c = count_steps(lambda: js.extend(judge(ww)))
                from collections import Counter

                cc = Counter(
                    "error"
                    if j.error
                    else "skip"
                    if not j.applies
                    else "fail"
                    if j.denials
                    else "unk"
                    if j.unknowns
                    else "pass"
                    for j in js
                )
                found.setdefault(pol.id, []).append((c, len(prs), dict(cc)))
        for k, v in sorted(found.items(), key=lambda x: -x[1][1][0] / x[1][0][0]):
            print("  ", k, round(v[1][0] / v[0][0], 2), v)
        print(time.time() - t)
