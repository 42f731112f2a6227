"""Evaluate Rego with an OPA server: one query for each snapshot, which returns a result for every pair or fails."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from policyeng.bundle import Bundle
from policyeng.engines.opa_bundles import OpaServerBundle, place_of, require_pure
from policyeng.engines.opa_query import Batch, OpaOptions
from policyeng.engines.opa_server import FOLDER, OpaConnection, binary_of, version_of
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.errors import EngineError
from policyeng.models import JsonObject
from policyeng.rego import EvaluationError

_Key = tuple[int, str, str, OpaOptions]

#: The largest number of servers to keep for the next snapshot; they end with the process.
_MAX_SERVERS = 4
#: Seconds for which the process waits at its end for a thread that is still running.
_PATIENCE = 5.0
_places: OrderedDict[_Key, OpaServerBundle] = OrderedDict()
_guard = threading.Lock()
_versions: dict[OpaOptions, str] = {}

#: The longest message in characters; OPA includes complete values in some messages.
_LONGEST = 500


def evaluate_with_opa(
    work: EvaluationRequest, pairs: Sequence[Pair], options: OpaOptions | None = None
) -> list[Judgement]:
    """Evaluate pairs of Rego policies, and return the results in the same order.

    Raises:
        UsageError: the options are not valid.
        EngineError: the server cannot be reached, does not return a result for every pair, or has another bundle.
    """
    options = options or OpaOptions()
    for module in work.bundle.left_out:
        raise EngineError(module.reason, place=(work.bundle.name,))
    for path, source in work.bundle.modules:
        require_pure(path, source, path in work.bundle.rego_v0)
    with _place(work.bundle, options) as place:
        batch = place.batch_of([policy for policy in work.bundle.policies if policy.rules])
        return _evaluate_by_strictness(place, batch, work, options, pairs)


def _evaluate_by_strictness(
    place: OpaServerBundle, batch: Batch, work: EvaluationRequest, options: OpaOptions, pairs: Sequence[Pair]
) -> list[Judgement]:
    """Evaluate pairs in a query for strict policies, and one for those in which a failing builtin is undefined."""
    lenient = [number for number, policy in enumerate(work.bundle.policies) if policy.file in work.bundle.lenient]
    judgements: dict[Pair, Judgement] = {}
    for is_strict in (True, False):
        alike = [pair for pair in pairs if (pair.policy not in lenient) is is_strict]
        if alike:
            query = _Query(place, batch, work, options, is_strict=is_strict)
            judgements.update(zip(alike, query.run(alike), strict=True))
    return [judgements[pair] for pair in pairs]


def version(options: OpaOptions | None = None) -> str:
    """Return the version of the OPA that evaluated last with these options, or that would evaluate."""
    options = options or OpaOptions()
    if options not in _versions:
        _versions[options] = _server_version(options) if options.url else version_of(binary_of(options))
    return _versions[options]


def close(patience: float = -1) -> None:
    """Stop the private servers, and disconnect from the others. This also runs when the process ends.

    Args:
        patience: seconds to wait for a thread that is using a server; no limit if negative.
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


class _Query:
    """A query about one snapshot, which can be divided into parts."""

    def __init__(
        self,
        place: OpaServerBundle,
        batch: Batch,
        work: EvaluationRequest,
        options: OpaOptions,
        *,
        is_strict: bool = True,
    ) -> None:
        self._place, self._batch, self._work, self._options = place, batch, work, options
        self._is_strict = is_strict
        self._input: JsonObject = {**batch.input_of(work), **place.extra_input}

    def run(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Send one query; if a policy fails in it, store the snapshot on the server and send queries in parts."""
        try:
            return self._send(pairs)
        except EvaluationError as fault:
            if len(pairs) == 1:
                return [_error(self._work, fault)]
        with self._place.holding(self._input) as stored:
            self._input = {"stored": stored, **self._place.extra_input}
            return self._run_halves(pairs)

    def _run_halves(self, pairs: Sequence[Pair]) -> list[Judgement]:
        middle = len(pairs) // 2
        return [judgement for half in (pairs[:middle], pairs[middle:]) for judgement in self._run_part(half)]

    def _run_part(self, pairs: Sequence[Pair]) -> list[Judgement]:
        try:
            return self._send(pairs)
        except EvaluationError as fault:
            return [_error(self._work, fault)] if len(pairs) == 1 else self._run_halves(pairs)

    def _send(self, pairs: Sequence[Pair]) -> list[Judgement]:
        place, batch = self._place, self._batch
        document = {**self._input, "pairs": batch.pairs_of(self._work, pairs)}
        answer = place.connection.query(batch.path, document, is_strict=self._is_strict)
        _versions[self._options] = _version_in(answer)
        result = answer.get("result")
        if not isinstance(result, dict):
            message = "could not decide: the OPA server does not have the bundle, or has lost it"
            raise EngineError(message, place=(place.connection.url,), remedy="check that it was not restarted")
        place.require_standing(result.get("standing"))
        return batch.read(self._work, pairs, result.get("verdicts"))


def _error(work: EvaluationRequest, fault: EvaluationError) -> Judgement:
    """Return the error of a policy as the embedded engine reports it."""
    file, message = FOLDER.sub("", fault.file), FOLDER.sub("", " ".join(fault.message.split()))
    lines = dict(work.bundle.modules).get(file, "").splitlines()
    line = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
    return Judgement(error=str(EvaluationError(fault.code, message[:_LONGEST], file, fault.line, line)))


@contextmanager
def _place(bundle: Bundle, options: OpaOptions) -> Iterator[OpaServerBundle]:
    """Yield the server for a bundle, for one thread; if it fails, the next snapshot uses a new one."""
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
    """Stop the servers that were used longest ago, except those in use and those that a parent process started."""
    for key in list(_places)[:-_MAX_SERVERS]:
        if not _places[key].users:
            place = _places.pop(key)
            if key[0] == os.getpid():
                place.close()


def _server_version(options: OpaOptions) -> str:
    connection = OpaConnection(options)
    try:
        return _version_in(connection.query("policyeng/version", {}))
    finally:
        connection.close()


def _version_in(answer: JsonObject) -> str:
    provenance = answer.get("provenance")
    result = provenance.get("version") if isinstance(provenance, dict) else None
    return result if isinstance(result, str) else "unknown"
