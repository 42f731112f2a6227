"""The measures of fleets: real audits and real processes, and no figures where two disagree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks import scale, spark
from benchmarks.estates import fleet
from benchmarks.family import Watch, cpu_seconds, family
from policyeng.bundle import load_bundle
from policyeng.bundle.assembling import pack_bundle

ALLOCATING = (
    "import sys; memory = bytearray(64 << 20); memory[::4096] = b'x' * (len(memory) // 4096); print(); sys.stdin.read()"
)


def test_a_fleet_is_the_same_every_time_and_no_two_of_it_are_alike() -> None:
    """Each snapshot has its size, and none a resource of another."""
    first = list(fleet(5, 7))
    ids = [resource["id"] for _, content in first for resource in json.loads(content)["resources"]]

    assert first == list(fleet(5, 7))
    assert len(set(ids)) == len(ids) == 35


def test_what_a_family_takes_is_that_of_all_its_members() -> None:
    """A child that allocates 64 MB and does nothing more."""
    with subprocess.Popen([sys.executable, "-c", ALLOCATING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with Watch(child.pid, every=0.01) as watch:
            while not watch.pss_mb:
                pass
        members = family(os.getpid())
        child.communicate()

    assert child.pid in members
    assert 64 < watch.pss_mb < 200
    assert watch.rss_mb >= watch.pss_mb
    assert cpu_seconds(os.getpid()) > 0


@pytest.mark.slow
def test_audits_are_measured_when_they_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """One process and two, each in a process of its own."""
    assert scale.main(["--workspaces", "3", "--resources", "4", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| ") and "jobs" not in line]

    assert printed.startswith("3 workspaces of 4 resources, 1 rounds")
    assert [row[0].strip() for row in rows[1:]] == ["1", "2"]
    assert all(float(row[6]) > 20 for row in rows[1:])


def test_audits_that_disagree_give_no_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gain over a run that found less is none."""
    made = (scale.Audited(content, 1, 1.0, 1.0, 0.5, 50, 60, 1) for content in "ab")
    monkeypatch.setattr(scale, "audited", lambda *_: next(made))

    assert scale.main(["--workspaces", "1", "--resources", "1", "--rounds", "1"]) == 1
    assert capsys.readouterr() == ("", "no figures: the runs say different things\n")


@pytest.mark.slow
def test_checks_are_measured_when_they_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """The parts are resources."""
    assert scale.main(["--check", "40", "--rounds", "1"]) == 0
    assert capsys.readouterr().out.startswith("40 resources, 1 rounds")


def test_what_the_seconds_of_cpu_allow() -> None:
    """Of ten seconds, four of them of the first process."""
    run = scale.Audited("", 1, 1.0, 10.0, 4.0, 50, 60, 1)
    assert [scale.estimate_check(run, 1), scale.estimate_audit(run, 1)] == [10.0, 10.0]
    with patch.object(scale, "processors", lambda: 2):
        assert [scale.estimate_check(run, 3), scale.estimate_audit(run, 3)] == [7.0, 5.0]


@pytest.mark.slow
def test_an_audit_that_does_not_evaluate_is_no_figure(tmp_path: Path) -> None:
    """An empty folder ends with 2."""
    with pytest.raises(RuntimeError, match="the audit ended with 2"):
        scale.audited(tmp_path, 1)


@pytest.mark.slow
def test_the_cost_in_spark_is_compared_with_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process evaluates what Spark does, and ratios are taken round by round."""
    monkeypatch.setattr(spark, "_bundles", [])
    for name, content in fleet(2, 4):
        (tmp_path / name).write_bytes(content)
    spark.start(pack_bundle(load_bundle()))
    counts = spark.evaluate_files(sorted(tmp_path.iterdir()))

    assert counts.keys() >= {"pass", "fail"}
    slow = spark.Contestant("slow", Counter, clock=[2.0, 4.0], cpu=[4.0, 8.0])
    quick = spark.Contestant("quick", Counter, clock=[1.0, 1.0], cpu=[4.0, 4.0])
    *_, row = spark.table([slow, quick], 10)
    assert row == "| quick | 100.0 | 0.38 (0.25 to 0.50) | 400.0 | 0.75 (0.50 to 1.00) |"
