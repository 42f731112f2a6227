"""Four times the estate takes about four times the steps, for every policy: none walks what it need not.

Steps are lines of Python that run, those of policies, of compiled Rego and of what they call. A loop in C is one step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.preparing import AS_OF, whole_bundle
from policyeng import load_bundle, load_snapshot
from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import selected
from policyeng.engines import run_engine
from policyeng.engines.embedded import compile_rego
from policyeng.evaluation.context import prepare
from policyeng.models import WORKSPACE_TYPE
from tests import bundles
from tests.growing_estates import ESTATES, Estate, computes, subscriptions, workspaces
from tests.growth import FACTOR

SMALL = 8
LARGE = FACTOR * SMALL
#: Quadratic work takes 16 times as many steps, less what of it is linear.
MOST = 4.2
#: Without them AML-RBAC-104 requires no role.
PARAMETERS = {"AML-RBAC-104": {"approver_roles": ["Owner"]}}
LINEAR = """
deny contains "another has its id" if {
	id := input.resource.id
	count([other | some other in input.snapshot.resources; other.id == id]) > 1
}
"""
QUADRATIC = """
deny contains "nothing is in it" if {
	count([other | some other in input.snapshot.resources; startswith(other.id, input.resource.id)]) == 1
}
"""
QUADRATIC_PYTHON = f"""
from policyeng import Denial, policy

@policy(id="T-A-1", title="It is the only one", severity="high", judges=["{WORKSPACE_TYPE}"])
def only(given):
    if sum(one["name"] == given.resource["name"] for one in given.snapshot.resources) > 1:
        yield Denial(msg="another has its name")
"""


def count_steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python run, with the calls and returns around them, when work is done again."""
    work()  # what is loaded or remembered once is not counted
    steps = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> object:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]  # it returns itself, which has no name as a type
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def steps_of_policies(bundle: Bundle, file: Path) -> Iterator[tuple[str, int, int]]:
    """Yield the ids of policies with the number of resources that they evaluate and the steps that they take."""
    compile_rego(bundle)  # where steps are counted, programs are compiled for a debugger
    prepared = prepare(bundle, load_snapshot(file), PARAMETERS if len(bundle.policies) > 1 else None)
    positions = prepared.work(AS_OF).positions
    for number, policy in enumerate(bundle.policies):

        def work(number: int = number) -> object:
            return run_engine(prepared.work(AS_OF).only({number}))

        yield policy.id, len(positions.get(number, ())), count_steps(work)


def growths(bundle: Bundle, folder: Path, estate: Estate) -> dict[str, float]:
    """Return how many times the steps of each policy grow that evaluates four times as many resources."""
    small, large = (steps_of_policies(bundle, written(folder, estate, size)) for size in (SMALL, LARGE))
    return {
        policy: many / few
        for (policy, evaluated, few), (_, more, many) in zip(small, large, strict=True)
        if more > 2 * evaluated > 0
    }


def written(folder: Path, estate: Estate, size: int) -> Path:
    """Write an estate and return its file."""
    file = folder / f"{estate.__name__}-{size}.json"
    file.write_bytes(estate(size))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("estate", ESTATES, ids=lambda estate: estate.__name__)
def test_no_policy_walks_what_it_need_not(estate: Estate, tmp_path: Path) -> None:
    """An estate of four times the size takes each policy about four times the steps."""
    found = growths(whole_bundle(), tmp_path, estate)

    assert {policy: growth for policy, growth in found.items() if growth > MOST} == {}
    if estate is subscriptions:
        assert set(found) == {policy.id for policy in whole_bundle().policies}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "estate"),
    [
        pytest.param("AML-END-010", computes, id="an endpoint with the deployments of others"),
        pytest.param("AML-END-204", subscriptions, id="an account with the connections to others"),
    ],
)
def test_what_belongs_together_is_not_compared_with_all_others(policy: str, estate: Estate, tmp_path: Path) -> None:
    """The scan of them costs little for each, so only a large estate shows it."""
    bundle = selected(whole_bundle(), [policy])
    [(_, few, before)], [(_, many, after)] = (
        steps_of_policies(bundle, written(tmp_path, estate, size)) for size in (LARGE, FACTOR * LARGE)
    )

    assert many == FACTOR * few
    assert after < FACTOR * before


@pytest.mark.slow
@pytest.mark.parametrize("estate", ESTATES, ids=lambda estate: estate.__name__)
def test_preparation_is_linear(estate: Estate, tmp_path: Path) -> None:
    """So does reading an estate, indexing it and deriving its workloads."""
    steps = []
    for size in (SMALL, LARGE):
        file = written(tmp_path, estate, size)
        snapshot = load_snapshot(file)
        steps.append(
            [count_steps(partial(load_snapshot, file)), count_steps(partial(prepare, whole_bundle(), snapshot))]
        )

    (loading, preparing), (later_loading, later_preparing) = steps
    assert later_loading / loading < MOST
    assert later_preparing / preparing < MOST


@pytest.mark.parametrize(
    ("files", "is_linear"),
    [
        pytest.param({"a/p/p.rego": bundles.rego("p", LINEAR)}, True, id="by equality"),
        pytest.param({"a/p/p.rego": bundles.rego("p", QUADRATIC)}, False, id="Rego"),
        pytest.param({"a/p/p.py": QUADRATIC_PYTHON}, False, id="Python"),
    ],
)
def test_a_walk_through_all_resources_is_noticed(files: dict[str, str], is_linear: bool, tmp_path: Path) -> None:
    """A policy that compares each workspace with all resources takes many more steps, unless it looks them up."""
    bundle = load_bundle(bundles.write(tmp_path / "policies", files))

    (growth,) = growths(bundle, tmp_path, workspaces).values()

    assert (growth < MOST) is is_linear
    assert growth < MOST or growth > 2 * FACTOR
