"""The engines that a differential run compares. One more engine is one more entry of `contestants`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle
from policyeng.engines import Judgement, OpaOptions, Pair, Work, python
from policyeng.errors import EngineError, UsageError, nearest

#: Every engine that can take part, in the order in which they are asked; the first that covers a policy is the measure.
NAMES = ("embedded", "opa", "python")


@dataclass(frozen=True)
class Contestant:
    """One way of judging.

    Attributes:
        judge: judgements in the order of the pairs, which are all of policies that it covers.
        covers: ids of the policies that it judges.
    """

    name: str
    version: str
    judge: Callable[[Work, Sequence[Pair]], Sequence[Judgement]]
    covers: frozenset[str]


def contestants(bundle: Bundle, *, without: Collection[str] = (), opa: OpaOptions | None = None) -> list[Contestant]:
    """The engines that can judge policies of the bundle, but for those to do without.

    Args:
        bundle: the policies in force.
        without: names of `NAMES`; an engine that is missing and not named here is an error, so that no run claims
            more than it compared.
        opa: which OPA judges; a private one unless given.

    Raises:
        UsageError: `without` names no engine, or leaves none to compare with.
        EngineError: the bundle does not compile, or there is no OPA.
    """
    for name in without:
        if name not in NAMES:
            raise UsageError(
                f"no engine is called `{name}`{nearest(name, NAMES)}", remedy=f"there are {', '.join(NAMES)}"
            )
    present = list(_present(bundle, frozenset(without), opa))
    if len(present) < 2:
        left = ", ".join(entry.name for entry in present) or "none"
        raise UsageError(f"there is nothing to compare: the engines left are {left}", remedy="do without fewer engines")
    return present


def _present(bundle: Bundle, without: frozenset[str], opa: OpaOptions | None) -> Iterator[Contestant]:
    from policyeng.engines import embedded

    embedded.compile_rego(bundle)
    rego = frozenset(policy.id for policy in bundle.policies if policy.rules)
    twins = frozenset(policy.id for policy in bundle.policies if policy.python)
    every: dict[str, Callable[[], Contestant]] = {
        "embedded": lambda: Contestant("embedded", embedded.version(), embedded.judge_pairs, rego),
        "opa": lambda: _opa(rego, opa),
        "python": lambda: Contestant("python", platform.python_version(), _by_python, twins),
    }
    yield from (make() for name, make in every.items() if name not in without)


def _opa(covers: frozenset[str], options: OpaOptions | None) -> Contestant:
    from policyeng.engines import opa

    try:
        version = opa.version(options)
    except EngineError as error:
        remedy = f"{error.remedy}; `--without opa` compares the other engines alone".removeprefix("; ")
        raise EngineError(error.message, place=error.place, remedy=remedy) from error
    return Contestant("opa", version, lambda work, pairs: opa.judge_pairs(work, pairs, options), covers)


def _by_python(work: Work, pairs: Sequence[Pair]) -> list[Judgement]:
    return [python.judge_pair(work, pair) for pair in pairs]
