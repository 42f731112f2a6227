"""Which planned resource a value comes from that is known only after apply: the references of the configuration.

A plan has only the references of each attribute's expression, not the expression. So only an attribute that refers to
exactly one instance is resolved, to that instance. Locals are not in a plan, so they are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import keys_of, member
from policyeng.sources.terraform.instances import Instance, module_calls, module_key, parent_module

#: Inputs and outputs that lead to one another further than this lead nowhere.
MAX_STEPS = 64
#: An expression that refers to more than this is not followed.
MAX_REFERENCES = 256

#: What is known while planning, and at most chooses among instances.
_CHOOSING = ("each.key", "count.", "path.", "terraform.")
_NOT_IN_PLAN = ("local.", "self.", "each.")
_OUTPUT = re.compile(r'module\.([^.\[]+)(?:\[("(?:[^"\\]|\\.)*"|\d+)\])?\.([^.\[]+)')
_RESOURCE = re.compile(r'(data\.)?([a-z][a-z0-9_]*)\.([^.\[]+)(?:\[("(?:[^"\\]|\\.)*"|\d+)\])?')


class _Scoped(NamedTuple):
    """References in a module instance.

    Attributes:
        each: those of the `for_each` that `each.value` is of.
        key: what `each.key` is there; empty without one.
    """

    module: str
    references: tuple[str, ...]
    each: tuple[str, ...] = ()
    key: str = ""


class ResolvedReference(NamedTuple):
    """What references lead to: instances, and whether anything among them leads nowhere."""

    instances: tuple[Instance, ...]
    whole: bool


@dataclass(frozen=True, eq=False)
class Configuration:
    """The configuration of a plan.

    Attributes:
        root: `configuration` of the plan; empty when it has none.
        variables: the values of the root module's variables, by name.
        instances: all that the plan holds, managed and looked up.
    """

    root: JsonObject
    variables: Mapping[str, object]
    instances: tuple[Instance, ...]

    def expression(self, instance: Instance, pointer: str) -> object:
        """Return the expression of an attribute (`/scale_settings/0/min_node_count`); None if there is none."""
        found: object = self._stated(instance).get("expressions")
        for part in keys_of(pointer):
            if isinstance(found, dict) and "references" in found:
                return found
            found = member(found, part)
        return found

    def is_null(self, instance: Instance, pointer: str) -> bool:
        """Whether an attribute that is not known yet is left to Azure: it is not stated, or by a null known already.

        What is known while planning and not null would be in the plan. So an expression of variables alone is null.
        """
        above = pointer.rpartition("/")[0].rpartition("/")[0]
        if not self._stated(instance) or (above and self.expression(instance, above) is None):
            return False  # a `dynamic` block is not in the configuration of a plan
        return self.sources(instance, pointer) == ResolvedReference((), whole=True)

    def references(self, instance: Instance, pointer: str) -> list[str]:
        """Return the references of an attribute of an instance, each resource once."""
        return _select_longest(_references(self.expression(instance, pointer)))

    def sources(self, instance: Instance, pointer: str) -> ResolvedReference:
        """Return the instances that an attribute of an instance comes from."""
        each = _references(self._stated(instance).get("for_each_expression"))
        stated = _references(self.expression(instance, pointer))
        start = _Scoped(instance.module, stated, each, str(instance.index))
        waiting, met, found = [start], set[_Scoped](), list[ResolvedReference]()
        while waiting:
            scoped = waiting.pop()
            if len(met) > MAX_STEPS or len(scoped.references) > MAX_REFERENCES:
                return ResolvedReference((), whole=False)
            if scoped not in met:
                met.add(scoped)
                for reference in _select_longest(scoped.references):
                    led = self._led(scoped, reference)
                    waiting += led
                    found.append(self._found(scoped, reference, led=bool(led)))
        every = {id(one): one for entry in found for one in entry.instances}
        return ResolvedReference(tuple(every.values()), all(entry.whole for entry in found))

    def _found(self, scoped: _Scoped, reference: str, *, led: bool) -> ResolvedReference:
        if led or reference.startswith(_CHOOSING):
            return ResolvedReference((), whole=True)
        named = _RESOURCE.match(reference)
        if named is None or reference.startswith(("var.", "module.", *_NOT_IN_PLAN)):
            return ResolvedReference((), whole=False)
        there = self._by_resource.get((scoped.module, bool(named[1]), named[2], named[3]), {})
        if named[4] is not None:
            there = {key: one for key, one in [(named[4].strip('"'), there.get(named[4].strip('"')))] if one}
        elif len(there) > 1 and "each.key" in scoped.references and scoped.key in there:
            there = {"": there[scoped.key]}
        return ResolvedReference(tuple(islice(there.values(), 2)), whole=True)  # two are as many as more

    def _led(self, scoped: _Scoped, reference: str) -> list[_Scoped]:
        """Where an input, an output or an element of `for_each` comes from."""
        if reference.startswith("var."):
            return self._given(scoped.module, re.split(r"[.\[]", reference)[1])
        if reference.startswith("each.value") and scoped.each:
            return [_Scoped(scoped.module, scoped.each, key=scoped.key)]
        output = _OUTPUT.match(reference)
        if output is None:
            return []
        child = f"{scoped.module}.module.{output[1]}".lstrip(".")
        outputs = self._modules.get(tuple(module_calls(child)), {}).get("outputs")
        stated = outputs.get(output[3]) if isinstance(outputs, dict) else None
        references = _references(stated.get("expression") if isinstance(stated, dict) else None)
        wanted = f"{child}[{output[2]}]" if output[2] else ""
        return [
            _Scoped(address, references)
            for address in self._module_addresses.get((scoped.module, output[1]), ())
            if address == wanted or not wanted
        ]

    def _given(self, module: str, name: str) -> list[_Scoped]:
        """Return the sources of a variable's value."""
        if not module:
            return [_Scoped("", ())] if name in self.variables else []
        call = self._calls.get(tuple(module_calls(module)), {})
        expressions = call.get("expressions")
        stated = expressions.get(name) if isinstance(expressions, dict) else None
        each = _references(call.get("for_each_expression"))
        return [_Scoped(parent_module(module), _references(stated), each, module_key(module))]

    def _stated(self, instance: Instance) -> JsonObject:
        """Return the configuration of an instance; empty if it is not in the plan."""
        return self._resources.get((tuple(module_calls(instance.module)), _resource_key(instance)), {})

    @cached_property
    def _by_resource(self) -> Mapping[tuple[str, bool, str, str], dict[str, Instance]]:
        """The instances by module instance, mode, type and name, then by index."""
        found: dict[tuple[str, bool, str, str], dict[str, Instance]] = {}
        for instance in self.instances:
            key = (instance.module, instance.is_data, instance.type, instance.name)
            found.setdefault(key, {})[str(instance.index)] = instance
        return found

    @cached_property
    def _module_addresses(self) -> Mapping[tuple[str, str], list[str]]:
        """The module instances by the module instance that calls them and the name of the call."""
        found: dict[tuple[str, str], list[str]] = {}
        met: set[str] = set()
        for instance in self.instances:
            module = instance.module
            while module not in met and (calls := module_calls(module)):
                met.add(module)
                found.setdefault((parent_module(module), calls[-1]), []).append(module)
                module = parent_module(module)
        return found

    @cached_property
    def _modules(self) -> Mapping[tuple[str, ...], JsonObject]:
        """The modules of the configuration by the names of the calls that lead there."""
        return {path: module for path, _, module in _modules(self.root)}

    @cached_property
    def _calls(self) -> Mapping[tuple[str, ...], JsonObject]:
        return {path: call for path, call, _ in _modules(self.root)}

    @cached_property
    def _resources(self) -> Mapping[tuple[tuple[str, ...], str], JsonObject]:
        return {
            (path, f"{entry.get('mode')}.{entry.get('type')}.{entry.get('name')}"): entry
            for path, _, module in _modules(self.root)
            for entry in objects(module.get("resources"))
        }


