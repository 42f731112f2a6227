"""What runs in the Python workers of Spark: snapshots in, findings out, the bundle opened once in each process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from policyeng import __version__
from policyeng.bundle import Bundle
from policyeng.bundle.carrying import unpacked
from policyeng.errors import UsageError
from policyeng.evaluation import evaluate
from policyeng.models import Evaluation, Exemption, JsonObject, Problem, Severity, Snapshot
from policyeng.sources.inputs import read_named
from policyeng.sources.opening import Named
from policyeng.spark.table import Rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: So many rows go to Spark together; one snapshot is never split.
_MOST_ROWS = 4096
_NAMELESS = "a snapshot without a name"
#: Python processes of Spark live on from task to task.
_opened = lru_cache(maxsize=2)(unpacked)


@dataclass(frozen=True, slots=True)
class Worker:
    """All that a task is told; Spark pickles it.

    Attributes:
        bundle: as `packed` gives it.
        build: the code of the driver.
        parameters: by policy id, those of the profile among them.
    """

    bundle: bytes = field(repr=False)
    build: str
    as_of: datetime
    exemptions: tuple[Exemption, ...]
    parameters: Mapping[str, JsonObject]
    fail_on: Severity
    strict_unknown: bool
    max_bytes: int

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Judge what Spark hands over, a column of names and one of snapshots.

        Raises:
            UsageError: this process has other code than the driver.
            BundleError: the bundle is not here what it is there.
        """
        if self.build != __version__:
            what = f"the driver has policyeng {self.build}, and this worker has {__version__}"
            raise UsageError(what, remedy="install the same policyeng on the driver and on every worker")
        rows = Rows()
        for batch in batches:
            for name, snapshot in zip(*batch.columns, strict=True):
                called: str | None = name.as_py()
                rows.add(called, self._judged(_NAMELESS if called is None else called, snapshot.as_py()))
                if len(rows) >= _MOST_ROWS:
                    yield rows.taken()
        if len(rows):
            yield rows.taken()

    def _judged(self, name: str, snapshot: str | bytes | None) -> Evaluation:
        bundle = _opened(self.bundle)
        if snapshot is None:
            missing = Problem(level="error", message="the row holds no snapshot", place=name)
            return self._evaluated(bundle, Snapshot(), [missing])
        content = snapshot.encode() if isinstance(snapshot, str) else snapshot
        read = read_named([Named(name, None)], content, max_bytes=self.max_bytes, **bundle.wanted)
        return self._evaluated(bundle, read.snapshot, read.problems)

    def _evaluated(self, bundle: Bundle, snapshot: Snapshot, problems: Iterable[Problem]) -> Evaluation:
        return evaluate(
            bundle,
            snapshot,
            as_of=self.as_of,
            exemptions=self.exemptions,
            parameters=self.parameters,
            fail_on=self.fail_on,
            strict_unknown=self.strict_unknown,
            problems=problems,
        )
