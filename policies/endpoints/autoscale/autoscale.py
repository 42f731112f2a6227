"""Production deployments that keep their number of instances."""

from collections.abc import Iterable, Iterator, Mapping

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import fold_id, is_open, scopes_of
from policyeng.facts.words import fold, get_inside, is_blank, list_stated, require_all, stage
from policyeng.models import JsonObject

_SETTINGS = "microsoft.insights/autoscalesettings"
_SCALE_TYPE = "/properties/scaleSettings/scaleType"


def _applies(given: PolicyInput) -> bool:
    compute_type = fold(get_inside(given.resource, "properties", "endpointComputeType"))
    return compute_type != "azuremlcompute" and stage(given.resource, given.workspace).name == "production"


@policy(
    id="AML-END-009",
    title="Production deployments scale with their load",
    description="A deployment with a fixed number of instances rejects requests at peak load and wastes money when "
    "load is low. A managed deployment scales with an autoscale setting of Azure Monitor, a deployment on Kubernetes "
    "with its own scale settings. Only production is evaluated; a missing stage counts as production.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-autoscale-endpoints"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments"],
    remediation="Create an autoscale setting for the deployment (`az monitor autoscale create --resource <id of the "
    "deployment> --min-count 2 --max-count 5 --count 2`, then `az monitor autoscale rule create`); on Kubernetes, set "
    "`scale_settings.type: target_utilization`.",
    source="END-09",
    since="0.2.0",
    applies=_applies,
)
def autoscale(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a managed deployment without an enabled autoscale setting, and one on Kubernetes that does not scale."""
    compute_type = get_inside(given.resource, "properties", "endpointComputeType")
    if fold(compute_type) in {"kubernetes", "k8s"}:
        settings = get_inside(given.resource, "properties", "scaleSettings")
        stated = get_inside(given.resource, "properties", "scaleSettings", "scaleType")
        word = fold(stated)
        if word == "default":
            found = stage(given.resource, given.workspace)
            yield Denial(
                msg="the deployment on Kubernetes keeps its number of instances",
                path=_SCALE_TYPE,
                actual={"scaleType": stated, "stage": found.name, "because": found.reason},
                expected="TargetUtilization",
            )
        elif not is_blank(settings) and not isinstance(settings, Mapping):
            yield Unknown(msg="the scale type is not a known value", path="/properties/scaleSettings")
        elif not is_blank(stated) and word != "targetutilization":
            yield Unknown(msg="the scale type is not a known value", path=_SCALE_TYPE)
    elif is_blank(compute_type) or fold(compute_type) == "managed":
        yield from _check_settings(given)
    else:
        message = "the compute type of the deployment is not a known value"
        yield Unknown(msg=message, path="/properties/endpointComputeType")


def _check_settings(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Check the autoscale settings of the subscription; one may be in any of its resource groups."""
    home = next(iter(scopes_of(given.resource["id"])), None)
    if home is None:
        yield Unknown(msg="the id of the deployment names no subscription", path="/id")
        return
    arm_id, snapshot = fold_id(given.resource["id"]), given.snapshot
    listed = snapshot.by_scope[home]
    settings = (snapshot.by_id[one] for one in list_stated(listed, _SETTINGS))
    of_deployment = snapshot.once(("AML-END-009", home), lambda: _index_settings(settings)).get(arm_id, ())
    if "on" in of_deployment:
        return
    require_all(listed, _SETTINGS)
    if "unreadable" in of_deployment:
        message = "whether an autoscale setting for the deployment is enabled cannot be read"
        yield Unknown(msg=message, path="/id")
    elif is_open(home) and arm_id in snapshot.once(
        ("AML-END-009", "all"), lambda: _index_settings(snapshot.by_type.get(_SETTINGS, ()))
    ):
        message = "the subscription of the deployment is not stated: it may be that of its autoscale setting"
        yield Unknown(msg=message, path="/id")
    elif snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: an autoscale setting may exist", path="/id")
    else:
        found = stage(given.resource, given.workspace)
        yield Denial(
            msg="the deployment has no enabled autoscale setting",
            path="/id",
            actual={"autoscale": None, "stage": found.name, "because": found.reason},
            expected="an enabled autoscale setting whose `targetResourceUri` is the deployment",
        )


def _index_settings(settings: Iterable[JsonObject]) -> Mapping[str, set[str | None]]:
    """Return the states of autoscale settings by the lower-case id of their target."""
    states: dict[str, set[str | None]] = {}
    for setting in settings:
        if target := fold(get_inside(setting, "properties", "targetResourceUri")):
            states.setdefault(fold_id(target), set()).add(_state(setting))
    return states


def _state(setting: JsonObject) -> str | None:
    """Return `on`, also if a setting does not state whether it is enabled, `unreadable`, or None if it is disabled."""
    stated = get_inside(setting, "properties", "enabled")
    if is_blank(stated) or stated is True or fold(stated) == "true":
        return "on"
    return None if stated is False or fold(stated) == "false" else "unreadable"
