"""When a compute instance starts and stops: the list of `schedules.compute_start_stop`.

Source: `_schema/compute/schedule.py`, `entities/_compute/_schedule.py` and `entities/_schedule/trigger.py` of
azure-ai-ml 1.35.2.
"""

from __future__ import annotations

from policyeng.models import JsonObject
from policyeng.sources.azure_cli.values import listed, word
from policyeng.sources.mapping import Field, UnfitError, mapped, text, whole

_SAYS = "a list of `{action, state, trigger}`"
_STARTS = (
    Field("/trigger/start_time", "/{}/startTime", text),
    Field("/trigger/time_zone", "/{}/timeZone", text),
)
_CRON = (
    *(row._replace(target=row.target.format("cron")) for row in _STARTS),
    Field("/trigger/expression", "/cron/expression", text),
)
_RECURRENCE = (
    *(row._replace(target=row.target.format("recurrence")) for row in _STARTS),
    Field("/trigger/frequency", "/recurrence/frequency", word("Minute", "Hour", "Day", "Week", "Month")),
    Field("/trigger/interval", "/recurrence/interval", whole),
    Field("/trigger/schedule/hours", "/recurrence/schedule/hours"),
    Field("/trigger/schedule/minutes", "/recurrence/schedule/minutes"),
    Field("/trigger/schedule/week_days", "/recurrence/schedule/weekDays"),
)
_BOTH = (
    Field("/action", "/action", word("Start", "Stop")),
    Field("/state", "/status", word("Enabled", "Disabled")),
    Field("/trigger/type", "/triggerType", word("Cron", "Recurrence")),
    Field("/schedule_id", "/id", text),
    Field("/provisioning_state", "/provisioningStatus", text),
)


def schedules(value: object) -> object:
    """The schedules in ARM shape.

    Raises:
        UnfitError: they are no list of schedules.
    """
    entries = listed(value)
    return [_schedule(entry) for entry in entries] if isinstance(entries, list) else []


def _schedule(entry: object) -> JsonObject:
    trigger = entry.get("trigger") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(trigger, dict):
        raise UnfitError(_SAYS)
    found = mapped((*_BOTH, *(_CRON if "expression" in trigger else _RECURRENCE)), entry, "")
    if found.unreadable:
        raise UnfitError(f"{_SAYS}: {next(iter(found.unreadable.values()))}")
    # `ComputeStartStopSchedule.__init__` and `TriggerBase.__init__` fill these in.
    schedule = {"status": "Enabled", **found.resource}
    for kind in ("cron", "recurrence"):
        if kind in schedule:
            schedule[kind] = {"timeZone": "UTC", **schedule[kind]}
    return schedule
