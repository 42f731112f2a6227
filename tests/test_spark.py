"""Spark gives for a table of snapshots what `policyeng check` gives for files of the same names and contents."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import policyeng.spark as spark_package
from policyeng import load_exemptions
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import UsageError
from policyeng.models import JsonObject, Severity
from policyeng.spark import COLUMNS, evaluate_table
from policyeng.verify.generators.examples import examples_of
from tests.bundles import deny_when, rego, workspace, write
from tests.command import policyeng
from tests.conftest import ROOT
from tests.effort import effort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.slow

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLES = ROOT / "samples"
#: What cannot be read, by the reason.
UNREADABLE = {
    "cut-off.json": b'{"snapshotVersion": 1, "resources": [',
    "empty.json": b"",
    "latin-1.json": '["é"]'.encode("latin-1"),
    "of-no-format.json": b'{"a": 1}',
    "surrogate.json": b'{"snapshotVersion": 1, "resources": [{"id": "\\ud800", "type": "a/b"}]}',
    "twice.json": b'{"snapshotVersion": 1, "snapshotVersion": 1, "resources": []}',
}


#: What Java starts with: to compile thoroughly what runs for seconds takes longer than it saves.
JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with two workers, which see this checkout and nothing of the machine."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.fail("Spark runs on Java, and there is none: run `make packages`")
    given = {**JAVA, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        from pyspark.sql import SparkSession

        plain = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        with plain.config("spark.sql.shuffle.partitions", "2").getOrCreate() as session:
            session.sparkContext.setLogLevel("OFF")
            yield session
            gateway = session.sparkContext._gateway
        if gateway is not None:
            gateway.shutdown()


def table(spark: SparkSession, contents: Mapping[str, bytes | None]) -> DataFrame:
    """Snapshots as bytes, by name."""
    return spark.createDataFrame(list(contents.items()), "name string, snapshot binary").repartition(2)


def by_name(rows: list[Row]) -> dict[str | None, list[Row]]:
    """The rows of each snapshot, in their order."""
    found: dict[str | None, list[Row]] = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row)
    return found


def in_utc(moment: datetime | None) -> datetime | None:
    """A time as Spark gives it, without a zone and in that of the machine."""
    return moment and moment.astimezone(UTC)


def reported(rows: list[Row]) -> JsonObject:
    """The rows of one snapshot in the form of the JSON report."""
    findings, problems = [], []
    for row in rows:
        if row["policy"] is None:
            problems.append({"level": row["outcome"], "message": row["message"], "place": row["place"]})
            continue
        assert (row["message"], row["place"]) == (None, None)
        findings.append(
            {
                "policy": row["policy"],
                "title": row["title"],
                "severity": row["severity"],
                "resource": row["resource"],
                "resourceType": row["resource_type"],
                "outcome": row["outcome"],
                "denials": json.loads(row["denials"]),
                "unknowns": json.loads(row["unknowns"]),
                "exemption": row["exemption"],
                "remediation": row["remediation"],
                "source": row["source"],
                "location": {"file": row["file"], "line": row["line"], "column": row["column"]},
            }
        )
    first = rows[0]
    return {
        "findings": findings,
        "problems": problems,
        "exitCode": first["exit_code"],
        "bundle": first["bundle_digest"],
        "snapshot": (first["snapshot_digest"], first["scope"], in_utc(first["taken_at"])),
        "engine": first["engine_version"],
        "asOf": in_utc(first["as_of"]),
    }


def checked(name: str, content: bytes, folder: Path, *options: str) -> JsonObject:
    """The report of `policyeng check` for a single file, as far as the table has it."""
    folder = folder / name.removesuffix(".json")
    folder.mkdir()
    (folder / name).write_bytes(content)
    ran = policyeng("check", name, "--format", "json", "--as-of", AS_OF.isoformat(), *options, folder=folder)
    report: JsonObject = json.loads(ran.stdout)
    for finding in report["findings"]:
        for name in ("area", "controls", "owner", "why", "url"):
            del finding[name]
        del finding["location"]["fields"], finding["location"]["address"]
        finding["exemption"] = finding["exemption"] and finding["exemption"]["id"]
    for problem in report["problems"]:
        del problem["kind"]
    taken = report["snapshot"]["takenAt"]
    return {
        "findings": report["findings"],
        "problems": report["problems"],
        "exitCode": ran.returncode,
        "bundle": report["bundle"]["digest"],
        "snapshot": (
            report["snapshot"]["digest"],
            report["snapshot"]["scope"],
            taken and datetime.fromisoformat(taken),
        ),
        "engine": report["engine"]["version"],
        "asOf": datetime.fromisoformat(report["asOf"]),
    }


def native(document: JsonObject) -> bytes:
    """A drawn estate as a snapshot."""
    return orjson.dumps({"snapshotVersion": 1, **document})


def contents(bundle: Bundle) -> dict[str, bytes]:
    """Every JSON sample, drawn estates, and what cannot be read, by names without folders."""
    samples = {path.name: path.read_bytes() for path in sorted(SAMPLES.rglob("*.json"))}
    drawn = islice(examples_of(bundle, 20261122), effort(25, 250))
    estates = {f"drawn-{number}.json": native(example.document) for number, example in enumerate(drawn)}
    return {**samples, **estates, **UNREADABLE}


def test_findings_are_those_of_check(spark: SparkSession, bundle: Bundle, tmp_path: Path) -> None:
    """Of every sample, of drawn estates and of what cannot be read: all columns, all problems, the exit code."""
    given = contents(bundle)
    exemptions = SAMPLES / "exemptions.yaml"

    frame = evaluate_table(table(spark, given), bundle, as_of=AS_OF, exemptions=load_exemptions(exemptions))
    rows = by_name(frame.collect())

    assert frame.columns == list(COLUMNS)
    assert rows.keys() == given.keys()
    for name, content in given.items():
        assert reported(rows[name]) == checked(name, content, tmp_path, "--exemptions", str(exemptions)), name
    every = [row for of in rows.values() for row in of]
    assert {row["outcome"] for row in every} == {"pass", "fail", "unknown", "error", "warning"}
    assert any(row["exemption"] for row in every)
    for name in UNREADABLE:
        assert rows[name][0]["outcome"] == "error", name
        assert {(row["exit_code"], row["policy"]) for row in rows[name]} == {(2, None)}, name


def test_a_profile_is_that_of_check(spark: SparkSession, bundle: Bundle, tmp_path: Path) -> None:
    """Unknown findings may count as failures."""
    content = (SAMPLES / "workspaces/regulated.json").read_bytes()
    options = ("--profile", "azureml-v2", "--strict-unknown")

    frame = evaluate_table(
        table(spark, {"a.json": content}), bundle, as_of=AS_OF, profile="azureml-v2", strict_unknown=True
    )

    assert reported(frame.collect()) == checked("a.json", content, tmp_path, *options)


def test_a_table_is_taken_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Text, names that are no text or are not there, columns of other names, policies and data of one's own."""
    parameters = "parameters: {limit: {type: integer, default: 1}}"
    more = rego("b", deny_when("input.resource.properties.x > input.parameters.limit"), identity="T-A-2")
    files = {
        "area/a/a.rego": rego("a", deny_when("input.resource.properties.x == data.words.x")),
        "area/b/b.rego": more.replace("# custom:\n", f"# custom:\n#   {parameters}\n"),
        "area/c/c.rego": rego("c", deny_when("true"), identity="T-A-3"),
    }
    (tmp_path / "words.json").write_text('{"words": {"x": 7}}')
    whole = load_bundle(write(tmp_path / "bundle", files), data=[tmp_path / "words.json"])
    bundle = whole.only(policy for policy in whole.policies if policy.id != "T-A-3")
    text = json.dumps({"snapshotVersion": 1, "resources": [workspace(x=7)]})
    frame = spark.createDataFrame([(5, text), (None, text), (6, None)], "`run.id` long, `a``b` string")

    evaluated = evaluate_table(
        frame,
        bundle,
        as_of=AS_OF,
        name_column="run.id",
        snapshot_column="a`b",
        parameters={"T-A-2": {"limit": 7}},
        fail_on=Severity.CRITICAL,
    )
    rows = by_name(evaluated.collect())

    outcomes = {name: [(row["policy"], row["outcome"], row["exit_code"]) for row in of] for name, of in rows.items()}
    assert outcomes == {
        "5": [("T-A-1", "fail", 0), ("T-A-2", "pass", 0)],
        None: [("T-A-1", "fail", 0), ("T-A-2", "pass", 0)],
        "6": [(None, "error", 2)],
    }
    assert rows["6"][0]["message"] == "the row holds no snapshot"
    assert rows[None][0]["file"] == "a snapshot without a name"


