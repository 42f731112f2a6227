"""Write policies of one resource and one field as definitions of Azure Policy, and test that these decide the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from msgspec.structs import replace

from policyeng.azure_policy.aliases import built_in_aliases
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.assembling import bundle_of
from policyeng.bundle.cases import DEFAULT_AS_OF, Case, baselines_of, estate, read_cases
from policyeng.bundle.files import BundleOrigin
from policyeng.bundle.header import TargetType
from policyeng.bundle.manifest import Manifest
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, Outcome, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.testing.observed_reads import observe

_WORKSPACE = "microsoft.machinelearningservices/workspaces"
#: Fields that tell projects, which are left out, and those that every resource has.
_OF_PROJECTS = frozenset(("/kind", "/properties/hubResourceId"))
_ALWAYS = frozenset(("/id", "/type", "/name"))
#: What names of enumerations do not have.
_OPEN = lazy_pattern(r"[0-9/:]")
#: A text that no policy knows.
_OTHER = "another-value"
_ABSENT = object()


class ExportRefusedError(ValueError):
    """A policy that cannot be written as a definition; the text says why."""


def export_policy(bundle: Bundle, policy: Policy) -> JsonObject:
    """Return a definition that decides as a policy does with its default parameters.

    The outcomes of the policy for the values in its cases, and for one that nobody knows, give the condition. It is
    then evaluated on all cases, and refused if it decides one of them otherwise.

    Raises:
        ExportRefusedError: the policy reads more than one field of one resource, or the definition would decide
            otherwise.
    """
    return _Exporter(bundle, policy).export()


class _Exporter:
    """The export of one policy."""

    def __init__(self, bundle: Bundle, policy: Policy) -> None:
        self._policy, self._alone = policy, bundle.only([policy])
        self._aliases = built_in_aliases()
        self._baselines = baselines_of(bundle)
        self._target, self._pointer, self._reads_kind = _find_field(bundle, policy)
        self._kind = lowered(self._target.type)

    def export(self) -> JsonObject:
        """Return the definition.

        Raises:
            ExportRefusedError: as of `export_policy`.
        """
        field = self._name(self._pointer)
        conditions: list[JsonObject] = [{"field": "type", "equals": self._target.type}]
        for pointer, allowed in self._target.where.items():
            conditions.append({"field": self._name(pointer), "in": list(allowed)})
        if self._kind == _WORKSPACE and self._reads_kind:
            conditions.append({"field": "kind", "notEquals": "project"})
        states = dict(self._states())
        conditions.append(self._condition(field, states))
        definition = self._definition({"allOf": conditions})
        self._require_same(definition, states)
        return definition

    def _name(self, pointer: str) -> str:
        name = self._aliases.find_name(tuple(keys_of(pointer)), self._kind)
        if name is None:
            raise ExportRefusedError(f"no alias of `{self._target.type}` is known for {pointer}")
        return name

    def _states(self) -> Iterator[tuple[str, tuple[Snapshot, Case]]]:
        """Yield the snapshots of the cases by their names."""
        file = read_cases(self._policy)
        for _, name, case in file.named() if file else ():
            if not case.parameters:
                yield name, (estate(self._baselines, case, name), case)

    def _condition(self, field: str, states: Mapping[str, tuple[Snapshot, Case]]) -> JsonObject:
        """Return the condition under which the policy fails, from its outcomes for values of the field."""
        outcomes = self._outcomes_by_value(states)
        passes = [value for value, outcome in outcomes if outcome == "pass" and value is not _ABSENT]
        fails = [value for value, outcome in outcomes if outcome == "fail" and value is not _ABSENT]
        absent = next(outcome for value, outcome in outcomes if value is _ABSENT)
        other = next(outcome for value, outcome in outcomes if value == _OTHER)
        if absent not in ("pass", "fail"):
            raise ExportRefusedError("without the field the outcome is not known, which a definition cannot say")
        if any(isinstance(value, str) and _OPEN.search(value) for value in passes):
            raise ExportRefusedError("the values that pass are no names of an enumeration")
        if not passes or not (fails or absent == "fail"):
            raise ExportRefusedError("its cases have no value that passes, or none that fails")
        if other == "pass":
            condition: JsonObject = {"field": field, "exists": False}
            if fails:
                condition = {"field": field} | ({"in": fails} if len(fails) > 1 else {"equals": fails[0]})
            missing = {"field": field, "exists": False}
            return {"anyOf": [missing, condition]} if absent == "fail" and fails else condition
        condition = {"field": field} | ({"notIn": passes} if len(passes) > 1 else {"notEquals": passes[0]})
        return condition if absent == "fail" else {"allOf": [{"field": field, "exists": True}, condition]}

    def _outcomes_by_value(self, states: Mapping[str, tuple[Snapshot, Case]]) -> list[tuple[Any, str]]:
        """Return the outcomes of a resource that passes, with other values of the field."""
        texts: dict[str, str] = {"true": "true", "false": "false"}  # they equal the booleans
        passing: tuple[Snapshot, Case, str] | None = None
        for snapshot, case in states.values():
            outcomes = _evaluate(self._alone, snapshot, case)
            for resource in self._resources(snapshot):
                value = _value_at(resource, self._pointer)
                outcome = outcomes.get(resource["id"])
                if isinstance(value, str) and _is_regular(value) and lowered(value) not in texts:
                    texts[lowered(value)] = value
                elif outcome == "pass" and (isinstance(value, list | dict) or type(value) in (int, float)):
                    raise ExportRefusedError("the field is a number, a list or an object")
                if passing is None and outcome == "pass":
                    passing = snapshot, case, resource["id"]
        if passing is None:
            raise ExportRefusedError("it has no case that passes")
        snapshot, case, identity = passing
        return [
            (value, _evaluate(self._alone, self._with_value(snapshot, identity, value), case).get(identity, ""))
            for value in (_ABSENT, _OTHER, True, False, *list(texts.values())[2:])
        ]

    def _resources(self, snapshot: Snapshot) -> Iterator[JsonObject]:
        for resource in snapshot.resources:
            if lowered(str(resource.get("type"))) == self._kind:
                yield resource

    def _with_value(self, snapshot: Snapshot, identity: str, value: object) -> Snapshot:
        """Return a snapshot in which a resource has another value of the field, or none."""
        changed = orjson.loads(orjson.dumps(list(snapshot.resources)))
        for resource in changed:
            if resource["id"] == identity:
                *above, last = keys_of(self._pointer)
                holder = resource
                for key in above:
                    holder = holder.setdefault(key, {})
                if value is _ABSENT:
                    holder.pop(last, None)
                else:
                    holder[last] = value
        return replace(snapshot, resources=changed)

    def _definition(self, condition: JsonObject) -> JsonObject:
        header = self._policy.header
        effects = ["Audit", "Deny", "Disabled"]
        metadata = {"category": "Machine Learning", "version": "1.0.0", "severity": header.severity.value}
        return {
            "name": lowered(header.id),
            "type": "Microsoft.Authorization/policyDefinitions",
            "properties": {
                "displayName": header.title,
                "description": header.description[:512],
                "policyType": "Custom",
                "mode": "All",
                "metadata": metadata,
                "parameters": {"effect": {"type": "String", "allowedValues": effects, "defaultValue": "Audit"}},
                "policyRule": {"if": condition, "then": {"effect": "[parameters('effect')]"}},
            },
        }

    def _require_same(self, definition: JsonObject, states: Mapping[str, tuple[Snapshot, Case]]) -> None:
        """Evaluate the definition on every case, and compare what both decide.

        Raises:
            ExportRefusedError: naming the case that differs.
        """
        tree = {PurePosixPath("definition.json"): orjson.dumps(definition)}
        exported = bundle_of([BundleOrigin("export", Path("export"), tree, Manifest(), azure_policy=True)])
        for name, (snapshot, case) in states.items():
            irregular = {
                resource["id"]
                for resource in self._resources(snapshot)
                if not _is_regular(_value_at(resource, self._pointer))
            }
            ours, theirs = (_evaluate(each, snapshot, case) for each in (self._alone, exported))
            for identity, outcome in ours.items():
                found = theirs.get(identity, "no finding")
                if identity not in irregular and outcome in ("pass", "fail") and found != outcome:
                    difference = f"{found} instead of {outcome} for the case `{name}`"
                    raise ExportRefusedError(f"the definition would decide otherwise: {difference}")


def _find_field(bundle: Bundle, policy: Policy) -> tuple[TargetType, str, bool]:
    """Return the only type and the only field that a policy reads, and whether it reads the kind.

    Raises:
        ExportRefusedError: there is more.
    """
    if len(policy.header.judges) != 1 or "/" not in policy.header.judges[0].type:
        raise ExportRefusedError("it evaluates several types, or what is no resource of ARM")
    [target] = policy.header.judges
    if bundle.clocked[bundle.policies.index(policy)]:
        raise ExportRefusedError("it reads the clock")
    observed = observe(bundle, policy)
    others = {kind for kind in observed.others if kind != _WORKSPACE or lowered(target.type) != _WORKSPACE}
    if others or observed.workspace or not observed.is_whole:
        raise ExportRefusedError("it reads other resources")
    own = set(observed.own) - _ALWAYS - target.where.keys()
    fields = own - _OF_PROJECTS
    if len(fields) != 1:
        raise ExportRefusedError(f"it reads {len(fields)} fields")
    return target, fields.pop(), "/kind" in own


def _is_regular(value: object) -> bool:
    """Check for a value that the service can return: ours takes other types, blank text and white space, too."""
    return (
        value is _ABSENT or isinstance(value, bool) or (isinstance(value, str) and 0 < len(value) == len(value.strip()))
    )


def _value_at(resource: JsonObject, pointer: str) -> Any:
    value: Any = resource
    for key in keys_of(pointer):
        value = value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _evaluate(bundle: Bundle, snapshot: Snapshot, case: Case) -> dict[str, str]:
    """Return the outcomes by resource."""
    evaluation = evaluate(bundle, snapshot, EvaluationOptions(case.as_of or DEFAULT_AS_OF))
    return {
        finding.resource: finding.outcome.value
        for finding in evaluation.findings
        if finding.outcome in (Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN)
    }
