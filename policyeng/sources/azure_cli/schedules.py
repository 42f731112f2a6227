"""Schedules and their jobs: `az ml schedule create --file`.

ARM stores the job inside the schedule. The job is also read as its own resource, because it will run.
Source: azure-ai-ml 1.35.2, `_schema/schedule/**` and `entities/_schedule/{schedule,trigger}.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.base import PROVIDER, CliDocumentKind
from policyeng.sources.azure_cli.converter import CliDefaults, is_open, list_known_keys, name_of, place_resource
from policyeng.sources.azure_cli.jobs import derive_context, job_at
from policyeng.sources.azure_cli.references import an_object, file_of
from policyeng.sources.azure_cli.value_converters import prose, tags
from policyeng.sources.field_mapping import FieldMapping, boolean, convert_integer, convert_word, text
from policyeng.sources.parsed import Placed, Refusal, Surroundings, format_value

TYPE = f"{PROVIDER}/workspaces/schedules"

_TRIGGER = "/properties/trigger"
_MONITOR = "/properties/action/monitorDefinition"


def _wrap_in_list(value: object) -> object:
    """Return a list; a single value becomes a list (`RecurrencePattern._to_rest_object`)."""
    return value if isinstance(value, list) else [value]


TABLE = (
    FieldMapping("/$schema", ""),
    FieldMapping("/name", ""),
    FieldMapping("/id", ""),
    FieldMapping("/resourceGroup", ""),
    FieldMapping("/creation_context", ""),
    FieldMapping("/create_job", ""),  # read on its own
    FieldMapping("/import_data", ""),
    FieldMapping("/display_name", "/properties/displayName", prose),
    FieldMapping("/description", "/properties/description", prose),
    FieldMapping("/tags", "/properties/tags", tags),
    FieldMapping("/properties", "/properties/properties", an_object),
    FieldMapping("/is_enabled", "/properties/isEnabled", boolean),
    FieldMapping("/provisioning_state", "/properties/provisioningState", text),
    FieldMapping(
        "/trigger/type", f"{_TRIGGER}/triggerType", convert_word({"cron": "Cron", "recurrence": "Recurrence"})
    ),
    FieldMapping("/trigger/expression", f"{_TRIGGER}/expression", text),
    FieldMapping("/trigger/start_time", f"{_TRIGGER}/startTime", text),
    FieldMapping("/trigger/end_time", f"{_TRIGGER}/endTime", text),
    FieldMapping("/trigger/time_zone", f"{_TRIGGER}/timeZone", text),
    FieldMapping(
        "/trigger/frequency",
        f"{_TRIGGER}/frequency",
        convert_word({word: word.capitalize() for word in ("minute", "hour", "day", "week", "month")}),
    ),
    FieldMapping("/trigger/interval", f"{_TRIGGER}/interval", convert_integer),
    FieldMapping("/trigger/schedule/hours", f"{_TRIGGER}/schedule/hours", _wrap_in_list),
    FieldMapping("/trigger/schedule/minutes", f"{_TRIGGER}/schedule/minutes", _wrap_in_list),
    FieldMapping("/trigger/schedule/week_days", f"{_TRIGGER}/schedule/weekDays", _wrap_in_list),
    FieldMapping("/trigger/schedule/month_days", f"{_TRIGGER}/schedule/monthDays", _wrap_in_list),
    FieldMapping("/create_monitor/compute/instance_type", f"{_MONITOR}/computeConfiguration/instanceType", text),
    FieldMapping("/create_monitor/compute/runtime_version", f"{_MONITOR}/computeConfiguration/runtimeVersion", prose),
)
#: The action types of a schedule by key.
_ACTIONS = {"create_job": "CreateJob", "create_monitor": "CreateMonitor", "import_data": "ImportData"}


class _Job(NamedTuple):
    """The job of a schedule: its document and folder, or the id of the job that it repeats, or why neither is known."""

    document: JsonObject | None = None
    source_id: str = ""
    why: str = ""
    folder: PurePosixPath = PurePosixPath()


def _schedule(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    action = next((kind for key, kind in _ACTIONS.items() if key in document), "")
    job = _job_of(document.get("create_job"), around) if action == "CreateJob" else _Job()
    defaults: JsonObject = {"/properties/isEnabled": True}  # `Schedule._is_enabled`
    if action:
        defaults["/properties/action/actionType"] = action
    if job.source_id:
        defaults["/properties/action/jobDefinition"] = {"jobType": "Pipeline", "sourceJobId": job.source_id}
    if action == "CreateMonitor":
        defaults[f"{_MONITOR}/computeConfiguration/computeType"] = "ServerlessSpark"
    unreadable = {"/properties/action/jobDefinition": job.why} if job.why else {}
    run = _run_of(document, job, pointer, around)
    if run is not None:
        defaults["/properties/action/jobDefinition"] = run.resource["properties"]
        unreadable |= {
            f"/properties/action/jobDefinition{at.removeprefix('/properties')}": reason
            for at, reason in run.unreadable.items()
            if at.startswith("/properties/")
        }
    yield place_resource(document, pointer, around, TYPE, TABLE, CliDefaults(defaults, unreadable=unreadable))
    if run is not None:
        yield run
    elif job.why:
        yield Refusal(f"{pointer}/create_job", job.why, "provide the file of the job")


def _run_of(document: JsonObject, job: _Job, pointer: str, around: Surroundings) -> Placed | None:
    """Return the job as its own resource with the schedule's name; the service names each run."""
    if job.document is None:
        return None
    named = name_of(document.get("name")) or around.file
    inner = {key: value for key, value in job.document.items() if key not in ("name", "id")}
    place = f"{pointer}/create_job"
    run = job_at(inner, place, derive_context(around, f"schedule {named}", job.folder))
    if not _is_inline(document.get("create_job")):
        run = run._replace(fields=dict.fromkeys(run.fields, place))
    return run


