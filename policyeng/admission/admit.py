"""Decide on changes, with cached sessions for the last states. Nothing here does I/O or reads the system clock."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

import orjson

from policyeng.admission.changes import Changes, changes_of, prepare_changes
from policyeng.admission.decide import decided_wholly
from policyeng.admission.decision import AdmissionOptions, with_problems
from policyeng.admission.session import AdmissionSession
from policyeng.bundle import Bundle
from policyeng.models import Change, Decision, JsonObject, Snapshot

#: The largest number of cached sessions.
_MAX_SESSIONS = 4


def admit(
    bundle: Bundle,
    snapshot: Snapshot,
    change: Changes,
    options: AdmissionOptions,
    *,
    before: Changes = (),
    remembered: Sequence[Change] = (),
) -> Decision:
    """Decide whether a change is allowed, by comparing the evaluations before and after it.

    A change is denied for failures at or above `options.fail_on`, and for errors, if the change introduces them or if
    they are on a changed resource. It is also denied if it cannot be evaluated. Earlier failures elsewhere do not deny
    it, and are in the decision only with `options.standing`.

    Args:
        bundle: the policies to evaluate.
        snapshot: the state before the change.
        change: what `policyeng.load_changes` returns; or a document with changes in any format, `Change` objects, or
            the id of a resource to delete. All of it is made together.
        options: how to evaluate and to decide.
        before: changes that are already made; their failures do not deny this change. The decision names the state
            without them. `()` for none.
        remembered: changes that others made before these; what is wrong with them is no problem of this change.

    Raises:
        InputError: nothing in the change can be read as one, it states none, or something in `before` cannot be read.
        UsageError: a parameter, the engine or a mode does not exist or is not valid.
        EngineError: the bundle does not compile, or the OPA server does not return a result for every pair.
    """
    if options.engine == "embedded":
        return _SESSIONS.session(bundle, snapshot, options.parameters).decide(change, options, before, remembered)
    read = prepare_changes(change, bundle.spellings)
    earlier = changes_of(before, bundle.spellings)
    decision = decided_wholly(bundle, snapshot, read.changes, options, earlier, remembered)
    return with_problems(decision, read.problems, read.ledger, options)


def list_effective(
    bundle: Bundle,
    snapshot: Snapshot,
    changes: Sequence[Change],
    *,
    before: Sequence[Change] = (),
    remembered: Sequence[Change] = (),
    parameters: Mapping[str, JsonObject] | None = None,
) -> list[Change]:
    """Return the changes that change the state; the arguments are as for `admit`."""
    return _SESSIONS.session(bundle, snapshot, parameters or {}).list_effective(changes, before, remembered)


class _PendingSession:
    """A session that the first thread creates, while other threads wait."""

    def __init__(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject]) -> None:
        self._inputs = (bundle, snapshot, parameters)
        self._session: AdmissionSession | None = None
        self._lock = Lock()

    def session(self) -> AdmissionSession:
        with self._lock:
            if self._session is None:
                self._session = AdmissionSession(*self._inputs)
            return self._session


class _Sessions:
    """A cache of the last sessions."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[int, int, bytes], _PendingSession] = OrderedDict()
        self._lock = Lock()

    def session(self, bundle: Bundle, snapshot: Snapshot, parameters: Mapping[str, JsonObject]) -> AdmissionSession:
        """Return the session of a bundle and a snapshot; the session keeps both alive, so their `id()` stays unique."""
        key = (id(bundle), id(snapshot), orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS))
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _PendingSession(bundle, snapshot, parameters)
                if len(self._entries) > _MAX_SESSIONS:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(key)
        return entry.session()


_SESSIONS = _Sessions()
