"""The engines that a differential run compares. One more engine is one more entry of `contestants`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle
from policyeng.engines import Judgement, Pair, Work
from policyeng.errors import UsageError, nearest

#: Every engine that can take part, in the order in which they are asked; the first that covers a policy is the measure.
NAMES = ("rvm", "interpreter", "python")


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


def contestants(bundle: Bundle, *, without: Collection[str] = ()) -> list[Contestant]:
    """The engines that can judge policies of the bundle, but for those to do without.

    Raises:
        UsageError: `without` names no engine, or leaves none to compare with.
        EngineError: the bundle does not compile.
    """
    for name in without:
        if name not in NAMES:
            raise UsageError(
                f"no engine is called `{name}`{nearest(name, NAMES)}", remedy=f"there are {', '.join(NAMES)}"
            )
    present = [entry for entry in _present(bundle) if entry.name not in without]
    if len(present) < 2:
        left = ", ".join(entry.name for entry in present) or "none"
        raise UsageError(f"there is nothing to compare: the engines left are {left}", remedy="do without fewer engines")
    return present


def _present(bundle: Bundle) -> Iterator[Contestant]:
    import platform

    from policyeng.engines import embedded, python

    forms = embedded.form_of(bundle)
    yield Contestant(
        "rvm",
        embedded.version(),
        embedded.judge_pairs,
        frozenset(policy.id for policy, form, _ in forms if form == "rvm"),
    )
    yield Contestant(
        "interpreter",
        embedded.version(),
        lambda work, pairs: embedded.judge_pairs(work, pairs, interpreter=True),
        frozenset(policy.id for policy, _, _ in forms),
    )
    yield Contestant(
        "python",
        platform.python_version(),
        lambda work, pairs: [python.judge_pair(work, pair) for pair in pairs],
        frozenset(policy.id for policy in bundle.policies if policy.python),
    )
