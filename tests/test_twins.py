"""Law 8: the two forms of a policy say the same of every resource, and so do both ways of judging Rego."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from policyeng import _native
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, Work, embedded, python
from policyeng.evaluation.estate import estate_of
from policyeng.evaluation.plan import plan
from policyeng.facts import words
from policyeng.models import Denial, JsonObject, Snapshot, Unknown
from policyeng.verify.cases import Baselines
from tests.conftest import ROOT
from tests.strategies import snapshots
from tests.test_laws import LAW

BUNDLE = load_bundle()
TWINS = BUNDLE.only(policy for policy in BUNDLE.policies if policy.rules and policy.python)
REGO = BUNDLE.only(policy for policy in BUNDLE.policies if policy.rules)
ESTATES = snapshots(Baselines.read(ROOT / "samples" / "baselines"))
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))


def work(snapshot: Snapshot, as_of: datetime, bundle: Bundle) -> Work:
    """What an engine is given for a snapshot."""
    estate = estate_of(snapshot, bundle.facts)
    return Work(
        bundle=bundle,
        snapshot=estate.view,
        subjects=[subject.document for subject in estate.subjects],
        document=estate.document,
        pairs=[entry.pair for entry in plan(bundle, estate)],
        parameters=parameters_of(bundle, {}),
        as_of=as_of,
    )


def said(judgement: Judgement) -> tuple[object, ...]:
    """A judgement without the order of its parts."""
    if not judgement.applies:
        return (False,)
    return (judgement.error is None, _ordered(judgement.denials), _ordered(judgement.unknowns))


def _ordered(parts: Iterable[Denial | Unknown]) -> list[bytes]:
    return sorted(orjson.dumps(part.model_dump(), option=orjson.OPT_SORT_KEYS) for part in parts)


def test_there_are_twins() -> None:
    """The three policies that the plan asks for are pairs."""
    assert {"AML-ISO-101", "AML-RBAC-101", "AML-SKU-101"} <= {policy.id for policy in TWINS.policies}


@LAW
@given(ESTATES, MOMENTS)
def test_twins_agree(snapshot: Snapshot, as_of: datetime) -> None:
    """Rego and Python give the same denials and unknowns, and apply to the same resources."""
    given_work = work(snapshot, as_of, TWINS)

    for pair, judgement in zip(given_work.pairs, embedded.judge_pairs(given_work, given_work.pairs), strict=True):
        assert said(judgement) == said(python.judge_pair(given_work, pair)), TWINS.policies[pair.policy].id


@LAW
@given(ESTATES, MOMENTS)
def test_both_ways_of_judging_rego_agree(snapshot: Snapshot, as_of: datetime) -> None:
    """The virtual machine and the interpreter give the same for every policy in Rego."""
    given_work = work(snapshot, as_of, REGO)
    policies = [(policy.id, list(policy.rules)) for policy in REGO.policies]
    interpreter = _native.Program(list(REGO.modules), REGO.data_bytes, policies, interpreter=True)
    pairs = [(pair.policy, pair.subject, pair.workspace) for pair in given_work.pairs]
    parameters = [orjson.dumps(values) for values in given_work.parameters]
    moment = as_of.isoformat().replace("+00:00", "Z")

    slow = interpreter.judge(_native.Documents(given_work.document), pairs, parameters, moment)
    fast = embedded.judge_pairs(given_work, given_work.pairs)

    for pair, left, right in zip(given_work.pairs, fast, map(embedded.judgement_of, slow), strict=True):
        assert said(left) == said(right), REGO.policies[pair.policy].id


WORDS = """
package probe
import data.lib.words

deny contains {"msg": "m", "actual": said}

said := {
	"stage": words.stage(input.resource, input.workspace),
	"regulated": words.regulated(input.resource, input.workspace, ["regulated", "Restricted"]),
}
"""
TAGS = st.dictionaries(
    st.sampled_from(["environment", "Environment", "STAGE", "data-classification", "Data-Classification", "x"]),
    st.sampled_from(["dev", " Test ", "PRODUCTION", "", " ", "regulated", "RESTRICTED ", "public", None, 7, ["dev"]]),
    max_size=3,
)
HOLDERS: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {"id": st.just("/a/b"), "type": st.just("t")},
    optional={
        "tags": st.one_of(TAGS, st.none(), st.just("text")),
        "properties": st.fixed_dictionaries(
            {},
            optional={"tags": TAGS, "hbiWorkspace": st.sampled_from([True, False, None, "true", " True", "no", 1, []])},
        ),
    },
)


@LAW
@given(HOLDERS, st.one_of(st.none(), HOLDERS))
def test_the_shared_words_mean_the_same_in_both_languages(resource: JsonObject, workspace: JsonObject | None) -> None:
    """`stage` and `regulated` of `lib.words` and of `policyeng.facts.words` agree, with their reasons."""
    resources = [resource] if workspace is None else [resource, {**workspace, "id": "/c/d"}]
    document = _native.Documents(orjson.dumps({"resources": resources, "workloads": [], "approvals": []}))
    modules = [*BUNDLE.modules, ("probe.rego", WORDS)]
    program = _native.Program(modules, BUNDLE.data_bytes, [("probe", [("deny", "data.probe.deny")])])

    (verdict,) = program.judge(document, [(0, 0, len(resources) - 1 or -1)], [b"{}"], "2026-06-01T00:00:00Z")

    stage = words.stage(resource, workspace)
    regulated = words.regulated(resource, workspace, ["regulated", "Restricted"])
    assert isinstance(verdict, bytes), verdict
    assert orjson.loads(verdict)["deny"][0]["actual"] == {
        "stage": {"name": stage.name, "reason": stage.reason},
        "regulated": {"decided": regulated.decided, "reason": regulated.reason},
    }
