"""A table of snapshots judged where it lies: the driver checks what is asked, and the workers judge row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from policyeng import __version__
from policyeng.bundle import Bundle
from policyeng.bundle.carrying import packed
from policyeng.embedding import parameters_of
from policyeng.engines.embedded import compile_rego
from policyeng.errors import UsageError, nearest
from policyeng.evaluation import prepare
from policyeng.models import Exemption, JsonObject, Severity, Snapshot
from policyeng.sources import DEFAULT_MAX_BYTES
from policyeng.spark.table import COLUMNS
from policyeng.spark.worker import Worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def judge(
    frame: DataFrame,
    bundle: Bundle,
    *,
    as_of: datetime,
    snapshot_column: str = "snapshot",
    name_column: str = "name",
    exemptions: Sequence[Exemption] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    profile: str | None = None,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> DataFrame:
    """Judge every row of a table as `policyeng check` judges a file of its name and content.

    Args:
        frame: one snapshot a row, of any format that is JSON; it is not read before the findings are.
        bundle: the policies in force; they are carried to the workers, which need policyeng and none of its files.
        as_of: the evaluation clock, one for all rows, so that a row that is judged again gives the same.
        snapshot_column: holds the snapshots, as text or as bytes in UTF-8.
        name_column: holds what findings and faults name a snapshot by; it need not be unique.
        exemptions: acceptances that mark failures while they are in force.
        parameters: by policy id, values that replace the defaults, below `*` for every policy that has one of the name.
        profile: a set of parameters of the bundle, which `parameters` go before.
        fail_on: failures at or above this severity make the exit code of their snapshot 1.
        strict_unknown: what cannot be decided counts as a failure does.
        max_bytes: the largest snapshot that is read.

    Returns:
        The columns of `COLUMNS`; one row per finding, passes too, and one per problem, which has no policy: an `error`
        for a snapshot that cannot be read, a `warning` for what changes no exit.

    Raises:
        UsageError: there is no such column, or it holds neither text nor bytes; a parameter names no policy or does not
            fit, or the profile does not exist.
        BundleError: the profile is not well formed, or the bundle was not read from files.
        EngineError: the bundle does not compile.
    """
    _require_arrow()
    _require_columns(frame, name_column, snapshot_column)
    given = parameters_of(bundle, profile, parameters)
    prepare(bundle, Snapshot(), given)  # what does not fit is said here, not once per worker
    compile_rego(bundle)
    moment = as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)
    worker = Worker(
        bundle=packed(bundle),
        build=__version__,
        as_of=moment,
        exemptions=tuple(exemptions),
        parameters=given,
        fail_on=Severity(fail_on),
        strict_unknown=strict_unknown,
        max_bytes=max_bytes,
    )
    name, snapshot = frame[_quoted(name_column)], frame[_quoted(snapshot_column)]
    pairs = frame.select(name.cast("string").alias("name"), snapshot.alias("snapshot"))
    return pairs.mapInArrow(worker, ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items()))


def _quoted(column: str) -> str:
    """The name of a column in the words of Spark, which takes a dot for a step into one."""
    return f"`{column.replace('`', '``')}`"


def _require_arrow() -> None:
    if find_spec("pyarrow") is None:
        raise UsageError("Spark hands tables over in the form of Arrow", remedy="install `policyeng[spark]`")


def _require_columns(frame: DataFrame, name: str, snapshot: str) -> None:
    kinds = dict(frame.dtypes)
    for column in (name, snapshot):
        if column not in kinds:
            remedy = f"the columns are {', '.join(kinds)}; set `name_column` and `snapshot_column`"
            raise UsageError(f"the table has no column `{column}`{nearest(column, kinds)}", remedy=remedy)
    if kinds[snapshot] not in ("string", "binary"):
        remedy = "give the whole document as text or bytes, such as `to_json` writes"
        raise UsageError(f"the column `{snapshot}` is of {kinds[snapshot]}", remedy=remedy)
