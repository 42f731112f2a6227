"""Template expressions: what they are, what the functions make, and what stays unresolved with which reason."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.parsing.arm_expressions import MAX_LENGTH, ExpressionError, parsed, plain
from policyeng.sources.arm_template.evaluator import Resolver
from policyeng.sources.arm_template.expressions import DeploymentTarget, ExpressionBudget, find_unresolved
from policyeng.sources.arm_template.templates import ArmTemplate
from policyeng.sources.parsed import UNKNOWN_SCOPE
from policyeng.sources.templates import Unresolved

GROUP = "/subscriptions/s/resourceGroups/g"
BODY = {
    "parameters": {
        "none": {"type": "string"},
        "five": {"type": "int", "defaultValue": 5},
        "Cased": {"type": "string", "defaultValue": "[toUpper('x')]"},
        "group": {"type": "string", "defaultValue": "[resourceGroup().location]"},
        "loop": {"type": "string", "defaultValue": "[parameters('loop')]"},
        "nullable": {"type": "string", "nullable": True},
        "typed": {"$ref": "#/definitions/optional"},
    },
    "definitions": {"optional": {"type": "object", "nullable": True}},
    "variables": {
        "partly": {"known": "a", "unknown": "[parameters('none')]", "deep": {"list": [1, "[parameters('none')]"]}},
        "copy": [{"name": "made", "count": 3, "input": "[concat('n', copyIndex('made', 1))]"}],
        "inside": {"copy": [{"name": "rows", "count": 2, "input": {"i": "[copyIndex('rows')]"}}]},
        "circle": "[variables('CIRCLE')]",
    },
    "functions": [
        {
            "namespace": "own",
            "members": {
                "twice": {
                    "parameters": [{"name": "text", "type": "string"}],
                    "output": {"type": "string", "value": "[concat(parameters('text'), parameters('text'))]"},
                },
                "forever": {"parameters": [], "output": {"type": "string", "value": "[own.forever()]"}},
            },
        }
    ],
}


def value_of(expression: str, place: str = GROUP) -> object:
    """The value of an expression in the template above."""
    reason = "not stated where" if "{" in place else ""
    template = ArmTemplate(BODY, "", {}, DeploymentTarget(place, reason), ExpressionBudget())
    return Resolver(template.scope).value(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("plain", "plain"),
        ("[[escaped]", "[escaped]"),
        ("[1.5]", 1.5),
        ("[true]", True),
        ("[if(False, 'a', 'b')]", "b"),
        ("[string(true)]", "True"),
        ("[empty(null)]", True),
        ("[not closed", "[not closed"),
        ("['it''s']", "it's"),
        ("[  concat( 'a' ,\n 'b' )  ]", "ab"),
        ("[CONCAT('a', 1, true(), '')]", "a1True"),
        ("[concat(createArray(1), createArray('b'))]", [1, "b"]),
        ("[parameters('FIVE')]", 5),
        ("[parameters('cased')]", "X"),
        ("[parameters('nullable')]", None),
        ("[parameters('typed')]", None),
        ("[variables('made')]", ["n1", "n2", "n3"]),
        ("[variables('inside').rows[1].i]", 1),
        ("[variables('partly').known]", "a"),
        ("[variables('partly')['KNOWN']]", "a"),
        ("[variables('partly').deep.list[0]]", 1),
        ("[length(variables('partly'))]", 3),
        ("[own.twice('ab')]", "abab"),
        ("[format('{0}-{1:D3}-{{x}}', 'a', 7)]", "a-007-{x}"),
        ("[if(true(), 'a', reference('x'))]", "a"),
        ("[if(equals(1, 2), reference('x'), 'b')]", "b"),
        ("[and(false(), parameters('none'))]", False),
        ("[or(true(), parameters('none'))]", True),
        ("[and(true(), true())]", True),
        ("[not(or(false(), false()))]", True),
        ("[coalesce(null(), 'a', reference('x'))]", "a"),
        ("[equals('a', 'A')]", False),
        ("[equals(createObject('a', createArray(1)), json('{\"a\": [1]}'))]", True),
        ("[equals(1, true())]", False),
        ("[less(1, 2)]", True),
        ("[lessOrEquals('b', 'a')]", False),
        ("[greater(2, 1)]", True),
        ("[greaterOrEquals(2, 2)]", True),
        ("[add(2, mul(3, -4))]", -10),
        ("[sub(1, 2)]", -1),
        ("[div(-7, 2)]", -3),
        ("[mod(-7, 2)]", -1),
        ("[min(createArray(3, 1))]", 1),
        ("[max(3, 1)]", 3),
        ("[int('12')]", 12),
        ("[bool('True')]", True),
        ("[bool(0)]", False),
        ("[string(createObject('a', createArray(1, null())))]", '{"a":[1,null]}'),
        ("[json('[1, 2]')]", [1, 2]),
        ("[array('a')]", ["a"]),
        ("[createObject('a', 1, 'b', parameters('five'))]", {"a": 1, "b": 5}),
        ("[union(createObject('a', createObject('x', 1), 'b', 1), createObject('a', createObject('y', 2)))]", None),
        ("[union(createArray(1, 2), createArray(2, 3))]", [1, 2, 3]),
        ("[intersection(createArray(1, 2), createArray(2, 3))]", [2]),
        ("[intersection(createObject('a', 1, 'b', 2), createObject('b', 2))]", {"b": 2}),
        ("[shallowMerge(createArray(createObject('a', 1), createObject('a', 2)))]", {"a": 2}),
        ("[contains('abc', 'b')]", True),
        ("[contains(createArray('b'), 'a')]", False),
        ("[contains(variables('partly'), 'Unknown')]", True),
        ("[empty('')]", True),
        ("[empty(variables('partly'))]", False),
        ("[empty(null())]", True),
        ("[first('ab')]", "a"),
        ("[last(createArray(1, 2))]", 2),
        ("[skip(createArray(1, 2, 3), 1)]", [2, 3]),
        ("[take('abc', 2)]", "ab"),
        ("[range(3, 2)]", [3, 4]),
        ("[tryGet(variables('partly'), 'deep', 'list', 0)]", 1),
        ("[tryGet(variables('partly'), 'no', 'list')]", None),
        ("[items(createObject('b', 1, 'a', 2))]", [{"key": "a", "value": 2}, {"key": "b", "value": 1}]),
        ("[objectKeys(createObject('b', 1, 'a', 2))]", ["a", "b"]),
        ("[flatten(createArray(createArray(1), createArray(2)))]", [1, 2]),
        ("[filter(createArray(1, 2, 3), lambda('x', greater(lambdaVariables('x'), 1)))]", [2, 3]),
        ("[map(createArray('a'), lambda('x', 'i', concat(lambdaVariables('X'), lambdaVariables('i'))))]", ["a0"]),
        ("[reduce(createArray(1, 2), 0, lambda('c', 'n', add(lambdaVariables('c'), lambdaVariables('n'))))]", 3),
        ("[mapValues(createObject('a', 1), lambda('v', add(lambdaVariables('v'), 1)))]", {"a": 2}),
        ("[toObject(createArray('a'), lambda('x', lambdaVariables('x')))]", {"a": "a"}),
        ("[toObject(createArray('a'), lambda('x', 'k'), lambda('x', 1))]", {"k": 1}),
        ("[toLower('ÄB')]", "äb"),
        ("[trim(' a ')]", "a"),
        ("[replace('a-b-c', '-', '')]", "abc"),
        ("[split('a;b,c', createArray(';', ','))]", ["a", "b", "c"]),
        ("[last(split('a/b', '/'))]", "b"),
        ("[join(createArray('a', 1), '-')]", "a-1"),
        ("[substring('abc', 1, 2)]", "bc"),
        ("[substring('abc', 1)]", "bc"),
        ("[indexOf('abC', 'c')]", 2),
        ("[lastIndexOf(createArray(1, 2, 1), 1)]", 2),
        ("[startsWith('Abc', 'a')]", True),
        ("[endsWith('abc', 'd')]", False),
        ("[padLeft(7, 3, '0')]", "007"),
        ("[base64('ab')]", "YWI="),
        ("[base64ToString('YWI=')]", "ab"),
        ("[uri('https://x/a/b.json', 'c.json')]", "https://x/a/c.json"),
        ("[uriComponent('a b/')]", "a%20b%2F"),
        ("[cidrSubnet('10.144.0.0/20', 24, 4)]", "10.144.4.0/24"),
        ("[cidrSubnet('10.144.0.0/20', 24, 15)]", "10.144.15.0/24"),
        ("[cidrSubnet('10.144.0.0/20', 20, 0)]", "10.144.0.0/20"),
        ("[cidrSubnet('fdad:3236:5555::/48', 52, 1)]", "fdad:3236:5555:1000::/52"),
        ("[cidrHost('10.144.3.0/24', 0)]", "10.144.3.1"),
        ("[CidrHost('10.144.3.0/24', 253)]", "10.144.3.254"),
        ("[cidrHost('fdad:3236:5555:3000::/52', 4)]", "fdad:3236:5555:3000::5"),
        (
            "[parseCidr('10.144.0.0/20')]",
            {
                "network": "10.144.0.0",
                "netmask": "255.255.240.0",
                "broadcast": "10.144.15.255",
                "firstUsable": "10.144.0.1",
                "lastUsable": "10.144.15.254",
                "cidr": 20,
            },
        ),
        (
            "[parseCidr('fdad:3236:5555::/48')]",
            {
                "network": "fdad:3236:5555::",
                "netmask": "ffff:ffff:ffff::",
                "firstUsable": "fdad:3236:5555::",
                "lastUsable": "fdad:3236:5555:ffff:ffff:ffff:ffff:ffff",
                "cidr": 48,
            },
        ),
        ("[uriComponentToString('a%20b')]", "a b"),
        ("[resourceGroup().id]", GROUP),
        ("[resourceGroup().name]", "g"),
        ("[subscription().id]", "/subscriptions/s"),
        ("[subscription().subscriptionId]", "s"),
        ("[resourceId('A.B/c', 'x')]", f"{GROUP}/providers/A.B/c/x"),
        ("[resourceId('A.B/c/d', 'x', 'y')]", f"{GROUP}/providers/A.B/c/x/d/y"),
        ("[resourceId('A.B/c/d', 'x/y')]", f"{GROUP}/providers/A.B/c/x/d/y"),
        ("[resourceId('h', 'A.B/c', 'x')]", "/subscriptions/s/resourceGroups/h/providers/A.B/c/x"),
        ("[resourceId('t', 'h', 'A.B/c', 'x')]", "/subscriptions/t/resourceGroups/h/providers/A.B/c/x"),
        ("[subscriptionResourceId('A.B/c', 'x')]", "/subscriptions/s/providers/A.B/c/x"),
        ("[subscriptionResourceId('t', 'A.B/c', 'x')]", "/subscriptions/t/providers/A.B/c/x"),
        ("[tenantResourceId('A.B/c', 'x')]", "/providers/A.B/c/x"),
        ("[extensionResourceId(resourceGroup().id, 'A.B/c', 'x')]", f"{GROUP}/providers/A.B/c/x"),
    ],
)
def test_known_expressions_are_evaluated(expression: str, value: object) -> None:
    """As the examples of the documentation have it."""
    if expression.startswith("[union(createObject"):
        value = {"a": {"x": 1, "y": 2}, "b": 1}
    found = value_of(expression)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "cause", "text"),
    [
        ("[parameters('none')]", "the parameter `none` has no value; give `--parameters none=...`", "{none}"),
        ("[parameters('group')]", "give `--parameters group=<region>`", "{group}"),
        ("[parameters('missing')]", "the template declares no parameter `missing`", "{missing}"),
        ("[parameters('loop')]", "refers to itself", "{loop}"),
        ("[variables('circle')]", "the variable `circle` refers to itself", "{circle}"),
        ("[variables('partly').unknown]", "the parameter `none` has no value", "{none}"),
        ("[variables('partly').absent]", "there is no `absent` in it", ""),
        ("[concat('a-', parameters('none'))]", "the parameter `none` has no value", "a-{none}"),
        ("[format('{0}/c', parameters('none'))]", "the parameter `none` has no value", "{none}/c"),
        ("[toLower(parameters('none'))]", "the parameter `none` has no value", "{none}"),
        ("[split(parameters('none'), '/')[8]]", "the parameter `none` has no value", "{split(none,~)[8]}"),
        (
            "[if(equals(parameters('none'), 'a'), 1, 2)]",
            "the parameter `none` has no value",
            "{if(equals(none,a),1,2)}",
        ),
        ("[uniqueString(resourceGroup().id)]", "is computed at deployment", "{uniquestring(resourceGroups~g)}"),
        ("[newGuid()]", "a different value at each deployment", "{newguid()}"),
        ("[reference('x').outputs.y.value]", "known only after deployment", ""),
        ("[listKeys('x', '2020').keys[0]]", "known only after deployment", ""),
        ("[resourceGroup().location]", "give `--parameters location=<region>`", "{location}"),
        ("[subscription().tenantId]", "only at deployment", "{tenantId}"),
        ("[environment().name]", "depends on the cloud", ""),
        ("[noSuchFunction(1)]", "the function `noSuchFunction` is not supported", ""),
        ("[concat('a'", "concat('a'", ""),
        ("[concat('a']", "the expression cannot be evaluated: `,` is missing", ""),
        ("[concat(a)]", "the expression cannot be evaluated: `(` is missing", ""),
        ("[1.5.2]", "expression cannot be evaluated", ""),
        ("[]", "it ends too early", ""),
        ("[add('a', 1)]", "`add(...)` fails: a string where a whole number should be", ""),
        ("[add(1)]", "`add` does not take 1 arguments", ""),
        ("[div(1, 0)]", "division by zero", ""),
        ("[substring('abc', 2, 5)]", "range is outside of the string", ""),
        ("[createArray(1)[3]]", "there is no `3` in it", ""),
        ("[resourceId('A.B/c/d', 'x')]", "takes 2 names, not 1", ""),
        ("[format('{1}', 'a')]", "an argument that is missing", ""),
        ("[range(0, 100000)]", "0 to 10000 numbers", ""),
        ("[json('{')]", "it is not JSON", ""),
        ("[copyIndex()]", "is not inside such a copy loop", "{copyIndex}"),
        ("[lambdaVariables('x')]", "does not name a variable of an enclosing lambda", ""),
        ("[filter(createArray(1), lambda('x', 1))]", "a filter must return true or false", ""),
        ("[own.forever()]", "nested deeper than 80 levels", ""),
        ("[padLeft('a', 99999999)]", "the length is too large", ""),
        ("[cidrSubnet(parameters('none'), 24, 0)]", "the parameter `none` has no value", ""),
        ("[cidrSubnet('10.144.0.0/20', 24, 16)]", "it has no subnet of that index", ""),
        ("[cidrSubnet('10.144.0.0/20', 24, -1)]", "it has no subnet of that index", ""),
        ("[cidrSubnet('10.144.0.0/20', 19, 0)]", "a subnet of it has a length of 20 to 32", ""),
        ("[cidrSubnet('10.144.0.0/20', 33, 0)]", "a subnet of it has a length of 20 to 32", ""),
        ("[cidrSubnet('10.144.0.0/20', '24', 0)]", "a string where a whole number should be", ""),
        ("[cidrSubnet('10.144.0.1/20', 24, 0)]", "it is not a network in CIDR notation", ""),
        ("[cidrHost('10.144.3.0/24', 254)]", "it has no usable address of that index", ""),
        ("[cidrHost('10.144.3.0/24', -1)]", "it has no usable address of that index", ""),
        ("[cidrHost('10.144.3.0/31', 0)]", "usable addresses of such a small network", ""),
        ("[parseCidr('10.144.3.0')]", "it is not a network in CIDR notation", ""),
        ("[parseCidr('10.144.3.0/255.255.255.0')]", "it is not a network in CIDR notation", ""),
        ("[parseCidr('10.144.3.0/33')]", "it is not a network in CIDR notation", ""),
        ("[parseCidr(1)]", "a number where a string should be", ""),
    ],
)
def test_unknown_values_state_why(expression: str, cause: str, text: str) -> None:
    """The reason names the expression, the cause and, where there is one, the remedy."""
    found = value_of(expression)
    if not expression.endswith("]"):
        assert found == expression
        return
    assert isinstance(found, Unresolved)
    assert cause in found.reason
    assert found.reason.startswith("`[")
    assert "/" not in found.text.removeprefix("{").replace("}/c", "")
    assert not text or found.text == text


def test_ids_in_an_unknown_group_keep_their_form() -> None:
    """The unknown parts of an id are in braces, so that the id still identifies the resource."""
    found = value_of("[resourceId('A.B/c', parameters('none'))]", UNKNOWN_SCOPE)
    assert isinstance(found, Unresolved)
    assert found.text == f"{UNKNOWN_SCOPE}/providers/A.B/c/{{none}}"
    name = value_of("[concat(resourceGroup().name, '-ws')]", UNKNOWN_SCOPE)
    assert isinstance(name, Unresolved)
    assert (name.text, "not stated where" in name.reason) == ("{resource-group}-ws", True)


def test_an_object_is_known_but_for_its_unknown_parts() -> None:
    """A function that only joins does not hide known parts."""
    found = value_of("[union(variables('partly'), createObject('more', 1))]")
    assert isinstance(found, dict)
    assert (found["known"], found["more"]) == ("a", 1)
    assert isinstance(found["unknown"], Unresolved)


def test_alike_expressions_have_alike_placeholders() -> None:
    """Others do not, so that two resources stay two."""
    texts = [
        getattr(value_of(f"[uniqueString({of})]"), "text", "")
        for of in ("resourceGroup().id", "resourceGroup().id", "subscription().id", "'a'", "createArray(1)")
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


@pytest.mark.parametrize(
    "variables",
    [
        {
            "v0": "xxxxxxxxxxxxxxxx",
            **{f"v{n}": f"[concat(variables('v{n - 1}'), variables('v{n - 1}'))]" for n in range(1, 60)},
        },
        {
            "v0": [1, 2],
            **{f"v{n}": {"a": f"[variables('v{n - 1}')]", "b": f"[variables('v{n - 1}')]"} for n in range(1, 60)},
        },
        {"v0": [1], **{f"v{n}": f"[createArray(variables('v{n - 1}'), variables('v{n - 1}'))]" for n in range(1, 60)}},
        {f"v{n}": f"[variables('v{n - 1}')]" for n in range(3000)},
        {"v59": "[reduce(range(0, 5000), '', lambda('c', 'n', concat(lambdaVariables('c'), 'aaaaaaaaaaaaaaaa')))]"},
        {"v59": "[map(range(0, 9999), lambda('a', map(range(0, 9999), lambda('b', 1))))]"},
        {"copy": [{"name": "v59", "count": 800, "input": {"copy": [{"name": "x", "count": 800, "input": [1, 2, 3]}]}}]},
    ],
    ids=["texts", "objects", "lists", "chain", "reduce", "map", "copies"],
)
def test_expressions_that_grow_without_end_are_unresolved(variables: dict[str, object]) -> None:
    """In bounded time and memory, and without an exception."""
    start = time.thread_time()
    last = "v2999" if "v2999" in variables else "v59"
    template = ArmTemplate({"variables": variables}, "", {}, DeploymentTarget(GROUP), ExpressionBudget())
    found = Resolver(template.scope).value(f"[variables('{last}')]")
    unknown = find_unresolved(found)
    assert unknown is not None
    assert "produce more than" in unknown.reason or "nested deeper" in unknown.reason or "deeper than" in unknown.reason
    assert time.thread_time() - start < 20


@pytest.mark.parametrize("text", [f"[{'f(' * 3000}{')' * 3000}]", f"[f(){'.a' * 3000}]", f"[f({'1,' * MAX_LENGTH}1)]"])
def test_expressions_are_bounded(text: str) -> None:
    """Too deep or too long is none."""
    with pytest.raises(ExpressionError):
        parsed(text)


@given(st.text(alphabet="[]()'.,{}ab01 -concatif", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_value(text: str) -> None:
    """Whatever is in brackets, nothing is raised."""
    found = value_of(f"[{text}]")
    assert found == plain(f"[{text}]") or isinstance(found, Unresolved | str | int | list | dict | bool | None)
