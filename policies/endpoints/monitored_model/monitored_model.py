"""Production deployments without a monitor."""

from collections.abc import Iterator, Mapping

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.facts.words import fold, get_inside, is_blank, list_stated, require_all, stage
from policyeng.models import JsonObject

_SCHEDULES = "microsoft.machinelearningservices/workspaces/schedules"
_TARGET = ("properties", "action", "monitorDefinition", "monitoringTarget", "deploymentId")


@policy(
    id="AML-END-012",
    title="Production models are monitored",
    description="When production data drifts away from the training data, the predictions get worse without any error. "
    "A monitor compares the data on a schedule. Only production is evaluated; a missing stage counts as production.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-monitor-model-performance"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments"],
    remediation="Create a monitor whose `monitoring_target.endpoint_deployment_id` is "
    "`azureml:<endpoint>:<deployment>` (`az ml schedule create --file <file>`).",
    source="END-12",
    since="0.2.0",
    applies=lambda given: stage(given.resource, given.workspace).name == "production",
)
def monitored_model(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a deployment that no enabled monitor of its workspace is for."""
    home = workspace_of(given.resource["id"])
    if home is None:
        yield Unknown(msg="the id of the deployment names no workspace", path="/id")
        return
    monitors = given.snapshot.once(("AML-END-012", home), lambda: _index_monitors(home, given))
    states = monitors.get(fold_id(given.resource["id"]), ())
    if "on" in states:
        return
    require_all(given.snapshot.by_scope[home], _SCHEDULES)
    if "unreadable" in states:
        yield Unknown(msg="whether a monitor of the deployment is enabled cannot be read", path="/id")
    elif given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: a monitor may exist", path="/id")
    else:
        found = stage(given.resource, given.workspace)
        yield Denial(
            msg="the deployment has no enabled monitor",
            path="/id",
            actual={"monitor": None, "stage": found.name, "because": found.reason},
            expected="a schedule of the workspace with the action CreateMonitor for the deployment",
        )


def _index_monitors(home: str, given: PolicyInput) -> Mapping[str, set[str | None]]:
    """Return the states of the monitors in a workspace by the lower-case id of the deployment that each is for."""
    states: dict[str, set[str | None]] = {}
    for arm_id in list_stated(given.snapshot.by_scope[home], _SCHEDULES):
        schedule = given.snapshot.by_id[arm_id]
        target = fold(get_inside(schedule, *_TARGET))
        if target and fold(get_inside(schedule, "properties", "action", "actionType")) == "createmonitor":
            states.setdefault(_deployment_id(target, home), set()).add(_state(schedule))
    return states


def _deployment_id(target: str, home: str) -> str:
    """Return the deployment of a monitor, which it names by its id or as `azureml:<endpoint>:<deployment>`."""
    named = target.removeprefix("azureml:")
    endpoint, _, deployment = named.partition(":")
    if deployment and named != target:
        return f"{home}/onlineendpoints/{endpoint}/deployments/{deployment}"
    return fold_id(named)


def _state(schedule: JsonObject) -> str | None:
    """Return `on`, also if a schedule does not state whether it is enabled, `unreadable`, or None if it is disabled."""
    stated = get_inside(schedule, "properties", "isEnabled")
    if is_blank(stated) or stated is True or fold(stated) == "true":
        return "on"
    return None if stated is False or fold(stated) == "false" else "unreadable"
