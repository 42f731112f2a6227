"""Random conditions of Azure Policy, and random resources for them."""

from __future__ import annotations

from random import Random
from typing import Any

from policyeng.azure_policy.aliases import AliasTable
from policyeng.azure_policy.values import SPELLED

KIND = "Microsoft.T/r"
PREFIX = f"{KIND}/"
#: The aliases of the fictional type.
ALIASES = AliasTable(
    (
        (PREFIX + name, f"properties.{name}", KIND)
        for name in (
            "a",
            "b",
            "obj",
            "obj.k",
            "obj.l",
            "Arr",
            "Arr[*]",
            "Arr[*].x",
            "Arr[*].Y",
            "Arr[*].in[*]",
            "Arr[*].in[*].z",
        )
    ),
    "tests",
)
PARAMETERS: dict[str, Any] = {"p": "Enabled", "n": 10, "l": ["Enabled", "10", "eastus"], "o": {"q": "x"}}
_SCALARS = [
    *("Enabled", "enabled", "DISABLED", "", " ", "10", "9", "010", "1.5", "abc", "a*c", "true", "False", "null"),
    *("2024-01-01", "é", "É", True, False, 0, 1, 10, 9, 1.5, -1, None),
]
_FIELDS = [
    *("name", "location", "tags", "tags[env]", "tags['cost center']"),
    *(PREFIX + name for name in ("a", "b", "obj", "obj.k", "OBJ.l", "Arr", "arr")),
]
_STARRED = [PREFIX + name for name in ("Arr[*]", "Arr[*].x", "Arr[*].y", "arr[*].in[*]", "Arr[*].in[*].z")]


def _element(random: Random) -> Any:
    if random.random() < 0.25:
        return random.choice(_SCALARS)
    element: dict[str, Any] = {name: random.choice(_SCALARS) for name in ("x", "Y") if random.random() < 0.7}
    if random.random() < 0.7:
        values = (random.choice(_SCALARS) for _ in range(random.randint(0, 3)))
        element["in"] = [value if random.random() < 0.5 else {"z": value} for value in values]
    return element


def make_resource(random: Random) -> dict[str, Any]:
    """Return a resource."""
    properties: dict[str, Any] = {name: random.choice(_SCALARS) for name in ("a", "b") if random.random() < 0.75}
    if random.random() < 0.85:
        properties["Arr"] = [_element(random) for _ in range(random.randint(0, 3))]
    if random.random() < 0.7:
        names = random.sample(["k", "L", "m"], random.randint(0, 3))
        properties["obj"] = {name: random.choice(_SCALARS) for name in names}
    if random.random() < 0.05:
        properties["Arr"] = random.choice(_SCALARS)
    resource = {"type": KIND, "name": random.choice(["w", "W1", "ws-prod"]), "properties": properties}
    if random.random() < 0.8:
        resource["location"] = random.choice(["eastus", "westeurope"])
    if random.random() < 0.7:
        names = random.sample(["env", "Owner", "cost center"], random.randint(0, 3))
        resource["tags"] = {name: random.choice(["x", "Y", "", "1"]) for name in names}
    return resource


def _right(random: Random, operator: str) -> Any:
    if operator in ("in", "notIn"):
        values = [random.choice(_SCALARS) for _ in range(random.randint(0, 3))]
        return random.choice(["[parameters('l')]", values])
    if operator == "exists":
        return random.choice([True, False, "true", "false"])
    if "ike" in operator:
        return random.choice(["en*", "*d", "*", "e*d", "abc", "1*", "*a*c*"])
    if "atch" in operator:
        return random.choice(["??", "##", ".*", "???????", "#", ".....", "Enabled", "enable?"])
    if "Key" in operator:
        return random.choice(["env", "K", "l", "zz"])
    return random.choice([*random.choices(_SCALARS, k=2), "[parameters('p')]", "[parameters('n')]", "[field('name')]"])


def _expression(random: Random, inside: str) -> str:
    field = random.choice(_FIELDS).replace("'", "''")
    choices = [
        f"[field('{field}')]",
        "[parameters('p')]",
        f"[length(field('{PREFIX}Arr[*]'))]",
        f"[empty(field('{PREFIX}a'))]",
        f"[if(equals(field('{PREFIX}a'), ''), 0, field('{PREFIX}b'))]",
        f"[first(field('{PREFIX}Arr[*].x'))]",
        "[concat('a', field('name'))]",
        "[toLower(field('name'))]",
        "[parameters('o').q]",
        "[length(parameters('l'))]",
    ]
    if inside == "field":
        choices += 2 * ["[current()]", f"[current('{PREFIX}Arr[*].x')]", f"[first(field('{PREFIX}Arr[*].Y'))]"]
    if inside == "value":
        choices += 2 * ["[current('v')]", "[current()]"]
    return random.choice(choices)


def make_condition(random: Random, depth: int, inside: str = "") -> dict[str, Any]:
    """Return a condition."""
    kind = random.random()
    if depth and kind < 0.4:
        parts = [make_condition(random, depth - 1, inside) for _ in range(random.randint(0, 3))]
        return {random.choice(["allOf", "anyOf"]): parts}
    if depth and kind < 0.5:
        return {"not": make_condition(random, depth - 1, inside)}
    if depth and kind < 0.6:
        return _count(random, depth, inside)
    operator = random.choice(list(SPELLED.values()))
    if kind < 0.75:
        return {"value": _expression(random, inside), operator: _right(random, operator)}
    field = "[concat('tags[', parameters('o').q, ']')]" if random.random() < 0.1 else random.choice(_FIELDS + _STARRED)
    return {"field": field, operator: _right(random, operator)}


def _count(random: Random, depth: int, inside: str) -> dict[str, Any]:
    count: dict[str, Any]
    if random.random() < 0.7:
        count = {"field": random.choice([PREFIX + "Arr[*]", PREFIX + "Arr[*]", PREFIX + "arr[*].in[*]"])}
        if random.random() < 0.8:
            within = "field" if count["field"].endswith("Arr[*]") else inside
            count["where"] = make_condition(random, depth - 1, within)
    else:
        values = [random.choice(_SCALARS), random.choice(_SCALARS)]
        source = random.choice(["[parameters('l')]", f"[field('{PREFIX}a')]", values])
        count = {"value": source, "name": "v", "where": make_condition(random, depth - 1, "value")}
    operator = random.choice(["equals", "greater", "less", "notEquals", "greaterOrEquals", "lessOrEquals"])
    return {"count": count, operator: random.choice([0, 1, 2, "1"])}
