"""Conditions of Azure Policy: operators, fields, counts, expressions, and what is not known."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import orjson
import pytest

import tests.azure_policy_plain as plain
from policyeng.azure_policy.aliases import AliasTable, UnknownAliasError, aliases_in, built_in_aliases
from policyeng.azure_policy.conditions import ConditionCompiler
from policyeng.azure_policy.expressions import RefusedError, Scope
from policyeng.azure_policy.values import OPERATORS, SPELLED, NotKnown
from policyeng.rego.markers import MarkedList, MarkedObject, UnknownValue
from tests.azure_policy_generated import ALIASES, KIND, PARAMETERS, PREFIX, make_condition, make_resource

_KIND = KIND.lower()


def compiled(condition: Any, aliases: AliasTable = ALIASES) -> Any:
    """Return the function of a condition."""
    return ConditionCompiler(aliases, _KIND, _KIND, None).compile(condition, "/if").evaluate


def outcome(condition: Any, resource: Any, **context: Any) -> Any:
    """Return the outcome of a condition for a resource: true, false, or the reasons why it is not known."""
    functions = {name: (lambda value=value: value) for name, value in context.items()}
    result = compiled(condition)(Scope(resource, PARAMETERS, functions, resource))
    return [reason for _, reason in result.causes] if isinstance(result, NotKnown) else result


def resource(properties: Any = None, **fields: Any) -> Any:
    """Return a resource of the fictional type."""
    return {"type": KIND, "name": "w", "properties": properties or {}, **fields}


def agree(number: int, seed: int) -> int:
    """Compare the compiler with the plain interpreter; return how many outcomes were decided."""
    random, decided = Random(seed), 0  # noqa: S311  # no secret
    for _ in range(number):
        condition = make_condition(random, 3)
        try:
            function = compiled(condition)
        except RefusedError:  # a count of the list that is being counted
            continue
        for _ in range(4):
            subject = make_resource(random)
            result = function(Scope(subject, PARAMETERS, {}, subject))
            if isinstance(result, NotKnown):
                assert all(" fails: " in reason for _, reason in result.causes), (condition, subject)
                continue
            decided += 1
            assert result is plain.holds(condition, subject, PARAMETERS), (condition, subject)
    return decided


def test_compiler_agrees_with_the_plain_interpreter() -> None:
    """Random conditions on random resources have the same outcome."""
    assert agree(1_000, 11) > 3_500


@pytest.mark.slow
def test_compiler_agrees_on_many_conditions() -> None:
    """As above, for 200,000 pairs."""
    assert agree(50_000, 12) > 190_000


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        if path or key == "properties":
            yield (*path, key)
            yield from _places(inner, (*path, key))
        elif key == "tags":
            yield (key,)


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return MarkedObject(changed) if isinstance(changed, dict) else MarkedList(changed, (), ())


def test_what_is_not_known_decides_nothing_wrongly() -> None:
    """An outcome that is decided without a value is the outcome for every value."""
    random = Random(5)  # noqa: S311  # no secret
    decided = undecided = 0
    while decided + undecided < 1_500:
        condition = make_condition(random, 3)
        try:
            function = compiled(condition)
        except RefusedError:
            continue
        subject = make_resource(random)
        places = [place for place in _places(subject) if place != ("properties",)]
        if not places:
            continue
        place = random.choice(places)
        marked = _replaced(subject, place, UnknownValue("/" + "/".join(map(str, place)), "not read"))
        result = function(Scope(marked, PARAMETERS, {}, marked))
        if isinstance(result, NotKnown):
            undecided += 1
            continue
        decided += 1
        for _ in range(8):
            other = make_resource(random)
            values = [other["properties"].get(name) for name in ("Arr", "obj")]
            values += ["Enabled", "", "10", 3, True, None, [], [{"x": "Enabled", "in": ["abc"]}], {}]
            value = random.choice(values)
            known = copy.deepcopy(subject)
            holder = known
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = value
            other_result = function(Scope(known, PARAMETERS, {}, known))
            assert isinstance(other_result, NotKnown) or other_result is result, (condition, subject, place, value)
    assert decided > 500
    assert undecided > 100


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("equals", "Enabled", "enabled", True),
        ("equals", None, "", True),
        ("equals", "10", 10, True),
        ("equals", True, "True", True),
        ("equals", 1, True, False),
        ("notEquals", None, "Disabled", True),
        ("like", "ml-prod-1", "ML-*-1", True),
        ("like", "abc", "a?c", False),
        ("like", "ab", "ab*b", False),
        ("notLike", None, "x*", True),
        ("match", "ab12", "??##", True),
        ("match", "AB", "ab", False),
        ("matchInsensitively", "AB-1", "ab-#", True),
        ("notMatch", "a", "??", True),
        ("contains", "Contoso", "TOSO", True),
        ("contains", ["A", "b"], "a", True),
        ("notContains", None, "a", True),
        ("in", "EastUS", ["eastus"], True),
        ("in", None, ["x"], False),
        ("notIn", None, ["x"], True),
        ("containsKey", {"Env": 1}, "env", True),
        ("notContainsKey", {"Env": 1}, "env", False),
        ("less", "1000", "365", True),
        ("less", 2, "10", True),
        ("lessOrEquals", 10, 10, True),
        ("greater", "b", "A", True),
        ("greater", True, 1, False),
        ("greaterOrEquals", None, 1, False),
        ("exists", None, "true", False),
        ("exists", "", True, True),
        ("exists", None, False, True),
        ("notMatchInsensitively", "x", "y", True),
    ],
)
def test_operators(operator: str, left: Any, right: Any, expected: bool) -> None:
    """Each operator compares as Azure does; the reasons are in `docs/azure-policy.md`."""
    assert outcome({"field": f"{PREFIX}a", operator: right}, resource({"a": left})) is expected


def test_every_operator_has_a_case() -> None:
    """No operator is added without a row above."""
    [marker] = [mark for mark in test_operators.pytestmark if mark.name == "parametrize"]
    assert {row[0] for row in marker.args[1]} == set(SPELLED.values())
    assert OPERATORS.keys() == SPELLED.keys()


ARRAY = f"{PREFIX}Arr[*]"


@pytest.mark.parametrize(
    ("condition", "properties", "expected"),
    [
        # Outside of a count `[*]` means every member; a list that is missing has none that could.
        ({"field": f"{ARRAY}.x", "equals": 1}, {"Arr": []}, True),
        ({"field": f"{ARRAY}.x", "equals": 1}, {}, False),
        ({"field": f"{ARRAY}.x", "notEquals": 1}, {"Arr": [{}]}, True),
        ({"count": {"field": ARRAY}, "equals": 0}, {}, True),
        ({"count": {"field": f"{PREFIX}Arr"}, "equals": 2}, {"Arr": [1, 2]}, True),
        # `field` inside of a count is a list of one, `current` the value.
        (
            {"count": {"field": ARRAY, "where": {"value": f"[first(field('{ARRAY}.x'))]", "equals": "b"}}, "equals": 1},
            {"Arr": [{"x": "a"}, {"x": "b"}]},
            True,
        ),
        (
            {"count": {"field": ARRAY, "where": {"value": f"[current('{ARRAY}.x')]", "equals": "b"}}, "equals": 1},
            {"Arr": [{"x": "a"}, {"x": "b"}]},
            True,
        ),
        (
            {
                "count": {
                    "value": ["a", "b"],
                    "name": "outer",
                    "where": {
                        "count": {"field": ARRAY, "where": {"field": f"{ARRAY}.x", "equals": "[current('outer')]"}},
                        "greater": 0,
                    },
                },
                "equals": 1,
            },
            {"Arr": [{"x": "b"}]},
            True,
        ),
        ({"value": "[equals(field('Microsoft.T/r/a'), '')]", "equals": True}, {}, True),
        ({"value": "[padLeft('7', 3, '0')]", "equals": "007"}, {}, True),
        ({"value": "[ipRangeContains('10.0.0.0/8', '10.1.0.0-10.1.0.9')]", "equals": "true"}, {}, True),
        ({"value": "[ipRangeContains('10.0.0.0/8', '11.1.0.0/16')]", "equals": "true"}, {}, False),
        ({"value": "[addDays('2026-01-30T00:00:00Z', 3)]", "equals": "2026-02-02T00:00:00Z"}, {}, True),
        ({"value": "[if(false, 1, 2.5)]", "equals": 2.5}, {}, True),
        ({"value": "[tryGet(parameters('o'), 'none')]", "exists": False}, {}, True),
        ({"value": "[union(createArray('a'), createArray('A', 'b'))]", "contains": "b"}, {}, True),
    ],
)
def test_lists_and_expressions(condition: Any, properties: Any, expected: bool) -> None:
    """Lists, counts and functions have the meaning that Azure's own definitions rely on."""
    assert outcome(condition, resource(properties)) is expected


