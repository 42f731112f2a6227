"""Compute instances that run without being used."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.times import moment
from policyeng.facts.usage import samples_of
from policyeng.facts.words import fold, get_inside

COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
STATE = "/properties/properties/state"


@policy(
    id="AML-OPS-104",
    title="A running instance is in use",
    description='"You should stop the compute instance when you aren\'t using it to avoid extra cost." The metric '
    "`lastActivity` of the snapshot states when it was last used. Without it, an operation that a user started within "
    "`idle_days` is use; an older one decides nothing.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-manage-compute-instance"],
    severity="low",
    judges=[{"type": COMPUTES, "where": {"/properties/computeType": ["ComputeInstance"]}}],
    remediation={
        "text": "Stop the instance (`az ml compute stop --name <instance> --workspace-name <workspace>`), and let it "
        "stop by itself: an idle shutdown, as AML-COST-102 asks for.",
        "patch": [{"op": "replace", "path": STATE, "value": "Stopped"}],
    },
    source='001 "Azure Machine Learning compute (managed)" (note on idle clusters), 003',
    parameters={
        "idle_days": {
            "type": "integer",
            "minimum": 0,
            "maximum": 36500,
            "default": 7,
            "description": "for how many days a running instance may go unused",
        }
    },
    monotone_in={"/properties/properties/state": ["Running", "Stopped"], "parameter:idle_days": "lower"},
    since="0.1.0",
)
def used_instance(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny an instance whose last activity is too long ago."""
    state = fold(get_inside(given.resource, "properties", "properties", "state"))
    if state is None:
        yield Unknown(msg="it is not known whether the instance runs", path=STATE)
    if state != "running":
        return
    allowed = timedelta(days=given.parameters["idle_days"])
    used, operated = _last_activity(given), _last_operation(given)
    if used is not None and given.as_of - used > allowed:
        yield Denial(
            msg="a running instance has not been used for too long",
            path=STATE,
            actual={"state": "Running", "lastActivity": used.isoformat()},
            expected={"days": given.parameters["idle_days"]},
        )
    elif used is None and (operated is None or given.as_of - operated > allowed):
        yield Unknown(
            msg="it is not known when the running instance was last used", path="/properties/properties/lastOperation"
        )


def _last_activity(given: PolicyInput) -> datetime | None:
    """Return the latest time of the metric `lastActivity`, up to as-of."""
    samples = samples_of(given.resource, given.snapshot.metrics, given.snapshot.by_measured, given.as_of)
    told = [moment(sample.get("to")) for sample in samples.get("lastactivity", ())]
    return max((one for one in told if one is not None), default=None)


def _last_operation(given: PolicyInput) -> datetime | None:
    """When a user last started, stopped or changed the instance; a schedule and an idle shutdown are no use of it."""
    # What was done after as-of does not count, and hides what was done before.
    operation = get_inside(given.resource, "properties", "properties", "lastOperation")
    is_by_user = fold(get_inside(operation, "operationTrigger")) in (None, "user")
    operated = moment(get_inside(operation, "operationTime")) if is_by_user else None
    return operated if operated is not None and operated <= given.as_of else None
