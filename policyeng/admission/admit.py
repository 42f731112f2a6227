"""Evaluation before and after a change -> decision, from bases that are kept. Pure: no I/O, no clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock

import orjson

from policyeng.admission.changes import Changes, changes_of
from policyeng.admission.decide import AdmissionOptions, decided_wholly
from policyeng.admission.session import AdmissionSession
from policyeng.bundle import Bundle
from policyeng.engines import OpaOptions
from policyeng.models import Blame, Decision, Enforcement, Exemption, JsonObject, Severity, Snapshot

#: Of so many states the bases are kept.
_KEPT = 4


def admit(
    bundle: Bundle,
    snapshot: Snapshot,
    change: Changes,
    *,
    as_of: datetime,
    before: Changes = (),
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    modes: Sequence[Enforcement] = (),
    blame: Blame = Blame.TOUCHED,
    standing: bool = False,
) -> Decision:
    """Decide whether a change may be made: what `check` would say after it, held against what it says before.

    It is denied for failures and errors that the change introduces or that sit on what it changes, at or above
    `fail_on` (errors always), and where what it says cannot be judged. Failures that were there before elsewhere are
    not blamed on it, and are in the decision only with `standing`.

    Args:
        bundle: the policies in force.
        snapshot: the state before the change.
        change: a resource to create or replace, an id to delete, a `Change`, or several of them that are made at once.
        as_of: the evaluation clock; without a zone it is taken as UTC.
        before: changes that have been made of the state already: the change is blamed for nothing that they bring. The
            decision names the state as it was given.
        exemptions: acceptances that mark failures while they are in force; what is marked denies nothing.
        parameters: by policy id, values that replace the defaults.
        engine: what judges Rego, a name of `policyeng.engines.ENGINES`.
        opa: which OPA judges, for the engine `opa`; a private server unless given.
        fail_on: failures below this severity warn.
        strict_unknown: what cannot be decided counts as a failure does.
        modes: how failures are enforced; without any of them they deny.
        blame: whether old failures on what is changed deny, too.
        standing: list all failures and errors of before that the change is not blamed for, not only those on what it
            changes; the verdict is the same.

    Raises:
        InputError: the change is none.
        UsageError: a parameter, the engine or a mode does not exist or does not fit.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    options = AdmissionOptions(
        as_of,
        exemptions,
        engine,
        opa,
        fail_on=fail_on,
        strict_unknown=strict_unknown,
        modes=modes,
        blame=blame,
        standing=standing,
    )
    if engine != "embedded":
        changes, earlier = (changes_of(given, bundle.spellings) for given in (change, before))
        return decided_wholly(bundle, snapshot, changes, options, parameters, earlier)
    return _BASES.basis(bundle, snapshot, parameters or {}).decide(change, options, before)


class _PendingSession:
    """A basis that the first thread that asks for it makes, while others that ask for it wait."""

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject]) -> None:
        self._given = (bundle, snapshot, parameters)
        self._basis: AdmissionSession | None = None
        self._lock = Lock()

    def basis(self) -> AdmissionSession:
        with self._lock:
            if self._basis is None:
                self._basis = AdmissionSession(*self._given)
            return self._basis


class _Bases:
    """The bases of the last few states that changes were judged against."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, int, bytes], _PendingSession] = OrderedDict()
        self._lock = Lock()

    def basis(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject]) -> AdmissionSession:
        """The one of this very bundle and snapshot; while it is held nothing else can be at their addresses."""
        key = (id(bundle), id(snapshot), orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS))
        with self._lock:
            entry = self._held.get(key)
            if entry is None:
                entry = self._held[key] = _PendingSession(bundle, snapshot, parameters)
                if len(self._held) > _KEPT:
                    self._held.popitem(last=False)
            else:
                self._held.move_to_end(key)
        return entry.basis()


_BASES = _Bases()
