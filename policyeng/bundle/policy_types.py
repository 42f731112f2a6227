"""A policy as a value, and how one is declared in Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from policyeng.bundle.constraint_match import ConstraintMatch
from policyeng.bundle.header import PolicyHeader
from policyeng.facts import Facts
from policyeng.models import Denial, JsonObject, Unknown

if TYPE_CHECKING:
    from policyeng.azure_policy.effects import CompiledPolicy

_Value = TypeVar("_Value")

#: What a Rego rule of a policy is for; `exception` is Conftest's, and only policies of others have it.
Role = Literal["applies", "deny", "exception", "unknown"]

#: What `input` is for a Rego policy: our policy input; the evaluated document, as Conftest passes it; or the
#: admission review, as Gatekeeper passes it: `{"review": {"object": document, ...}, "parameters": {...}}`.
InputForm = Literal["policy", "document", "review"]


@dataclass(frozen=True)
class SnapshotView:
    """The snapshot as a policy sees it: plain JSON values with camelCase keys, indexed by id and by type.

    Attributes:
        by_id: lower-case ARM id to resource.
        by_type: lower-case ARM type to the resources of it.
        by_scope: lower-case id of a subscription, resource group, workspace or private endpoint to the types of the
            resources at or under it, and to their lower-case ids; `/` to those of the resources in no subscription.
        by_extended: lower-case id of any resource or scope, without a slash at its end, to the types of the extension
            resources on it, such as diagnostic settings and locks, and to their lower-case ids.
        by_host: lower-case id of any resource, without a slash at its end, to the lower-case ids of the computes whose
            `properties.resourceId` names it.
        by_subnet: lower-case id of a subnet, without a slash at its end, to the lower-case ids of the computes and
            managed clusters whose nodes sit in it.
        by_guid: last part of a role definition's id, in lower case, to the lower-case ids of the definitions.
        by_series: lower-case VM series to the positions of its approvals in `approvals`.
        by_measured: lower-case id of a resource, without a slash at its end, to the positions of its `metrics`.
        by_principal: lower-case id of a principal to its positions in `principals`.
        workloads: declared and derived, joined.
    """

    scope: str
    taken_at: str | None
    resources: Sequence[JsonObject]
    by_id: Mapping[str, JsonObject]
    by_type: Mapping[str, Sequence[JsonObject]]
    by_scope: Mapping[str, Mapping[str, Sequence[str]]]
    by_extended: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    by_host: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_subnet: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_guid: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_series: Mapping[str, Sequence[int]] = field(default_factory=dict)
    by_measured: Mapping[str, Sequence[int]] = field(default_factory=dict)
    by_principal: Mapping[str, Sequence[int]] = field(default_factory=dict)
    approvals: Sequence[JsonObject] = ()
    workloads: Sequence[JsonObject] = ()
    quotas: Sequence[JsonObject] = ()
    metrics: Sequence[JsonObject] = ()
    principals: Sequence[JsonObject] = ()
    evidence: Sequence[JsonObject] = ()
    incomplete: Sequence[str] = ()
    _worked_out: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_document(cls, document: JsonObject) -> SnapshotView:
        """Return the view of a snapshot with camelCase keys, as `input.snapshot` has it in Rego."""
        members = {name: document[name] for name in SEEN if name in document}
        return cls(taken_at=document["takenAt"], **members)

    def fresh(self) -> SnapshotView:
        """Return the same, with nothing worked out of it."""
        return replace(self)

    def once(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return what `make` gives, computed once per key for all resources of the snapshot.

        All policies share the keys, so a key begins with the id of its policy.
        """
        if key not in self._worked_out:
            self._worked_out[key] = make()
        value: _Value = self._worked_out[key]
        return value


#: What policies see of a snapshot.
SEEN = tuple(member.name for member in fields(SnapshotView) if member.init)


#: The members of a snapshot that have ids or types as keys, and those of them with such an object below each key.
INDICES = ("by_id", "by_type", "by_scope", "by_extended", "by_host", "by_subnet", "by_guid")
NESTED = ("by_scope", "by_extended")


def sort_keys(name: str, value: Any) -> Any:
    """Return a member of a snapshot with its keys in their order if it is one of `INDICES`, or else as it is."""
    if name in NESTED:
        return {key: dict(sorted(value[key].items())) for key in sorted(value)}
    return dict(sorted(value.items())) if name in INDICES else value