def test_locations_are_compared_without_spaces() -> None:
    """`East US` is `eastus`."""
    assert outcome({"field": "location", "in": ["East US"]}, resource(location="eastus")) is True


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (
            {"value": "[requestContext().apiVersion]", "less": "2019"},
            "`requestContext()` has no value here: there is no request",
        ),
        (
            {"value": "[resourceGroup().tags]", "exists": True},
            "`resourceGroup()` has no value here: the resource is in no resource group",
        ),
        (
            {"value": "[uniqueString('a')]", "equals": "x"},
            "`uniqueString()` has no value here: how Azure computes it is not published",
        ),
        ({"value": "[parameters('none')]", "equals": "x"}, "the parameter `none` has no value"),
        (
            {"value": "[split(field('Microsoft.T/r/a'), '/')]", "equals": "x"},
            "split() fails: null where a string should be",
        ),
        (
            {"field": "[concat('Microsoft.T/r/', 'zz')]", "equals": "x"},
            "unknown alias `Microsoft.T/r/zz`; did you mean `Microsoft.T/r/b`",
        ),
    ],
)
def test_what_cannot_be_decided_is_unknown_with_the_reason(condition: Any, reason: str) -> None:
    """Nothing passes silently."""
    assert outcome(condition, resource()) == [reason]
    assert outcome({"allOf": [condition, {"field": "name", "equals": "other"}]}, resource()) is False
    assert outcome({"anyOf": [condition, {"field": "name", "equals": "W"}]}, resource()) is True
    assert outcome({"not": condition}, resource()) == [reason]


