"""Which policies may look at the clock, and the moments at which their outcomes may change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.analysis import EVERYTHING
from policyeng.bundle.moments import moments
from tests.bundles import deny_when, rego, write


def timeless(bundle: Bundle) -> set[str]:
    """The ids of the policies that surely do not read the clock."""
    return {policy.id for policy, is_clocked in zip(bundle.policies, bundle.clocked, strict=True) if not is_clocked}


PYTHON = '''\
"""A policy."""

{imports}
from policyeng import Denial, policy


@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def a(given):
    """Deny nothing."""
    {body}
    yield from ()
'''


@pytest.mark.parametrize(
    ("condition", "looks"),
    [
        ("input.resource.properties.x == 1", False),
        ("input.snapshot.resources[_].properties.x == 1", False),
        ('input.parameters["as"] == 1 # as of when\n', False),
        ("input.as_of > `2026`", True),
        ('input["as_of" ] == 1', True),
        ("time.now_ns() == 1", True),
        ('time["now_ns"]() == 1', True),
        ('input[concat("_", ["as", "of"])] == 1', True),
        ("some part in input", True),
        ("data.lib.far.looks(input.resource)", True),
        ("data.lib.near.looks(input.resource)", False),
        ('data[concat("", ["l", "ib"])].far.looks(1)', True),
        ('input.resource.tags["data-classification"] == "as in as_of"', False),
    ],
)
def test_rego_that_names_the_clock_may_look_at_it(tmp_path: Path, condition: str, looks: bool) -> None:
    """Its own text, and that of the modules that it refers to, without texts and comments; in doubt it does."""
    write(
        tmp_path,
        {
            "area/a/a.rego": rego("a", deny_when(condition)),
            "lib/far.rego": "package lib.far\n\nlooks(_) if input.as_of == 1\n",
            "lib/near.rego": "package lib.near\n\nlooks(x) if x == 1\n",
        },
    )

    assert timeless(load_bundle(tmp_path)) == (set() if looks else {"T-A-1"})


@pytest.mark.parametrize(
    ("imports", "body", "looks"),
    [
        ("", "given.resource", False),
        ("from collections.abc import Iterator", '"at the time"', False),
        ("", "given.as_of", True),
        ("", 'getattr(given, "as" + "_of")', True),
        ("import operator", 'operator.attrgetter("as_of")(given)', True),
        ("", 'f"{given.as_of}"', True),
        ("", "given.__reduce__", True),
    ],
)
def test_python_that_names_the_clock_may_look_at_it(tmp_path: Path, imports: str, body: str, looks: bool) -> None:
    """So may what reaches for names that are worked out, and what imports modules that are not known."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.py": PYTHON.format(imports=imports, body=body)}))

    assert timeless(bundle) == (set() if looks else {"T-A-1"})


def test_moments_are_dates_and_the_days_before_and_after_them(tmp_path: Path) -> None:
    """Dates in facts, in code and in what is evaluated, moved by numbers of code and parameters."""
    more = "parameters:\n  notice: {type: integer, default: 20, description: days}"
    text = rego("a", deny_when("input.as_of > `2026-05-01T12:00:00Z`; 7 > 0"), more=more)
    facts = {"area/a/a.rego": text, "facts/t/data.json": '{"x": {"date": "2026-03-10"}}'}
    bundle = load_bundle(write(tmp_path, facts))
    types = {"microsoft.machinelearningservices/workspaces"}

    found = moments(bundle, [{"notice": 20}], [{"tags": {"until": "2026-09-30T02:00:00+02:00"}}], types)

    assert {datetime(2026, 3, 10, tzinfo=UTC), datetime(2026, 2, 18, tzinfo=UTC)} <= set(found)
    assert {datetime(2026, 5, 1, 12, tzinfo=UTC), datetime(2026, 5, 8, 12, tzinfo=UTC)} <= set(found)
    assert datetime(2026, 9, 23, tzinfo=UTC) in found
    assert moments(bundle, [{"notice": 20}], [], frozenset()) == [datetime(2026, 3, 10, tzinfo=UTC)]


def test_the_text_of_each_built_in_policy_shows_what_it_reads() -> None:
    """Otherwise it counts as one that reads everything, and is evaluated again whenever anything changes."""
    bundle = load_bundle()
    hidden = [reach._replace(types=frozenset()) == EVERYTHING for reach in bundle.reaches]

    assert [policy.id for policy, is_hidden in zip(bundle.policies, hidden, strict=True) if is_hidden] == []