@dataclass(frozen=True)
class PolicyInput:
    """What a Python policy evaluates; the attributes carry the names of the Rego `input` document."""

    resource: JsonObject
    workspace: JsonObject | None
    snapshot: SnapshotView
    parameters: JsonObject
    as_of: datetime
    facts: Facts


PolicyFunction = Callable[[PolicyInput], Iterable[Denial | Unknown]]
Applies = Callable[[PolicyInput], bool]


@dataclass(frozen=True)
class Declaration:
    """What `@policy(...)` leaves on a function, for the reader of the bundle."""

    fields: Mapping[str, Any]
    applies: Applies | None


class Functions(NamedTuple):
    """The functions of a Python policy: the one that evaluates it, and the one that decides whether it applies."""

    evaluate: PolicyFunction
    applies: Applies | None


@dataclass(frozen=True)
class PythonPolicy:
    """The Python form of a policy; its module runs when one of its functions is first needed, and not before.

    Attributes:
        run: runs the module and returns its functions.
        has_applies: it has a function that decides whether it applies.
        text: of the module.
    """

    run: Callable[[], Functions] = field(compare=False, repr=False)
    has_applies: bool
    text: bytes = field(repr=False)

    @cached_property
    def functions(self) -> Functions:
        """The functions of the module.

        Raises:
            BundleError: the module cannot be run, or declares something else than its text states.
        """
        return self.run()

    def again(self) -> PythonPolicy:
        """Run the module again and return that policy, which shares no state with this one.

        Raises:
            BundleError: as of `functions`.
        """
        fresh = replace(self)
        _ = fresh.functions
        return fresh


@dataclass(frozen=True)
class Policy:
    """One requirement with one id.

    Attributes:
        area: the folder above the policy's own, such as `network`; empty for a policy outside the usual layout.
        rules: the Rego rules by role, as full paths such as `data.network.x.deny`; empty for a Python policy.
        undecided: why it cannot be evaluated here, if so; then every outcome is unknown.
        match: which documents the Gatekeeper constraint applies to that it is of; None without one.
        fault: why its module cannot be compiled, if so; then every outcome is an error.
        input_form: the form of its `input`; not `policy` for foreign policies.
        python: the Python form; in addition to Rego rules it is the twin, which is compared and never active.
        azure: the compiled definition of Azure Policy, if it is one; then it has neither rules nor Python.
        file: the policy's file, relative to the bundle's root.
        cases: the `cases.yaml` in its directory, if any.
    """

    header: PolicyHeader
    area: str
    name: str
    file: str
    rules: tuple[tuple[Role, str], ...] = ()
    input_form: InputForm = "policy"
    undecided: str = ""
    fault: str = ""
    match: ConstraintMatch | None = None
    python: PythonPolicy | None = None
    azure: CompiledPolicy | None = field(default=None, compare=False, repr=False)
    cases: Path | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The id, unique in a bundle."""
        return self.header.id

    @property
    def package(self) -> str:
        """The Rego package, such as `network.public_network_access`; empty for a Python policy."""
        return self.rules[0][1].removeprefix("data.").rpartition(".")[0] if self.rules else ""

    @property
    def language(self) -> Literal["rego", "python", "azure-policy"]:
        """The language of the active form."""
        if self.azure is not None:
            return "azure-policy"
        return "rego" if self.rules else "python"


def policy(*, applies: Applies | None = None, **fields: Any) -> Callable[[PolicyFunction], PolicyFunction]:
    """Declare the function below as a policy.

    Args:
        applies: decides whether the policy applies to a resource; by default to every resource of `judges`.
        fields: the header, with the names of `PolicyHeader`. Omit them for the Python twin of a Rego policy of the
            same name in the same directory: that has the header.

    The function takes a `PolicyInput` and yields `Denial` and `Unknown` values; it must not change its input, and
    has no clock, no network and no randomness. Wrong fields raise `BundleError` when the bundle is read.
    The header is read from the text, without running the module: see `policyeng.bundle.python_headers`.
    """

    def declare(function: PolicyFunction) -> PolicyFunction:
        function.__policy__ = Declaration(fields, applies)  # type: ignore[attr-defined]  # functions take attributes
        return function

    return declare
