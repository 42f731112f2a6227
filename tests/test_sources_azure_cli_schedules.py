"""Schedules in files of the Azure CLI, and the jobs that they run."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject, Problem
from policyeng.sources.parsed import Placed
from tests.azure_cli_work import WORKSPACE, entries, kind_of, only

CRON: JsonObject = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/schedule.schema.json",
    "name": "nightly",
    "trigger": {"type": "cron", "expression": "0 * * * *", "time_zone": "UTC", "start_time": "2026-01-01T00:00:00"},
}
JOB: JsonObject = {
    "type": "pipeline",
    "name": "ignored",
    "settings": {"default_compute": "azureml:cpu"},
    "jobs": {"a": {"command": "x", "compute": "azureml:gpu"}},
}


def both(create_job: object, files: dict[str, object] | None = None) -> tuple[Placed, Placed]:
    """The schedule and the job that it runs."""
    schedule, run = entries({**CRON, "create_job": create_job}, files)
    assert isinstance(schedule, Placed)
    assert isinstance(run, Placed)
    return schedule, run


@pytest.mark.parametrize("written", ["./job.yml", "file:./job.yml", {"type": "pipeline", "job": "./job.yml"}, JOB])
def test_a_schedule_brings_the_job_that_it_runs(written: object) -> None:
    """Inside of it as ARM has it, and on its own, so that it is evaluated."""
    schedule, run = both(written, {"job.yml": JOB})
    definition = schedule.resource["properties"]["action"]["jobDefinition"]
    assert schedule.resource["id"] == f"{WORKSPACE}/schedules/nightly"
    assert schedule.resource["properties"]["action"]["actionType"] == "CreateJob"
    assert definition["settings"] == {"default_compute": f"{WORKSPACE}/computes/cpu"}
    assert run.resource["id"] == f"{WORKSPACE}/jobs/{{schedule nightly}}"
    assert run.resource["properties"] == definition
    assert {"/id", "/name"} <= run.unreadable.keys()


def test_a_schedule_changes_the_job_in_the_file() -> None:
    """Keys next to `job` go before, key by key."""
    changes = {
        "type": "pipeline",
        "job": "./job.yml",
        "settings": {"default_compute": "azureml:gpu", "force_rerun": True},
    }
    _, run = both(changes, {"job.yml": JOB})
    assert run.resource["properties"]["settings"] == {
        "default_compute": f"{WORKSPACE}/computes/gpu",
        "force_rerun": True,
    }


def test_places_of_an_inline_job_are_its_own() -> None:
    """Those of a job in another file are where the schedule names it."""
    _, inline = both(JOB)
    _, elsewhere = both("./job.yml", {"job.yml": JOB})
    assert inline.pointer == "/create_job"
    assert inline.fields["/properties/jobs/a/computeId"] == "/create_job/jobs/a/compute"
    assert set(elsewhere.fields.values()) == {"/create_job"}


@pytest.mark.parametrize("reference", ["azureml:train", f"azureml:{WORKSPACE}/jobs/train"])
def test_a_schedule_may_repeat_a_job_that_ran(reference: str) -> None:
    """It is known by its id alone."""
    placed = only({**CRON, "create_job": reference})
    assert placed.resource["properties"]["action"]["jobDefinition"] == {
        "jobType": "Pipeline",
        "sourceJobId": f"{WORKSPACE}/jobs/train",
    }


@pytest.mark.parametrize("written", ["./gone.yml", 5, ["x"]])
def test_a_job_that_cannot_be_read_is_refused(written: object) -> None:
    """The schedule is read all the same."""
    schedule, refusal = entries({**CRON, "create_job": written})
    assert isinstance(schedule, Placed)
    assert isinstance(refusal, Problem)
    assert refusal.place == "/create_job"
    assert "/properties/action/jobDefinition" in schedule.unreadable


@pytest.mark.parametrize("frequency", ["minute", "hour", "day", "week", "month"])
def test_a_recurrence_is_brought_into_arm_shape(frequency: str) -> None:
    """One value is a list of one."""
    trigger = {
        "type": "recurrence",
        "frequency": frequency,
        "interval": 2,
        "schedule": {"hours": 4, "minutes": [0, 30], "week_days": "monday"},
    }
    placed = only({**CRON, "trigger": trigger, "create_job": "azureml:j"})
    assert placed.resource["properties"]["trigger"] == {
        "triggerType": "Recurrence",
        "frequency": frequency.capitalize(),
        "interval": 2,
        "schedule": {"hours": [4], "minutes": [0, 30], "weekDays": ["monday"]},
    }


def test_a_cron_is_brought_into_arm_shape() -> None:
    """With its zone and its first time."""
    assert only({**CRON, "create_job": "azureml:j"}).resource["properties"]["trigger"] == {
        "triggerType": "Cron",
        "expression": "0 * * * *",
        "timeZone": "UTC",
        "startTime": "2026-01-01T00:00:00",
    }


def test_a_monitor_is_a_schedule_without_a_job() -> None:
    """It runs on serverless Spark of a size."""
    monitor = {"compute": {"instance_type": "standard_e4s_v3", "runtime_version": "3.4"}, "monitoring_signals": {}}
    placed = only({**CRON, "create_monitor": monitor})
    assert placed.resource["properties"]["action"] == {
        "actionType": "CreateMonitor",
        "monitorDefinition": {
            "computeConfiguration": {
                "computeType": "ServerlessSpark",
                "instanceType": "standard_e4s_v3",
                "runtimeVersion": "3.4",
            }
        },
    }


def test_without_a_schema_the_content_decides() -> None:
    """A trigger of a schedule, and what it starts; triggers of other systems are none."""
    bare = {key: value for key, value in CRON.items() if key != "$schema"}
    assert kind_of({**bare, "create_job": "azureml:j"}) is not None
    assert kind_of(bare) is None
    assert kind_of({"trigger": ["main"], "create_job": "x"}) is None
