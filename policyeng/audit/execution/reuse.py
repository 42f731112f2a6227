"""Reuse of the evaluations of the last run of an estate, if everything that they depend on is the same.

A part is unchanged if the bytes that it was read from are; times of files do not count. A reused evaluation is
identical to a new one, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from pydantic_core import to_json

from policyeng import __version__
from policyeng.audit.collection.parts import Collected, PartSource, is_unchanged
from policyeng.audit.execution.part_evaluation import Before, JudgedPart, Resumed, RunOptions, ids_in_force
from policyeng.audit.execution.reuse_key import ReuseKey, read_back
from policyeng.audit.records import AuditRun
from policyeng.audit.store.blobs import in_batches, pack
from policyeng.audit.store.codecs import evaluation_of, head_of
from policyeng.audit.store.digests import PartRow, canonical, digest_of
from policyeng.audit.store.run_writer import StoredPart
from policyeng.audit.store.store import Store, contents_of, rows_of
from policyeng.bundle import Policy
from policyeng.cache import package_digest
from policyeng.engines import engine_version
from policyeng.exemptions import in_force_of, unused
from policyeng.models import Problem, Summary

#: Parts of which the stored findings are in memory at once.
_BATCH = 100


class EarlierRun:
    """The last run of an estate, for reusing its evaluations.

    Attributes:
        grounds: the digest of what all parts of this run share; see `ReuseKey`.
    """

    def __init__(
        self, store: Store, last: AuditRun | None, policies: Sequence[Policy], grounds: str, options: RunOptions
    ) -> None:
        """Use the parts of the last run, if any."""
        self._store, self._options, self.grounds = store, options, grounds
        self._as_of = last.as_of if last else options.as_of
        self._rows: Mapping[str, PartRow] = rows_of(store, last) if last else {}
        self._in_force = ids_in_force(options, policies)
        self._saying = cache(lambda used: frozenset(_problems_of_exemptions(options, policies, used)))

    def resumed(
        self, sources: Iterable[PartSource | Collected]
    ) -> Iterator[PartSource | Collected | Resumed | JudgedPart]:
        """Yield the parts of an estate in order, with the reusable evaluations.

        Raises:
            StoreError: a reused content is not what was stored.
        """
        for batch in in_batches(sources, _BATCH):
            held = {source.name: found for source in batch if (found := self._held(source))}
            heads = contents_of(self._store, [row.evaluation for row, _ in held.values()]) if held else {}
            again = [heads[row.evaluation] for row, basis in held.values() if self._is_again(basis, row, heads)]
            findings = contents_of(self._store, [head_of(head).findings for head in again]) if again else {}
            for source in batch:
                found = held.get(source.name) if isinstance(source, PartSource) else None
                head = heads.get(found[0].evaluation) if found else None
                yield (self._taken(source, *found, head, findings) if found and head else None) or source

    def _held(self, source: PartSource | Collected) -> tuple[PartRow, ReuseKey] | None:
        row = self._rows.get(source.name)
        if row is None or not row.holding or isinstance(source, Collected):
            return None
        basis = read_back(row.holding)
        if basis is None or basis.grounds != self.grounds or tuple(basis.in_force) != self._in_force:
            return None
        return (row, basis) if is_unchanged(source, basis.asked) else None

    def _is_again(self, basis: ReuseKey, row: PartRow, heads: Mapping[str, bytes]) -> bool:
        return row.evaluation in heads and not self._is_same_clock(basis)

    def _taken(
        self, source: PartSource | Collected, row: PartRow, basis: ReuseKey, head: bytes, findings: Mapping[str, bytes]
    ) -> Resumed | JudgedPart | None:
        if isinstance(source, PartSource) and not self._is_same_clock(basis):
            stored = findings.get(head_of(head).findings)
            if stored is None:
                return None
            return Resumed(
                source, basis.asked, Before(evaluation_of(head, stored), frozenset(basis.again), row.snapshot)
            )
        then, now = (b',"asOf":' + to_json(moment) for moment in (self._as_of, self._options.as_of))
        if head.count(then) != 1:  # it was judged at another clock than its run says
            return None
        content = head.replace(then, now)
        digest = digest_of(content)
        entry = StoredPart(
            row.name, row.snapshot, digest, {digest: pack(content)}, row.standing, row.exit_code, row.summary
        )
        summary = Summary.model_validate_json(row.summary)
        return JudgedPart(row.name, entry, summary, (), self._saying(tuple(basis.used)), basis)

    def _is_same_clock(self, basis: ReuseKey) -> bool:
        """Check whether the policies that read the clock have the same results."""
        now = self._options.as_of
        return not basis.again or self._as_of == now or (basis.unchanged is not None and basis.unchanged.includes(now))


def _problems_of_exemptions(options: RunOptions, policies: Sequence[Policy], used: Sequence[str]) -> Iterator[Problem]:
    in_force, problems = in_force_of(options.exemptions, policies, options.as_of)
    yield from (*problems, *unused(in_force, used))


def digest_grounds(policies: bytes, options: RunOptions) -> str:
    """Return the digest of the stored policies, the options, and the code of the engine."""
    stated = {
        "policies": digest_of(policies),
        "parameters": options.parameters,
        "exemptions": [exemption.model_dump(mode="json") for exemption in options.exemptions],
        "failing": [str(options.fail_on), options.strict_unknown],
        "engine": [options.engine, engine_version(options.engine, options.opa)],
        "code": [__version__, package_digest()],
    }
    return digest_of(canonical(stated))
