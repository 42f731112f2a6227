"""Workspaces whose metrics no alert watches."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, auto

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import fold_id, is_open, scopes_of
from policyeng.facts.words import fold, get_inside, list_stated, require_all
from policyeng.models import WORKSPACE_TYPE, JsonObject

ALERT_TYPE = "microsoft.insights/metricalerts"
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
_ABOVE = {"greaterthan", "greaterthanorequal"}
_OTHER_OPERATORS = {"equals", "notequals", "lessthan", "lessthanorequal"}
#: An alert and one of its scopes, which is None if it cannot be read.
_Scoped = tuple[JsonObject, str | None]


class _Answer(IntEnum):
    """Whether a condition holds: the least of several is that of all, the greatest that of any."""

    NO = auto()
    UNCLEAR = auto()
    YES = auto()


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
    limits, snapshot, home = given.parameters["alerts"], given.snapshot, scopes[0]
    here = snapshot.once(
        ("AML-LOG-007", home),
        lambda: _index_alerts(snapshot.by_id[one] for one in list_stated(snapshot.by_scope[home], ALERT_TYPE)),
    )
    answers = _answer_each(limits, _find_alerts(here, scopes))
    missing = {metric: limits[metric] for metric, answer in answers.items() if answer is _Answer.NO}
    if missing:
        require_all(snapshot.by_scope[home], ALERT_TYPE)
    if missing and is_open(home):
        everywhere = snapshot.once(
            ("AML-LOG-007", "everywhere"), lambda: _index_alerts(snapshot.by_type.get(ALERT_TYPE, ()), _drop_group)
        )
        possible = _answer_each(missing, _find_alerts(everywhere, map(_drop_group, scopes)))
        missing = {metric: limits[metric] for metric, answer in possible.items() if answer is _Answer.NO}
        if len(missing) < len(possible):
            message = "the subscription of the workspace is not stated: it may be that of an alert"
            yield Unknown(msg=message, path="/id")
    if missing and snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: an alert may exist", path="/id")
    elif missing:
        expected = "an enabled alert for each metric"
        yield Denial(msg="no alert watches a metric", path="/id", actual={"metrics": [*missing]}, expected=expected)
    if any(answer is _Answer.UNCLEAR for answer in answers.values()):
        yield Unknown(msg="an alert cannot be read", path="/id")


def _index_alerts(
    alerts: Iterable[JsonObject], shorten: Callable[[str], str] = fold_id
) -> Mapping[str | None, Sequence[_Scoped]]:
    """Return alerts with each of their scopes, by the lower-case id of the scope or a part of it."""
    found: dict[str | None, list[_Scoped]] = {}
    for alert in alerts:
        for scope in dict.fromkeys(_scopes(alert)):
            found.setdefault(scope and shorten(scope), []).append((alert, scope))
    return found


def _scopes(alert: JsonObject) -> Iterator[str | None]:
    stated = get_inside(alert, "properties", "scopes")
    for scope in stated if isinstance(stated, list) else [None]:
        yield fold_id(fold(scope) or "") or None


def _drop_group(scope: str) -> str:
    """Return what follows the subscription and the resource group in a scope."""
    return scope.partition("/providers/")[2]


def _find_alerts(indexed: Mapping[str | None, Sequence[_Scoped]], keys: Iterable[str]) -> list[_Scoped]:
    return [one for key in (*dict.fromkeys(keys), None) for one in indexed.get(key, ())]


def _answer_each(limits: Mapping[str, float], alerts: Sequence[_Scoped]) -> dict[str, _Answer]:
    """Return for each metric whether one of the alerts watches it."""
    return {
        metric: max((_watches(alert, scope, metric, limits[metric]) for alert, scope in alerts), default=_Answer.NO)
        for metric in sorted(limits)
    }


def _watches(alert: JsonObject, scope: str | None, metric: str, most: float) -> _Answer:
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


def _reaches(alert: JsonObject, scope: str | None) -> _Answer:
    if scope is None:
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