def test_a_list_that_was_not_read_is_not_one_member() -> None:
    """Its count is not known, but for comparisons that any number decides."""
    unread = resource({"Arr": UnknownValue("/properties/Arr", "not read")})
    unread["properties"] = MarkedObject(unread["properties"])
    assert outcome({"count": {"field": ARRAY}, "equals": 1}, unread) == ["not read"]
    assert outcome({"count": {"field": ARRAY}, "greaterOrEquals": 0}, unread) is True
    partly = resource({"Arr": MarkedList([{"x": 1}], (("/properties/Arr", "not all were read"),))})
    assert (
        outcome({"count": {"field": ARRAY, "where": {"field": f"{ARRAY}.x", "equals": 1}}, "greater": 0}, partly)
        is True
    )
    assert outcome({"count": {"field": ARRAY}, "equals": 1}, partly) == ["not all were read"]
    assert outcome({"count": {"field": ARRAY}, "equals": 0}, partly) is False


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ([], "a condition is not an object, at /if"),
        ({"allOf": {}}, "`allOf` is not a list, at /if/allOf"),
        ({"field": "name"}, "a condition has 1 of `field`, `value` and `count`, and 0 operators, at /if"),
        ({"field": "name", "equals": "a", "like": "b"}, "1 of `field`, `value` and `count`, and 2 operators"),
        ({"source": "action", "equals": "a"}, "the key `source` is not supported, at /if"),
        ({"field": "nam", "equals": "a"}, "unknown field `nam`; did you mean `name`"),
        ({"field": f"{PREFIX}obj.kk", "equals": "a"}, "unknown alias `Microsoft.T/r/obj.kk`; did you mean"),
        ({"value": "[nope(1)]", "equals": 1}, "the function `nope` is not supported, at /if/value"),
        ({"value": "[count('a')]", "equals": 1}, "the function `count` is not supported, at /if/value"),
        ({"value": "[current()]", "equals": 1}, "`current()` is outside of a count, at /if/value"),
        ({"value": "[concat('a'", "equals": 1}, ""),
        ({"value": "[concat('a')", "equals": 1}, ""),
        ({"value": "[concat('a',,)]", "equals": 1}, "is not valid: a name is missing before `,`, at /if/value"),
        (
            {"count": {"field": f"{PREFIX}Arr", "where": {}}, "equals": 1},
            "`count` with `where` needs a field that ends with",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(condition: Any, message: str) -> None:
    """A refusal names the construct and its place in the rule."""
    if not message:
        assert outcome(condition, resource()) is False  # a text that does not end with a bracket is text
        return
    with pytest.raises(RefusedError) as caught:
        compiled(condition)
    assert message in str(caught.value)


def test_conditions_and_counts_have_a_depth() -> None:
    """Deep nesting is refused, and is no recursion error."""
    deep: Any = {"field": "name", "equals": "a"}
    for _ in range(100):
        deep = {"not": deep}
    with pytest.raises(RefusedError, match="nested deeper than 64"):
        compiled(deep)
    counts: Any = {"field": "name", "equals": "a"}
    for _ in range(9):
        counts = {"count": {"value": [1], "where": counts}, "equals": 1}
    with pytest.raises(RefusedError, match="nested deeper than 8"):
        compiled(counts)


def test_aliases_are_of_types() -> None:
    """An alias is a field of its own type alone, and some are others for other types."""
    table, vm = built_in_aliases(), "microsoft.compute/virtualmachines"
    name = "Microsoft.MachineLearningServices/workspaces/publicNetworkAccess"
    assert table.steps(name, "microsoft.machinelearningservices/workspaces") == ("properties", "publicNetworkAccess")
    assert table.steps(name, vm) is None
    image = "Microsoft.Compute/imagePublisher"
    assert table.steps(image, vm) == ("properties", "storageProfile", "imageReference", "publisher")
    assert table.steps(image, f"{vm.removesuffix('s')}scalesets") == (
        *("properties", "virtualMachineProfile", "storageProfile", "imageReference", "publisher"),
    )
    assert len(table) > 8_000
    assert "2024-05-28" in table.source
    with pytest.raises(UnknownAliasError, match=r"did you mean `Microsoft.MachineLearningServices/workspaces/public"):
        table.steps(name.replace("Access", "Acces"), vm)
    with pytest.raises(UnknownAliasError, match=r"no aliases of contoso.x are known; give `--aliases`"):
        table.steps("Contoso.X/y/z", vm)


def test_aliases_of_the_provider_call_win() -> None:
    """The output of `az provider list --expand resourceTypes/aliases` adds and replaces aliases."""
    aliases: list[Any] = [{"name": "Contoso.X/y/z", "defaultPath": "properties.deep.z", "paths": []}]
    aliases += [{"name": "Contoso.X/y/old", "paths": [{"path": "properties.old", "apiVersions": ["2020-01-01"]}]}]
    content = b'[{"namespace": "Contoso.X", "resourceTypes": [{"resourceType": "y", "aliases": %s}]}]'
    table = aliases_in(content % orjson.dumps(aliases), "providers.json")
    assert table is not None
    whole = built_in_aliases().updated(table)
    assert whole.steps("contoso.x/Y/z", "contoso.x/y") == ("properties", "deep", "z")
    assert whole.steps("contoso.x/y/old", "contoso.x/y") == ("properties", "old")
    assert whole.steps("Microsoft.Storage/storageAccounts/sku.name", "microsoft.storage/storageaccounts") == (
        "sku",
        "name",
    )
    assert aliases_in(b'{"resourceTypes": []}', "x.json") is None
