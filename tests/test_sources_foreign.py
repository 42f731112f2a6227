"""Fields that a kind of resource does not have: no policy looks at them there."""

from __future__ import annotations

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, baselines_of
from policyeng.models import Evaluation, JsonObject, Snapshot
from policyeng.parsing.json_pointer import value_at
from policyeng.sources.field_mapping import list_foreign_pointers, put_value
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.laws.law import find_first_difference

BUNDLE = load_bundle()
BASELINES = baselines_of(BUNDLE)
#: Without the policies that search all properties, whatever their names are.
BY_NAME = BUNDLE.only([one for one in BUNDLE.policies if "/properties" not in observe(BUNDLE, one).pointers])
#: Jobs of the old SDK and of API version 2021-03-01-preview have them, so policies read them there.
OF_OLD = ("/properties/compute_id", "/properties/compute/target")


def _with_foreign_fields(resource: JsonObject, value: object) -> JsonObject:
    """A resource with a value in every field that its kind does not have; None is what others have there."""
    strange = copied_object(resource)
    for pointer in list_foreign_pointers(resource):
        there = (found for other in BASELINES.resources.values() if (found := value_at(other, pointer)) is not None)
        if pointer not in OF_OLD:
            put_value(strange, pointer, next(there, "text") if value is None else value)
    return strange


def _evaluated(resources: list[JsonObject]) -> Evaluation:
    document = {**BASELINES.stated, "resources": tuple(resources)}
    return evaluate(BY_NAME, Snapshot.model_validate(document), as_of=DEFAULT_AS_OF)


@pytest.mark.parametrize("value", [None, "text", "AKS", 7, True, [{}], {"name": "a"}], ids=str)
def test_no_policy_looks_at_a_field_that_the_kind_does_not_have(value: object) -> None:
    """Formats that have no such field and those that let one write it give the same."""
    plain = list(BASELINES.resources.values())
    strange = [_with_foreign_fields(resource, value) for resource in plain]

    assert len(BY_NAME.policies) >= len(BUNDLE.policies) - 2
    assert sum(one != other for one, other in zip(plain, strange, strict=True)) > len(plain) / 2
    assert (
        find_first_difference(_evaluated(plain), _evaluated(strange), lambda found: (found.outcome, found.denials))
        is None
    )
