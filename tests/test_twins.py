"""Law 8 of the words that twins share; whole policies are compared in `test_verify_differential.py`."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle import load_bundle
from policyeng.facts import words
from policyeng.models import JsonObject
from tests.drawn import LAW
from tests.probes import Probe

BUNDLE = load_bundle()


def test_there_are_twins() -> None:
    """The three policies that the plan requires are pairs."""
    twins = {policy.id for policy in BUNDLE.policies if policy.rules and policy.python}

    assert {"AML-ISO-101", "AML-RBAC-101", "AML-SKU-101"} <= twins


CLASSIFICATIONS = ["regulated", "Restricted"]
HOME = "object.get(input.snapshot, `home`, null)"
WORDS = Probe(
    "words",
    stage=f"words.stage(input.resource, {HOME})",
    regulated=f"words.regulated(input.resource, {HOME}, {orjson.dumps(CLASSIFICATIONS).decode()})",
)
TAGS = st.dictionaries(
    st.sampled_from(
        [
            "environment",
            "Environment",
            "STAGE",
            "data-classification",
            "Data-Classification",
            "Data_Classification",
            "x",
        ]
    ),
    st.sampled_from(
        [
            "dev",
            " Test ",
            "PRODUCTION",
            "",
            " ",
            "regulated",
            "RESTRICTED ",
            "public",
            "é😀" * 30,
            " x\U0001f600" * 21,
            None,
            7,
            ["dev"],
        ]
    ),
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
    rego = WORDS(resource, {"home": workspace})

    stage = words.stage(resource, workspace)
    regulated = words.regulated(resource, workspace, CLASSIFICATIONS)
    assert rego["stage"] == [{"name": stage.name, "reason": stage.reason}]
    assert rego["regulated"] == [{"decided": regulated.decided, "reason": regulated.reason}]
