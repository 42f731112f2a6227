"""Workspaces whose metrics no alert watches."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import fold_id, scopes_of
from policyeng.facts.words import fold, get_inside
from policyeng.models import WORKSPACE_TYPE, JsonObject

ALERT_TYPE = "microsoft.insights/metricalerts"
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_ABOVE = ("greaterthan", "greaterthanorequal")
_OTHER_OPERATORS = ("equals", "notequals", "lessthan", "lessthanorequal")
_UNREADABLE = ""


class _Answer(IntEnum):
    """Whether a condition holds: the least of several is that of all, the greatest that of any."""

    NO = 0
    UNCLEAR = 1
    YES = 2


@policy(
    id="AML-LOG-007",
    title="Alerts watch the workspace's metrics",
    description="Failed runs and unusable nodes without an alert cost days of work. For each metric an enabled "
    "alert of the workspace, or of its resource group or subscription for workspaces, has to fire above the value or "
    "less, or have a dynamic threshold.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/monitor-azure-machine-learning"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    remediation="Create the alerts: `az monitor metrics alert create --name <name> --resource-group <group> --scopes "
    "<id> --condition 'total Failed Runs > 0' --action <action group>`.",
    source="LOG-07",
    parameters={
        "alerts": {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0},
            "description": "highest threshold of an alert by metric; with none, nothing is evaluated",
            "default": {
                "Failed Runs": 0,
                "Model Deploy Failed": 0,
                "Quota Utilization Percentage": 90,
                "Unusable Nodes": 0,
                "Not Responding Runs": 0,
            },
        }
    },
    since="0.2.0",
    applies=lambda given: bool(given.parameters["alerts"]) and fold(given.resource.get("kind")) != "project",
)
def metric_alerts(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a workspace of which a metric has no alert, unless one may exist."""
    scopes = scopes_of(given.resource["id"])
    if not scopes:
        yield Unknown(msg="the id of the workspace names no subscription", path="/id")
        return
    indexed = given.snapshot.once(("AML-LOG-007", scopes[0]), lambda: _index_alerts(scopes[0], given))
    near = [(alert, scope) for scope in (*scopes, _UNREADABLE) for alert in indexed.get(scope, ())]
    answers = {
        metric: max((_watches(alert, scope, metric, most) for alert, scope in near), default=_Answer.NO)
        for metric, most in sorted(given.parameters["alerts"].items())
    }
    missing = [metric for metric, answer in answers.items() if answer is _Answer.NO]
    if missing and given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: an alert may exist", path="/id")
    elif missing:
        expected = "an enabled alert for each metric"
        yield Denial(msg="no alert watches a metric", path="/id", actual={"metrics": missing}, expected=expected)
    if any(answer is _Answer.UNCLEAR for answer in answers.values()):
        yield Unknown(msg="an alert cannot be read", path="/id")


def _index_alerts(subscription: str, given: PolicyInput) -> Mapping[str, Sequence[JsonObject]]:
    """Return the alerts in a subscription by the lower-case id of each scope, and those whose scopes are unreadable."""
    found: dict[str, list[JsonObject]] = {}
    for arm_id in given.snapshot.by_scope.get(subscription, {}).get(ALERT_TYPE, ()):
        alert = given.snapshot.by_id[arm_id]
        for scope in dict.fromkeys(_scopes(alert)):
            found.setdefault(scope, []).append(alert)
    return found


def _scopes(alert: JsonObject) -> Iterator[str]:
    stated = get_inside(alert, "properties", "scopes")
    for scope in stated if isinstance(stated, list) else [None]:
        yield fold_id(fold(scope) or _UNREADABLE)


def _watches(alert: JsonObject, scope: str, metric: str, most: float) -> _Answer:
    """Return whether an alert that names a scope watches a metric of the workspace."""
    return min(
        _is_enabled(get_inside(alert, "properties", "enabled")),
        _reaches(alert, scope),
        _has_criterion(get_inside(alert, "properties", "criteria", "allOf"), metric, most),
    )


def _is_enabled(stated: object) -> _Answer:
    """Return whether an alert is enabled; it is where nothing is stated."""
    if stated is None or stated is True or (isinstance(stated, str) and fold(stated) in (None, "true")):
        return _Answer.YES
    return _Answer.NO if stated is False or fold(stated) == "false" else _Answer.UNCLEAR


def _reaches(alert: JsonObject, scope: str) -> _Answer:
    if scope == _UNREADABLE:
        return _Answer.UNCLEAR
    if "/providers/" in scope:  # the workspace itself
        return _Answer.YES
    kind = get_inside(alert, "properties", "targetResourceType")
    if kind is not None and not isinstance(kind, str):
        return _Answer.UNCLEAR
    return _Answer.YES if fold(kind) == WORKSPACE_TYPE else _Answer.NO


def _has_criterion(criteria: object, metric: str, most: float) -> _Answer:
    """Return whether one of the criteria fires above a value or less; `criteria` is unreadable if it is no list."""
    several: Iterable[object] = criteria if isinstance(criteria, list) else [None]
    return max((_is_criterion(one, metric, most) for one in several), default=_Answer.NO)


def _is_criterion(criterion: object, metric: str, most: float) -> _Answer:
    name = fold(get_inside(criterion, "metricName"))
    if name is not None and name != fold(metric):
        return _Answer.NO
    return min(_Answer.YES if name else _Answer.UNCLEAR, _fires(criterion, most))


def _fires(criterion: object, most: float) -> _Answer:
    kind, operator = (get_inside(criterion, key) for key in ("criterionType", "operator"))
    if fold(kind) == "dynamicthresholdcriterion":
        return _Answer.YES
    if fold(operator) in _OTHER_OPERATORS:
        return _Answer.NO
    threshold = _parse_number(get_inside(criterion, "threshold"))
    if threshold is not None and threshold > most:
        return _Answer.NO
    is_static = isinstance(kind, str | None) and fold(kind) in (None, "staticthresholdcriterion")
    return _Answer.YES if threshold is not None and fold(operator) in _ABOVE and is_static else _Answer.UNCLEAR


def _parse_number(value: object) -> float | None:
    """Return a number, also one that is written as text; None for anything else."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
