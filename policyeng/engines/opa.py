"""Judge Rego with a real OPA server: one query per snapshot, and every pair answered or nothing."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from policyeng.bundle import Bundle
from policyeng.engines.opa_bundles import OpaServerBundle, place_of
from policyeng.engines.opa_options import OpaOptions
from policyeng.engines.opa_query import Batch
from policyeng.engines.opa_rewriting import require_pure
from policyeng.engines.opa_server import FOLDER, binary_of, version_of
from policyeng.engines.opa_transport import OpaConnection
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.errors import EngineError
from policyeng.models import JsonObject
from policyeng.rego import EvaluationError

_Key = tuple[int, str, str, OpaOptions]

#: Places stay for the next snapshot, the last used ones; they end with the process.
_KEPT = 4
#: Seconds that the end of the process waits for a thread that nobody waits for any more.
_PATIENCE = 5.0
_places: OrderedDict[_Key, OpaServerBundle] = OrderedDict()
_guard = threading.Lock()
_versions: dict[OpaOptions, str] = {}

#: Characters of a message; OPA puts whole values into some.
_LONGEST = 500


def judge_pairs(work: EvaluationRequest, pairs: Sequence[Pair], options: OpaOptions | None = None) -> list[Judgement]:
    """Judgements in the order of the pairs, which name Rego policies.

    Raises:
        UsageError: the options do not fit.
        EngineError: the server cannot be reached, does not answer for every pair, or has another bundle.
    """
    options = options or OpaOptions()
    for path, source in work.bundle.modules:
        require_pure(path, source, path in work.bundle.rego_v0)
    with _place(work.bundle, options) as place:
        batch = place.batch_of([policy for policy in work.bundle.policies if policy.rules])
        question = _Question(place, batch, work, options)
        return question.judged(list(pairs))


def version(options: OpaOptions | None = None) -> str:
    """The version of the OPA that judged last with these options, or that would judge."""
    options = options or OpaOptions()
    if options not in _versions:
        _versions[options] = _server_version(options) if options.url else version_of(binary_of(options))
    return _versions[options]


def close(patience: float = -1) -> None:
    """End the private servers, and leave the others; the next snapshot starts anew. Runs when the process ends.

    Args:
        patience: seconds to wait for a thread that still asks a server; without bound when negative.
    """
    with _guard:
        places = [place for key, place in _places.items() if key[0] == os.getpid()]
        _places.clear()
    for place in places:
        free = place.lock.acquire(timeout=patience)
        try:
            place.close()
        finally:
            if free:
                place.lock.release()


atexit.register(close, patience=_PATIENCE)


class _Question:
    """Everything about one snapshot that stays the same when it is asked in parts."""

    def __init__(self, place: OpaServerBundle, batch: Batch, work: EvaluationRequest, options: OpaOptions) -> None:
        self._place, self._batch, self._work, self._options = place, batch, work, options
        self._input: JsonObject = {**batch.input_of(work), **place.asked}

    def judged(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """One query; when a policy fails in it, the snapshot is left on the server and asked about in parts."""
        try:
            return self._asked(pairs)
        except EvaluationError as fault:
            if len(pairs) == 1:
                return [_error(self._work, fault)]
        with self._place.holding(self._input) as stored:
            self._input = {"stored": stored, **self._place.asked}
            return self._halves(pairs)

    def _halves(self, pairs: Sequence[Pair]) -> list[Judgement]:
        middle = len(pairs) // 2
        return [judgement for half in (pairs[:middle], pairs[middle:]) for judgement in self._part(half)]

    def _part(self, pairs: Sequence[Pair]) -> list[Judgement]:
        try:
            return self._asked(pairs)
        except EvaluationError as fault:
            return [_error(self._work, fault)] if len(pairs) == 1 else self._halves(pairs)

    def _asked(self, pairs: Sequence[Pair]) -> list[Judgement]:
        place, batch = self._place, self._batch
        answer = place.connection.ask(batch.path, {**self._input, "pairs": batch.pairs_of(self._work, pairs)})
        _versions[self._options] = _version_in(answer)
        said = answer.get("result")
        if not isinstance(said, dict):
            message = "could not decide: the OPA server lacks the bundle, or has lost it on the way"
            raise EngineError(message, place=(place.connection.url,), remedy="see that it was not restarted")
        place.require_standing(said.get("standing"))
        return batch.read(self._work, pairs, said.get("verdicts"))


def _error(work: EvaluationRequest, fault: EvaluationError) -> Judgement:
    """Return the error of a policy as the embedded engine reports it."""
    file, message = FOLDER.sub("", fault.file), FOLDER.sub("", " ".join(fault.message.split()))
    lines = dict(work.bundle.modules).get(file, "").splitlines()
    line = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
    return Judgement(error=str(EvaluationError(fault.code, message[:_LONGEST], file, fault.line, line)))


@contextmanager
def _place(bundle: Bundle, options: OpaOptions) -> Iterator[OpaServerBundle]:
    """The place of a bundle, for one thread; one that failed is given up, so that the next snapshot starts anew."""
    key = (os.getpid(), bundle.digest, bundle.revision, options)
    with _guard:
        place = _places.pop(key, None)
        if place is not None and not place.alive:
            place.close()
            place = None
        place = place or place_of(bundle, options)
        place.users += 1
        _places[key] = place
        _drop_idle()
    try:
        with place.lock:
            yield place
    except BaseException:
        with _guard:
            if _places.get(key) is place:
                del _places[key]
        place.close()
        raise
    finally:
        with _guard:
            place.users -= 1


def _drop_idle() -> None:
    """Give up the places that were used longest ago, but none that is in use, or that a parent process started."""
    for key in list(_places)[:-_KEPT]:
        if not _places[key].users:
            place = _places.pop(key)
            if key[0] == os.getpid():
                place.close()


def _server_version(options: OpaOptions) -> str:
    connection = OpaConnection(options)
    try:
        return _version_in(connection.ask("policyeng/version", {}))
    finally:
        connection.close()


def _version_in(answer: JsonObject) -> str:
    provenance = answer.get("provenance")
    said = provenance.get("version") if isinstance(provenance, dict) else None
    return said if isinstance(said, str) else "unknown"
