"""Managed online endpoints to which no requests come."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.facts.times import moment
from policyeng.facts.usage import samples_of
from policyeng.facts.words import fold, get_inside, is_blank
from policyeng.models import JsonObject

_DEPLOYMENTS = "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments"
_METRIC = "requestsperminute"
#: How long ago a sample may have ended to describe the present.
_FRESH = timedelta(days=7)
_DAYS = {"type": "integer", "minimum": 1, "maximum": 3650, "default": 30}


def _is_up(resource: JsonObject) -> bool:
    return fold(get_inside(resource, "properties", "provisioningState")) == "succeeded"


def _is_managed(endpoint: JsonObject) -> bool:
    """Return whether an endpoint is managed: by its kind, or if it states none because it names no compute."""
    kind = endpoint.get("kind")
    return fold(kind) == "managed" or (is_blank(kind) and is_blank(get_inside(endpoint, "properties", "compute")))


def _samples(given: PolicyInput) -> Sequence[JsonObject]:
    metrics, measured = given.snapshot.metrics, given.snapshot.by_measured
    return samples_of(given.resource, metrics, measured, given.as_of).get(_METRIC, ())


def _serves(given: PolicyInput) -> bool:
    """Return whether a deployment of the endpoint in the snapshot succeeded."""
    home = workspace_of(given.resource["id"])
    if home is None:
        return False
    deployments = given.snapshot.once(("AML-END-010", home), lambda: _index_deployments(home, given))
    return any(_is_up(given.snapshot.by_id[one]) for one in deployments.get(fold_id(given.resource["id"]), ()))


def _index_deployments(home: str, given: PolicyInput) -> Mapping[str, list[str]]:
    """Return the lower-case ids of the deployments of a workspace by that of their endpoint."""
    found: dict[str, list[str]] = {}
    for one in given.snapshot.by_scope[home].get(_DEPLOYMENTS, ()):
        found.setdefault(one.rpartition("/deployments/")[0], []).append(one)
    return found


def _applies(given: PolicyInput) -> bool:
    return _is_managed(given.resource) and _is_up(given.resource) and bool(_samples(given)) and _serves(given)


@policy(
    id="AML-END-010",
    title="Online endpoints are in use",
    description="The instances behind a managed endpoint cost the same with and without requests. An endpoint is idle "
    "if the metric `requestsPerMinute` of the snapshot, over `idle_days` that ended at most a week ago, "
    "counts no more than `most_requests` in total. An endpoint without this metric is not evaluated.",
    related_resources=["https://learn.microsoft.com/azure/machine-learning/how-to-monitor-online-endpoints"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces/onlineEndpoints"],
    remediation="Delete the endpoint (`az ml online-endpoint delete --name <endpoint>`), or raise `most_requests` or "
    "`idle_days` of AML-END-010 if so few requests are what it is for.",
    source="END-10",
    parameters={
        "idle_days": {**_DAYS, "description": "for how many days requests are counted"},
        "most_requests": {
            "type": "number",
            "minimum": 0,
            "default": 0,
            "description": "how many requests an idle endpoint may have had in that time",
        },
    },
    monotone_in={"parameter:most_requests": "higher"},
    since="0.2.0",
    applies=_applies,
)
def idle_endpoint(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny an endpoint with no more than `most_requests` requests in a period of `idle_days`."""
    most, period = given.parameters["most_requests"], timedelta(days=given.parameters["idle_days"])
    idle, doubt = None, ""
    for sample in _samples(given):
        begin, end, total = moment(sample.get("from")), moment(sample.get("to")), sample.get("total")
        if total is None:
            doubt = "a sample does not state the total of requests"
        elif begin is None or end is None:
            doubt = "a sample with requests does not state when it was taken" if total > most else doubt
        elif total > most:
            if max(end - period, begin) >= given.as_of - period - _FRESH:
                return
        elif end - begin >= period and given.as_of - end <= _FRESH:
            idle = sample
    if doubt:
        yield Unknown(msg=doubt, path="/id")
    elif idle is None:
        yield Unknown(msg="no sample covers the required days and ended within the last week", path="/id")
    else:
        actual = {"requests": idle["total"], "from": idle["from"], "to": idle["to"]}
        expected = {"more requests than": most, "in days": given.parameters["idle_days"]}
        yield Denial(msg="the endpoint is hardly used", path="/id", actual=actual, expected=expected)
