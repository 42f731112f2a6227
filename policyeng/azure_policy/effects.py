"""Decide what a policy says about a resource: its condition, its effect, and the related resources that it requires."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import orjson

from policyeng.azure_policy import deployments
from policyeng.azure_policy.aliases import AliasTable
from policyeng.azure_policy.assignments import EffectivePolicy
from policyeng.azure_policy.conditions import Condition, ConditionCompiler, FieldComparison, deciding_comparisons
from policyeng.azure_policy.expressions import Evaluate, RefusedError, Scope
from policyeng.azure_policy.functions import format_moment
from policyeng.azure_policy.values import (
    MISSING,
    OPERATORS,
    SPELLED,
    STAR,
    NotKnown,
    Steps,
    Tally,
    Value,
    each_item,
    fold,
    read,
    scalar_text,
)
from policyeng.facts.ids import covers, fold_id, is_open, name_of, segments
from policyeng.models import Denial, ExemptionMark, JsonObject, lowered
from policyeng.parsing.arm_expressions import is_expression
from policyeng.parsing.json_pointer import escaped
from policyeng.rego.markers import Cause, MarkedObject, Undecided, show

#: Modes of which conditions are evaluated; others configure a service, and publish none.
EVALUATED_MODES = frozenset({"all", "indexed", deployments.MODE})
#: The effects that look for related resources, and those that are decided at the resource.
IF_NOT_EXISTS = frozenset({"auditifnotexists", "deployifnotexists"})
_DIRECT = frozenset({"audit", "deny", "modify", "append", "mutate"})
#: The effects that Azure decides elsewhere.
_ELSEWHERE = {
    "denyaction": "Azure decides when the action is requested",
    "manual": "a person attests it in Azure",
}
EFFECTS = IF_NOT_EXISTS | _DIRECT | _ELSEWHERE.keys() | {"disabled"}
#: Types that extend any resource, in lower case.
_EXTENSIONS = frozenset(
    f"microsoft.{name}"
    for name in [
        "authorization/locks",
        "authorization/roleassignments",
        "guestconfiguration/guestconfigurationassignments",
        "insights/datacollectionruleassociations",
        "insights/diagnosticsettings",
        "maintenance/configurationassignments",
        "recoveryservices/backupprotectionintent",
        "security/advancedthreatprotectionsettings",
        "security/assessments",
        "security/defenderforstoragesettings",
        "chaos/targets",
    ]
)
_CONNECTIONS = "/privateendpointconnections"


class EstateView(Protocol):
    """What policies read of a snapshot; see `policyeng.bundle.SnapshotView`."""

    @property
    def by_id(self) -> Mapping[str, JsonObject]:
        """Return resources by id."""

    @property
    def by_scope(self) -> Mapping[str, Mapping[str, Any]]:
        """Return ids by scope and type."""

    @property
    def by_extended(self) -> Mapping[str, Mapping[str, Any]]:
        """Return ids of extension resources by what they extend and type."""


class EvaluatedInput(Protocol):
    """What a policy evaluates; see `policyeng.bundle.PolicyInput`."""

    @property
    def resource(self) -> JsonObject:
        """Return the resource."""

    @property
    def snapshot(self) -> EstateView:
        """Return the snapshot."""

    @property
    def parameters(self) -> JsonObject:
        """Return the parameters."""

    @property
    def as_of(self) -> datetime:
        """Return the evaluation time."""


class PolicyDecision(NamedTuple):
    """What a policy says about a resource: by default that it complies.

    Attributes:
        applies: whether there is a finding.
        causes: what is not known, if that decides.
        exemption: of the denial.
    """

    applies: bool = True
    denial: Denial | None = None
    causes: tuple[Cause, ...] = ()
    exemption: ExemptionMark | None = None


_COMPLIES, _NO_FINDING = PolicyDecision(), PolicyDecision(applies=False)


class _Program(NamedTuple):
    """A definition that is compiled for resources of one type; `details` has the values by name in lower case."""

    condition: Condition
    effect: Evaluate
    details: Mapping[str, Evaluate]
    existence: Callable[[str], Condition | None]


class CompiledPolicy:
    """A policy, compiled for each type of resources when that is first evaluated."""

    def __init__(self, policy: EffectivePolicy, aliases: AliasTable) -> None:
        """Store the policy, and where fields are."""
        self.policy, self._aliases = policy, aliases
        self._programs: dict[str, _Program | RefusedError] = {}
        self._values: tuple[object, dict[str, Value]] = (None, {})

    @cached_property
    def _then(self) -> JsonObject:
        then = _lower_keys(_lower_keys(self.policy.definition.rule).get("then"))
        return then | {"details": _lower_keys(then.get("details"))}

    @cached_property
    def types(self) -> frozenset[str] | None:
        """The types that the condition names at its top, as they are written; None if it can be any."""
        return types_of(_lower_keys(self.policy.definition.rule).get("if"))

    @cached_property
    def judged_types(self) -> frozenset[str] | None:
        """The types of the resources that it evaluates, as they are written; None if it can be any."""
        is_data = lowered(self.policy.definition.mode) == deployments.MODE
        return frozenset(deployments.JUDGED) if is_data else self.types

    @cached_property
    def looks_up(self) -> bool:
        """Whether it looks for related resources."""
        return "type" in self._then["details"]

    @cached_property
    def _text(self) -> str:
        return lowered(orjson.dumps(self.policy.definition.rule).decode())

    @property
    def reads_clock(self) -> bool:
        """Whether the evaluation time can decide."""
        return "utcnow(" in self._text or any(exemption.expires_at for exemption in self.policy.exemptions)

    @property
    def reads_others(self) -> bool:
        """Whether it reads other resources."""
        return self.looks_up or "resourcegroup(" in self._text or "subscription(" in self._text

    @property
    def constants(self) -> Iterator[object]:
        """The texts and numbers in it."""
        yield from (exemption.expires_at for exemption in self.policy.exemptions)
        waiting: list[object] = [self.policy.definition.rule]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value
            else:
                yield value

    @property
    def patch(self) -> tuple[JsonObject, ...]:
        """The JSON Patch of `modify` or `append`; empty if the resource decides what it is."""
        if fold(self.static_effect) not in ("modify", "append") or self.types is None:
            return ()
        details = _lower_keys(_lower_keys(self.policy.definition.rule).get("then")).get("details")
        steps = details if isinstance(details, list) else _lower_keys(details).get("operations")
        try:
            found = [self._patch_step(_lower_keys(step)) for step in steps] if isinstance(steps, list) else []
        except RefusedError:
            return ()
        return tuple(step for step in found if step is not None) if None not in found else ()

    def _patch_step(self, operation: JsonObject) -> JsonObject | None:
        """Return an operation as a step of a patch; None if the resource decides what it is."""
        values = self.policy.definition.defaults | dict(self.policy.values)
        scope = Scope({}, {name: value for name, value in values.items() if value is not None}, {}, {})
        paths: set[Steps] = set()
        value: Value = None
        for kind in self.types or ():
            compiler = ConditionCompiler(self._aliases, lowered(kind), lowered(kind), None)
            name = compiler.compile_value(operation.get("field"), "/then/details")(scope)
            condition = compiler.compile_value(operation.get("condition", True), "/then/details")
            value = compiler.compile_value(operation.get("value"), "/then/details")
            if compiler.reads or not isinstance(name, str) or condition(scope) is not True:
                return None
            value = value(scope)
            paths.add(compiler.find_field(name, "/then/details").steps or ())
        [path] = paths if len(paths) == 1 else [()]
        if not path or STAR in path or isinstance(value, NotKnown):
            return None
        pointer = "".join(f"/{escaped(step)}" for step in path)
        if fold(str(operation.get("operation", "add"))) == "remove":
            return {"op": "remove", "path": pointer}
        return {"op": "add", "path": pointer, "value": value}

    @property
    def related_type(self) -> str:
        """The lower-case type of related resources; empty if there are none, or if an expression computes it."""
        kind = self._then["details"].get("type")
        return lowered(kind) if isinstance(kind, str) and not is_expression(kind) else ""

    @cached_property
    def static_effect(self) -> str:
        """The effect as far as parameters decide it; empty if they have no value."""
        if self.policy.override:
            return self.policy.override
        defaults = self.policy.definition.defaults | dict(self.policy.values)
        compiler = ConditionCompiler(self._aliases, "", "", None)
        try:
            effect = compiler.compile_value(self._then.get("effect"), "/then/effect")(Scope({}, defaults, {}, {}))
        except RefusedError:
            return ""
        return effect if isinstance(effect, str) else ""

    def require_compiled(self, kind: str) -> None:
        """Compile for a lower-case type.

        Raises:
            RefusedError: it cannot be compiled.
        """
        self._program(kind)

    def _program(self, kind: str) -> _Program:
        program = self._programs.get(kind)
        if program is None:
            try:
                program = self._compile(kind)
            except RefusedError as error:
                program = error
            self._programs[kind] = program
        if isinstance(program, RefusedError):
            raise program
        return program

    def _compile(self, kind: str) -> _Program:
        definition = self.policy.definition
        if definition.fault:
            raise RefusedError(definition.fault, "", "template")
        if lowered(definition.mode) not in EVALUATED_MODES:
            reason = f"the mode `{definition.mode}` configures the service, and publishes no condition"
            raise RefusedError(reason, "", "mode")
        rule, then = _lower_keys(definition.rule), self._then
        if "if" not in rule or "effect" not in then:
            raise RefusedError("the rule has no `if`, or no `effect`", "", "rule")
        declared = {lowered(name): value for name, value in definition.parameters.items()}
        compiler = ConditionCompiler(self._aliases, kind, kind, declared)
        condition = compiler.compile(rule["if"], "/if")
        effect = compiler.compile_value(then["effect"], "/then/effect")
        if (
            isinstance(then["effect"], str)
            and not is_expression(then["effect"])
            and fold(then["effect"]) not in EFFECTS
        ):
            raise RefusedError(f"the effect `{then['effect']}` is not supported", "/then/effect", "effect")
        details = {
            name: compiler.compile_value(then["details"][name], f"/then/details/{name}")
            for name in ("type", "name", "resourcegroupname", "existencescope")
            if self.looks_up and name in then["details"]
        }
        known: dict[str, Condition | None] = {}

        def existence(related: str) -> Condition | None:
            if related not in known:
                written = then["details"].get("existencecondition")
                of_related = ConditionCompiler(self._aliases, related, kind, declared)
                place = "/then/details/existenceCondition"
                known[related] = None if written is None else of_related.compile(written, place)
            return known[related]

        if self.looks_up:
            existence(self.related_type)
        return _Program(condition, effect, details, existence)

    def decide(self, given: EvaluatedInput) -> PolicyDecision:
        """Return what the policy says.

        Raises:
            RefusedError: it cannot be compiled.
            Undecided: something that is not known decides.
        """
        resource, policy = given.resource, self.policy
        identity = scalar_text(read(resource, ("id",))) or ""
        if policy.scope and covers(policy.scope, identity) is False:
            return _NO_FINDING
        if any(covers(scope, identity) for scope in policy.not_scopes):
            return _NO_FINDING
        if lowered(policy.definition.mode) == deployments.MODE:
            resource = deployments.as_data_plane(resource)
        kind = lowered(str(read(resource, ("type",)) or ""))
        if self.types is None and fold(policy.definition.mode) == "indexed" and not resource.get("location"):
            return _NO_FINDING  # the mode leaves out types without a location
        program = self._program(kind)
        scope = Scope(resource, self._parameters(given), _context(given, policy, identity), resource)
        effect = policy.override or program.effect(scope)
        if isinstance(effect, str) and fold(effect) == "disabled":
            return _NO_FINDING
        outcome = program.condition.evaluate(scope)
        if outcome is False:
            return _NO_FINDING if self.looks_up else _COMPLIES
        if isinstance(outcome, NotKnown):
            return PolicyDecision(causes=outcome.causes)
        if not isinstance(effect, str):
            causes = effect.causes if isinstance(effect, NotKnown) else (("", "the effect is not a text"),)
            return PolicyDecision(causes=causes)
        decision = self._apply_effect(fold(effect), effect, program, scope, given)
        if decision.denial is not None and policy.exemptions:
            return decision._replace(exemption=_find_exemption(policy, identity, given.as_of))
        return decision

    def _apply_effect(
        self, folded: str, effect: str, program: _Program, scope: Scope, given: EvaluatedInput
    ) -> PolicyDecision:
        if folded in _ELSEWHERE:
            return PolicyDecision(causes=(("", f"the effect `{effect}`: {_ELSEWHERE[folded]}"),))
        if folded in IF_NOT_EXISTS and self.looks_up:
            return self._require_related(program, scope, given)
        if folded in _DIRECT:
            return PolicyDecision(denial=self._describe(program.condition, scope))
        return PolicyDecision(causes=(("", f"the effect `{effect}` is not supported"),))

    def _parameters(self, given: EvaluatedInput) -> Mapping[str, Value]:
        if self._values[0] is not given.parameters:
            self._values = given.parameters, {lowered(name): value for name, value in given.parameters.items()}
        return self._values[1]

    @property
    def _message(self) -> str:
        return self.policy.message or self.policy.definition.title

    def _require_related(self, program: _Program, scope: Scope, given: EvaluatedInput) -> PolicyDecision:
        """Pass if a related resource meets the existence condition."""
        details = {name: evaluate(scope) for name, evaluate in program.details.items()}
        kind = details["type"]
        if isinstance(kind, NotKnown):
            return PolicyDecision(causes=kind.causes)
        kind = lowered(str(kind))
        if kind != self.related_type:
            return PolicyDecision(causes=(("", f"whether all resources of the type `{kind}` were read is not known"),))
        condition = program.existence(kind)
        causes: list[Cause] = []
        is_uncertain = False
        for related in _find_related(given, scope.resource, kind, details, causes):
            is_named = _has_name(related, details.get("name"))
            if is_named is False:
                continue
            outcome: Value = True
            if condition is not None:
                of_related = Scope(related, scope.parameters, scope.context, scope.subject)
                outcome = condition.evaluate(of_related)
            if isinstance(outcome, NotKnown):
                causes += outcome.causes
            elif outcome and isinstance(is_named, NotKnown):
                causes += is_named.causes
                is_uncertain = True
            elif outcome:
                return _COMPLIES
        if causes or is_uncertain:
            return PolicyDecision(causes=tuple(dict.fromkeys(causes)))
        name = details.get("name")
        expected = {"type": self._then["details"].get("type")} | ({"name": name} if isinstance(name, str) else {})
        return PolicyDecision(denial=Denial(msg=self._message, expected=expected))

    def _describe(self, condition: Condition, scope: Scope) -> Denial:
        """Return the denial with the place of the comparison that decided: the last one of a field but the type."""
        chosen: tuple[FieldComparison, bool] | None = None
        for comparison, outcome in deciding_comparisons(condition, scope):
            field = comparison.field
            is_telling = field is not None and field.steps not in (None, ("type",), ("kind",), ("location",))
            if is_telling or chosen is None:
                chosen = comparison, outcome
        if chosen is None:
            return Denial(msg=self._message)
        comparison, outcome = chosen
        right = comparison.right(scope)
        expected = _expected(comparison.operator, right, outcome)
        field = comparison.field
        if field is None or field.steps is None or field.slot is not None:
            left = comparison.left(scope)
            actual = left.least if isinstance(left, Tally) else None if isinstance(left, NotKnown) else left
            return Denial(msg=self._message, actual=None if actual is MISSING else show(actual), expected=expected)
        pointer, actual = _locate(scope.resource, field.steps)
        return Denial(msg=self._message, path=pointer, actual=actual, expected=expected)


def _lower_keys(value: object) -> JsonObject:
    return {lowered(key): entry for key, entry in value.items()} if isinstance(value, dict) else {}


def types_of(condition: object) -> frozenset[str] | None:
    """Return the types, as they are written, of which a resource is that meets a condition; None for any."""
    keys = _lower_keys(condition)
    if isinstance(keys.get("allof"), list):
        return next((types for part in keys["allof"] if (types := types_of(part)) is not None), None)
    if isinstance(keys.get("anyof"), list):
        parts = [types_of(part) for part in keys["anyof"]]
        return None if None in parts or not parts else frozenset().union(*(part for part in parts if part is not None))
    if fold(str(keys.get("field"))) != "type":
        return None
    wanted = keys["in"] if isinstance(keys.get("in"), list) else [keys.get("equals")]
    texts = [text for text in wanted if isinstance(text, str) and not is_expression(text)]
    return frozenset(texts) if texts and len(texts) == len(wanted) else None


def _context(given: EvaluatedInput, policy: EffectivePolicy, identity: str) -> Mapping[str, Callable[[], Value]]:
    parts = identity.strip("/").split("/")
    context: dict[str, Callable[[], Value]] = {"utcnow": lambda: format_moment(given.as_of.astimezone(UTC))}
    if len(parts) > 1 and lowered(parts[0]) == "subscriptions":
        context["subscription"] = lambda: _subscription(given, parts)
    if len(parts) > 3 and lowered(parts[2]) == "resourcegroups":
        context["resourcegroup"] = lambda: _resource_group(given, parts)
    if policy.assignment:
        names = {"definitionReferenceId": policy.reference, "setDefinitionId": policy.initiative}
        names |= {"assignmentId": policy.assignment, "definitionId": policy.definition.name}
        context["policy"] = lambda: names
    return context


def _subscription(given: EvaluatedInput, parts: list[str]) -> Value:
    identity = f"/subscriptions/{parts[1]}"
    if is_open(identity):
        return NotKnown.because("the subscription is not known")
    return _find_or_open(given, identity, {"id": identity, "subscriptionId": parts[1]}, "the subscription")


def _resource_group(given: EvaluatedInput, parts: list[str]) -> Value:
    identity = f"/subscriptions/{parts[1]}/resourceGroups/{parts[3]}"
    if is_open(f"/subscriptions/{parts[1]}/resourceGroups/{parts[3]}") and "{" in parts[3]:
        return NotKnown.because("the resource group is not known")
    return _find_or_open(given, identity, {"id": identity, "name": parts[3]}, "the resource group")


def _find_or_open(given: EvaluatedInput, identity: str, stated: JsonObject, noun: str) -> Value:
    """Return a scope of the snapshot, or what its id says."""
    try:
        document = given.snapshot.by_id.get(fold_id(identity))
    except Undecided:
        document = None
    if document is not None:
        return document
    return MarkedObject(stated, (("", f"{noun} is not in the snapshot"),))


def _find_exemption(policy: EffectivePolicy, identity: str, as_of: datetime) -> ExemptionMark | None:
    for exemption in policy.exemptions:
        ends = _end_of(exemption.expires_at)
        is_in_force = not exemption.expires_at or (ends is not None and as_of.astimezone(UTC) < ends)
        if is_in_force and exemption.scope and covers(exemption.scope, identity):
            reason = exemption.reason or "an exemption of Azure Policy"
            return ExemptionMark(
                id=exemption.name,
                category="mitigated" if fold(exemption.category) == "mitigated" else "waiver",
                reason=reason,
                expires_at=ends,
            )
    return None


def _end_of(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _find_related(
    given: EvaluatedInput, resource: JsonObject, kind: str, details: Mapping[str, Value], causes: list[Cause]
) -> Iterator[JsonObject]:
    """Yield the resources of a type that are related to one; add to `causes` why there may be others."""
    identity = fold_id(str(resource["id"]))
    own = lowered(str(resource["type"]))
    parts = segments(identity) or ()
    group, subscription = "/" + "/".join(parts[:4]), "/" + "/".join(parts[:2])
    if kind == own + _CONNECTIONS and (inline := _inline_connections(resource)) is not None:
        yield from inline
        return
    view = given.snapshot
    if kind in _EXTENSIONS:
        yield from _listed(given, view.by_extended, identity, kind, causes)
        return
    if kind.startswith(f"{own}/"):
        scope = identity if own == "microsoft.machinelearningservices/workspaces" else group
        listed = _listed(given, view.by_scope, scope, kind, causes)
        yield from (related for related in listed if fold_id(str(related.get("id"))).startswith(f"{identity}/"))
        return
    if kind == own and "name" in details and _has_name(resource, details["name"]) is True:
        yield resource
        return
    wanted = details.get("resourcegroupname")
    if isinstance(wanted, NotKnown):
        causes += wanted.causes
        return
    is_wide = fold(str(details.get("existencescope", ""))) == "subscription" or len(parts) < 4
    scope = subscription if is_wide else group
    if isinstance(wanted, str) and wanted and not is_wide:
        scope = f"{subscription}/resourcegroups/{lowered(wanted)}"
    yield from _listed(given, view.by_scope, scope, kind, causes)


def _inline_connections(resource: JsonObject) -> list[JsonObject] | None:
    """Return the private endpoint connections in a resource; None if it does not state them."""
    entries = read(resource, ("properties", "privateEndpointConnections"))
    if not isinstance(entries, list):
        return None
    kind = f"{resource['type']}{_CONNECTIONS}"
    return [{"type": kind, **entry} for entry in each_item(entries) if isinstance(entry, dict)]


def _listed(
    given: EvaluatedInput, index: Mapping[str, Mapping[str, Any]], scope: str, kind: str, causes: list[Cause]
) -> Iterator[JsonObject]:
    try:
        by_type = index.get(scope)
        ids = by_type.get(kind) if by_type is not None else None
        for identity in each_item(ids) if ids is not None else ():
            resource = given.snapshot.by_id.get(identity)
            if resource is not None:
                yield resource
    except Undecided as error:
        causes.extend(error.causes)


def _has_name(related: JsonObject, wanted: Value) -> bool | NotKnown:
    """Check the name of a resource, which may have the names of its parents before it."""
    if wanted is None or isinstance(wanted, NotKnown):
        return True if wanted is None else wanted
    identity = str(related.get("id", ""))
    names = (segments(identity) or ())[1::2]
    text = fold(str(wanted))
    return text in (fold(str(related.get("name", ""))), fold(name_of(identity))) or "/".join(names).endswith(f"/{text}")


def _locate(document: JsonObject, steps: Steps) -> tuple[str, object]:
    """Return the pointer of a field in a document, with the spelling of the document, and its value."""
    pointer = ""
    value: Value = document
    for step in steps:
        if step == STAR:
            break
        key = step
        if isinstance(value, dict):
            folded = lowered(step)
            names = getattr(value, "known_keys", value.keys)()
            key = next((name for name in names if lowered(name) == folded), step)
        value = read(value, (key,)) if value is not None else None
        value = None if value is MISSING else value
        pointer += f"/{escaped(key)}"
    return pointer, show(value)


def _expected(operator: str, right: Value, outcome: bool) -> object:
    """Return what would have made a comparison end otherwise: a value, or an operator with its value."""
    right = None if isinstance(right, NotKnown) or right is MISSING else show(right)
    if operator == "exists":
        return {"exists": (fold(str(right)) == "true") is not outcome}
    wanted = _NEGATED.get(operator, operator) if outcome else operator
    return right if wanted == "equals" else {SPELLED[wanted]: right}


#: The opposites of operators.
_NEGATED = {
    **{name: f"not{name}" for name in OPERATORS if f"not{name}" in OPERATORS},
    **{f"not{name}": name for name in OPERATORS if f"not{name}" in OPERATORS},
    "less": "greaterorequals",
    "greaterorequals": "less",
    "greater": "lessorequals",
    "lessorequals": "greater",
}
