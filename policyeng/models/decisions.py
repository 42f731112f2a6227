"""What admission takes and gives: changes of resources, how failures are enforced, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from policyeng.frozen import field, frozen
from policyeng.models.base import UNCHECKED, AwareDatetime, JsonObject, Limited, Model
from policyeng.models.documents import Carried, Origin
from policyeng.models.findings import AppliedSettings, BundleRef, EngineRef, Finding, Problem, SnapshotRef


class Operation(StrEnum):
    """What a change does to one resource; `create` and `replace` are both ARM's PUT, whatever was there before."""

    CREATE = "create"
    REPLACE = "replace"
    PATCH = "patch"
    DELETE = "delete"


class Mode(StrEnum):
    """How a failure that a change is to blame for is enforced, strictest first."""

    DENY = "deny"
    WARN = "warn"
    SHADOW = "shadow"


class Blame(StrEnum):
    """What of a changed resource a change is to blame for.

    With `touched` every failure that sits on it, old ones also; with `introduced` only what the change brings about or
    makes worse. Of other resources a change is to blame for what it introduces, always.
    """

    TOUCHED = "touched"
    INTRODUCED = "introduced"


@frozen(kw_only=True)
class Change(Model):
    """One resource as it is about to become.

    Attributes:
        id: the ARM id of what is changed.
        resource: for `create` and `replace`, the whole resource in ARM shape, of this id.
        patch: for `patch`, a JSON Merge Patch (RFC 7396) over the resource.
        unreadable, carried: of the new resource, as in a snapshot; empty if all of it is known.
        origin: where the new resource was read; None for one that was not.
    """

    operation: Operation
    id: Annotated[str, Limited(min_length=1)]
    resource: Annotated[JsonObject | None, UNCHECKED] = None
    patch: Annotated[Any, UNCHECKED] = None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    carried: Carried | None = None
    origin: Origin | None = None


@frozen(kw_only=True)
class Enforcement(Model):
    """How failures of some policies are enforced at and under a scope.

    Attributes:
        policy: a policy id, an area as `--select` takes it, or `*` for all.
        scope: an ARM id; empty for everywhere.
    """

    policy: Annotated[str, Limited(min_length=1)] = "*"
    scope: str = ""
    mode: Mode


@frozen(kw_only=True)
class Changed(Model):
    """A resource that a decision is about."""

    operation: Operation
    id: str


@frozen(kw_only=True)
class Decision(Model):
    """Allow or deny, with the findings that determined it and those that did not.

    Attributes:
        exit_code: 0 allowed, 1 denied for failures, 2 denied because something could not be decided.
        snapshot: the state before the change.
        denied: failures and errors that the change is to blame for, in mode `deny` and at or above the gate.
        warned: others that it is to blame for: in mode `warn`, or below the gate.
        shadowed: others that it is to blame for, in mode `shadow`.
        undecided: findings that the change leaves unknown, where it introduces them or they sit on what it changes.
        exempted: failures that an exemption accepts, where the change introduces them or they sit on what it changes.
        standing: failures and errors after the change that were there before and are not blamed on it: those on what it
            changes, and all others where they are asked for.
        cleared: failures and errors before the change that it ends; as they were.
        problems: what a reader must know of the run; an `error` that the change brings denies.

    The lists of findings are sorted by policy and resource.
    """

    decision_version: Literal[1] = 1
    allowed: bool
    exit_code: int
    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: AwareDatetime
    engine: EngineRef
    changes: tuple[Changed, ...]
    denied: tuple[Finding, ...] = ()
    warned: tuple[Finding, ...] = ()
    shadowed: tuple[Finding, ...] = ()
    undecided: tuple[Finding, ...] = ()
    exempted: tuple[Finding, ...] = ()
    standing: tuple[Finding, ...] = ()
    cleared: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    settings: AppliedSettings = field(default_factory=AppliedSettings)
