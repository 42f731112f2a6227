"""Join definitions with initiatives, assignments and exemptions: what is evaluated, where, with which parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from policyeng.azure_policy.aliases import AliasTable
from policyeng.azure_policy.definitions import (
    Initiative,
    InitiativeMember,
    PolicyAssignment,
    PolicyDefinition,
    PolicyDocuments,
    PolicyExemption,
    defaults_of,
    name_in,
)
from policyeng.azure_policy.expressions import ExpressionCompiler, RefusedError, Scope
from policyeng.azure_policy.values import NotKnown
from policyeng.models import JsonObject, lowered

_Entry = TypeVar("_Entry", PolicyDefinition, Initiative)


@dataclass(frozen=True)
class EffectivePolicy:
    """A definition as it applies.

    Attributes:
        id: unique; the name of the definition where that is unique.
        values: of parameters, by name in lower case, without defaults of the definition.
        controls: group names by initiative.
        message: that of the assignment for resources that fail; empty without one.
        scope: empty for everything.
        override: the effect that replaces that of the definition; empty for none.
    """

    id: str
    definition: PolicyDefinition
    values: Mapping[str, object]
    controls: Mapping[str, tuple[str, ...]]
    initiative: str = ""
    reference: str = ""
    assignment: str = ""
    message: str = ""
    scope: str = ""
    not_scopes: tuple[str, ...] = ()
    override: str = ""
    exemptions: tuple[PolicyExemption, ...] = ()


class PolicyNote(NamedTuple):
    """Something about the policies that a reader must know; an error is something that is not evaluated."""

    is_error: bool
    message: str
    place: str


class ResolvedPolicies(NamedTuple):
    """The policies to evaluate, and notes."""

    policies: Sequence[EffectivePolicy]
    notes: Sequence[PolicyNote]


class _Catalogue(Generic[_Entry]):
    """Documents by their names in lower case; of several versions, the one that is asked for or the latest."""

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self._by_name: dict[str, list[_Entry]] = {}
        for entry in entries:
            self._by_name.setdefault(lowered(entry.name), []).append(entry)

    def find(self, name: str, version: str) -> _Entry | None:
        """Return an entry; None if there is none of that name and version."""
        entries = self._by_name.get(lowered(name), [])
        fitting = [entry for entry in entries if _fits_version(entry.version, version)]
        return max(fitting or entries, key=lambda entry: _version_key(entry.version), default=None)

    def latest(self) -> Iterator[_Entry]:
        """Yield the latest version of each."""
        return (max(entries, key=lambda entry: _version_key(entry.version)) for entries in self._by_name.values())


def _version_key(version: str) -> tuple[int, ...]:
    numbers = version.partition("-")[0].split(".")
    return tuple(int(number) if number.isdecimal() else 0 for number in numbers)


def _fits_version(version: str, pattern: str) -> bool:
    """Check a version against a pattern such as `1.*.*`."""
    numbers, wanted = version.partition("-")[0].split("."), pattern.partition("-")[0].split(".")
    return all(number in ("*", own) for number, own in zip(wanted, numbers, strict=False)) if pattern else True


def resolve(documents: PolicyDocuments, aliases: AliasTable) -> ResolvedPolicies:
    """Return what is evaluated: assignments if there are any, else initiatives and definitions outside of them."""
    return _PolicyResolver(documents, aliases).resolve()


class _PolicyResolver:
    """Joins documents."""

    def __init__(self, documents: PolicyDocuments, aliases: AliasTable) -> None:
        self._documents, self._aliases = documents, aliases
        self._definitions = _Catalogue(documents.definitions)
        self._initiatives = _Catalogue(documents.initiatives)
        self._notes: list[PolicyNote] = []

    def resolve(self) -> ResolvedPolicies:
        """Return the policies with unique ids, and notes."""
        policies: list[EffectivePolicy] = []
        if self._documents.assignments:
            for assignment in self._documents.assignments:
                policies += self._of_assignment(assignment)
        else:
            for initiative in self._initiatives.latest():
                policies += self._of_initiative(initiative, {}, None)
            members = {lowered(policy.definition.name) for policy in policies}
            policies += [
                EffectivePolicy("", definition, {}, {})
                for definition in self._definitions.latest()
                if lowered(definition.name) not in members
            ]
        assigned = {lowered(assignment.name) for assignment in self._documents.assignments}
        for exemption in self._documents.exemptions:
            if (name := name_in(exemption.assignment)) and lowered(name) not in assigned:
                message = (
                    f"the exemption `{exemption.name}` is not applied: its assignment `{name}` is not in the files"
                )
                self._notes.append(PolicyNote(is_error=False, message=message, place=exemption.place))
        return ResolvedPolicies(_with_ids(policies), self._notes)

    def _of_assignment(self, assignment: PolicyAssignment) -> Iterator[EffectivePolicy]:
        place = assignment.place
        if assignment.has_selectors:
            message = (
                f"the assignment `{assignment.name}` has resource selectors, which are not applied: it is evaluated "
                "for all resources of its scope"
            )
            self._notes.append(PolicyNote(is_error=False, message=message, place=place))
        if not assignment.is_enforced:
            message = f"the assignment `{assignment.name}` is not enforced in Azure, and evaluated all the same"
            self._notes.append(PolicyNote(is_error=False, message=message, place=place))
        if assignment.is_initiative:
            initiative = self._initiatives.find(assignment.target, assignment.version)
            if initiative is not None:
                yield from self._of_initiative(initiative, assignment.values, assignment)
                return
        elif (definition := self._definitions.find(assignment.target, assignment.version)) is not None:
            values = {lowered(name): value for name, value in assignment.values.items()}
            yield self._assigned(EffectivePolicy("", definition, values, {}), assignment)
            return
        kind = "initiative" if assignment.is_initiative else "definition"
        message = f"the {kind} `{assignment.target}` of the assignment `{assignment.name}` is not in the files; add it"
        self._notes.append(PolicyNote(is_error=True, message=message, place=place))

    def _of_initiative(
        self, initiative: Initiative, values: JsonObject, assignment: PolicyAssignment | None
    ) -> Iterator[EffectivePolicy]:
        parameters = defaults_of(initiative.parameters) | {lowered(name): value for name, value in values.items()}
        missing: list[str] = []
        for member in initiative.members:
            definition = self._definitions.find(member.name, member.version)
            if definition is None:
                missing.append(member.name)
                continue
            own = self._member_values(initiative, member, parameters)
            controls = {initiative.name: member.groups} if member.groups else {}
            policy = EffectivePolicy("", definition, own, controls, initiative.name, member.id)
            yield policy if assignment is None else self._assigned(policy, assignment)
        if missing:
            names = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            message = (
                f"{len(missing)} definitions of the initiative `{initiative.name}` are not in the files ({names}); "
                "add them"
            )
            self._notes.append(PolicyNote(is_error=True, message=message, place=initiative.place))

    def _member_values(
        self, initiative: Initiative, member: InitiativeMember, parameters: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the parameters of a member; those that depend on a parameter without a value are left out."""
        compiler = ExpressionCompiler(self._aliases, "", "", {lowered(name): None for name in initiative.parameters})
        own: dict[str, object] = {}
        for name, value in member.values.items():
            try:
                result = compiler.compile_value(value, name)(Scope({}, parameters, {}, {}))
            except RefusedError as error:
                message = (
                    f"the parameter `{name}` of `{member.id}` in the initiative `{initiative.name}`: {error.reason}"
                )
                self._notes.append(PolicyNote(is_error=True, message=message, place=initiative.place))
                result = NotKnown.because(error.reason)
            # A value that is not known hides the default.
            own[lowered(name)] = None if isinstance(result, NotKnown) else result
        return own

    def _assigned(self, policy: EffectivePolicy, assignment: PolicyAssignment) -> EffectivePolicy:
        reference = lowered(policy.reference)
        override = next(
            (effect for effect, references in assignment.overrides if not references or reference in references), ""
        )
        mode = "must" if assignment.is_enforced else "should"
        message = assignment.messages.get(reference) or assignment.messages.get("", "")
        exemptions = (
            exemption
            for exemption in self._documents.exemptions
            if lowered(name_in(exemption.assignment)) == lowered(assignment.name)
            and (not exemption.references or reference in exemption.references)
        )
        return replace(
            policy,
            assignment=assignment.name,
            message=message.replace("{enforcementMode}", mode),
            scope="" if "$" in assignment.scope or "placeholder" in assignment.scope else assignment.scope,
            not_scopes=assignment.not_scopes,
            override=override,
            exemptions=tuple(exemptions),
        )


def _with_ids(policies: list[EffectivePolicy]) -> list[EffectivePolicy]:
    """Return policies with unique ids: the name of the definition, and what tells several of it apart."""
    names = Counter(lowered(policy.definition.name) for policy in policies)
    ids: Counter[str] = Counter()
    found = []
    for policy in policies:
        identity = policy.definition.name
        if names[lowered(identity)] > 1:
            identity += "@" + "/".join(filter(None, (policy.assignment or policy.initiative, policy.reference)))
        ids[lowered(identity)] += 1
        if (number := ids[lowered(identity)]) > 1:
            identity += f"#{number}"
        found.append(replace(policy, id=identity))
    return found