def _job_of(stated: object, around: Surroundings) -> _Job:
    """Return the job of `create_job`: a document, inline or in a file, with the schedule's changes; or an id."""
    reference = stated["job"] if isinstance(stated, dict) and "job" in stated else stated
    changes = {key: value for key, value in stated.items() if key != "job"} if isinstance(stated, dict) else {}
    if isinstance(reference, dict):
        return _Job(_merged(reference, changes))
    if not isinstance(reference, str) or is_open(reference):
        return _Job(why=f"`create_job` is {format_value(reference)}; it should be a job")
    path = file_of(reference)
    if not path:
        name = reference.removeprefix("azureml:").strip()
        return _Job(source_id=name if "/" in name else f"{around.workspace}/jobs/{name}")
    try:
        document = around.beside(path)
    except InputError as error:
        return _Job(why=f"the job `{path}` cannot be read: {error.message}")
    if not isinstance(document, dict):
        return _Job(why=f"`{path}` is {format_value(document)}, not a job")
    return _Job(_merged(document, changes), folder=PurePosixPath(path).parent)


def _merged(job: JsonObject, changes: JsonObject) -> JsonObject:
    """Return a job with a schedule's changes; objects are merged (`merge_dict`)."""
    joined = {
        key: {**job[key], **value} if isinstance(value, dict) and isinstance(job.get(key), dict) else value
        for key, value in changes.items()
    }
    return {**job, **joined}


def _is_inline(stated: object) -> bool:
    return isinstance(stated, dict) and "job" not in stated


def _matches(document: JsonObject) -> bool:
    """Check for a trigger and an action."""
    trigger = document.get("trigger")
    kinds = ("cron", "recurrence")
    return (
        isinstance(trigger, dict)
        and lowered(str(trigger.get("type"))) in kinds
        and any(key in document for key in _ACTIONS)
    )


KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        TYPE,
        ("schedule", "jobschedule", "monitorschedule", "monitoringschedule", "importdataschedule"),
        _matches,
        _schedule,
        known=list_known_keys(TABLE, within=("/trigger", "/trigger/schedule")),
    ),
)