def test_faulty_arguments_are_reported_before_anything_runs(spark: SparkSession, bundle: Bundle) -> None:
    """With the nearest name, as on the command line."""
    frame = spark.createDataFrame([("a", 1)], "name string, snapshots long")

    with pytest.raises(UsageError, match=r"no column `snapshot`; did you mean `snapshots`; the columns are name, snap"):
        evaluate_table(frame, bundle, as_of=AS_OF)
    with pytest.raises(UsageError, match="the column `snapshots` is of bigint; give the whole document as text"):
        evaluate_table(frame, bundle, as_of=AS_OF, snapshot_column="snapshots")
    for parameters, profile in (({"AML-X": {}}, None), ({"AML-COST-101": {"x": 1}}, None), (None, "nothing")):
        with pytest.raises(UsageError):
            evaluate_table(table(spark, {}), bundle, as_of=AS_OF, parameters=parameters, profile=profile)


def test_the_sample_evaluates_a_folder(tmp_path: Path) -> None:
    """`spark-submit` runs it: it writes the findings, prints the most frequent failures, and exits as `check`."""
    submit = Path(sys.executable).with_name("spark-submit")
    environ = {
        **os.environ,
        **JAVA,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    snapshots, findings = str(SAMPLES / "workspaces"), str(tmp_path / "findings")

    ran = subprocess.run(
        [submit, *options, SAMPLES / "spark/evaluate.py", snapshots, "2026-06-01T00:00:00Z", findings],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environ,
    )

    assert ran.returncode == 1, ran.stderr[-2000:]
    failures: Counter[str] = Counter()
    for path in sorted((SAMPLES / "workspaces").iterdir()):
        report = json.loads(policyeng("check", str(path), "--as-of", "2026-06-01T00:00:00Z", "--format", "json").stdout)
        failures.update(
            one["policy"] for one in report["findings"] if one["outcome"] == "fail" and not one.get("exemption")
        )
    most_frequent = sorted(failures, key=lambda policy: (-failures[policy], policy))[:10]
    assert re.findall(r"AML-[A-Z]+-\d+", ran.stdout) == most_frequent
    assert list((tmp_path / "findings").glob("*.parquet"))


def test_the_page_shows_the_use_and_names_every_column(spark: SparkSession) -> None:
    """Its function runs as written, and its tables have all arguments and all columns."""
    page = (ROOT / "docs/spark.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    query = re.search(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    cells = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert code is not None
    assert query is not None
    assert set(named) == {*COLUMNS, *signature(evaluate_table).parameters}

    page_of: dict[str, Any] = {}
    exec(compile(code[1], "page", "exec"), page_of)  # noqa: S102  # our own page
    page_of["findings_of"](spark, str(SAMPLES / "workspaces")).createOrReplaceTempView("findings")
    opened = re.search(r"from_json\(denials, '.*?'\)", page)
    assert opened is not None
    (failures, *_) = spark.sql(query[1]).collect()
    failed = spark.table("findings").where("outcome = 'fail'")
    denials = failed.where(failed["policy"] == failures["policy"]).selectExpr(f"{opened[0]} as of").collect()

    assert failures["snapshots"] >= 2
    assert all(row["of"][0]["msg"] for row in denials)


def test_the_name_of_version_0_1_remains() -> None:
    """`judge` is `evaluate_table`."""
    assert spark_package.judge is evaluate_table