def _modules(root: JsonObject) -> Iterator[tuple[tuple[str, ...], JsonObject, JsonObject]]:
    """Every module of a configuration with the names of the calls that lead to it, and the call."""
    waiting: list[tuple[tuple[str, ...], JsonObject, object]] = [((), {}, root.get("root_module"))]
    while waiting:
        path, call, module = waiting.pop()
        if not isinstance(module, dict) or len(path) > MAX_STEPS:
            continue
        yield path, call, module
        calls = module.get("module_calls")
        for name, inner in calls.items() if isinstance(calls, dict) else ():
            if isinstance(inner, dict):
                waiting.append(((*path, name), inner, inner.get("module")))


def _references(expression: object) -> tuple[str, ...]:
    """Return the references of an expression or of everything in a block."""
    found: list[str] = []
    waiting: list[object] = [expression]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            references = value.get("references")
            if isinstance(references, list):
                found += [entry for entry in references if isinstance(entry, str)]
            else:
                waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return tuple(found)


def _select_longest(references: Iterable[str]) -> list[str]:
    """Return the references without prefixes of others: `a.b.id` comes with `a.b`."""
    every = list(dict.fromkeys(references))
    beginnings = {shorter for entry in every for shorter in _list_prefixes(entry)}
    return [entry for entry in every if entry not in beginnings]


def _list_prefixes(reference: str) -> Iterator[str]:
    return (reference[: sign.start()] for sign in re.finditer(r"[.\[]", reference))


def _resource_key(instance: Instance) -> str:
    return f"{'data' if instance.is_data else 'managed'}.{instance.type}.{instance.name}"


def objects(value: object) -> list[JsonObject]:
    """Return the objects of a list; empty if the value is not a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
