"""Workspaces without an alert when they cost more than planned."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.ids import ScopeIndex, covers, index_scopes, positions_near, resource_group_of, segments
from policyeng.facts.times import moment
from policyeng.facts.words import fold, get_inside, list_stated, require_all
from policyeng.models import JsonObject

TYPES = ("microsoft.consumption/budgets", "microsoft.costmanagement/budgets")
UNCERTAIN = ("a start that can be read", "an end that can be read", "a scope that surely covers it", "no filter")


@policy(
    id="AML-COST-103",
    title="A budget with an alert covers the workspace",
    description='"Use Azure Cost Management and Billing to gain insights into your spending and set up budgets. Create '
    'alerts for cost thresholds to be notified when spending exceeds predefined limits." The budget is at the resource '
    "group of the workspace or above it, in force at as-of, and one of its notifications is enabled. Whether a "
    "budget of a management group or a billing account, or one with a filter, takes it in is unknown.",
    related_resources=["https://learn.microsoft.com/azure/cost-management-billing/costs/tutorial-acm-create-budgets"],
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    remediation="Add the budget to the snapshot, create one with an alert (portal: Cost Management > Budgets > Add), "
    "or enable a notification of the one that is stated (`properties.notifications.<name>.enabled: true`).",
    source='002 "Cost Optimization Strategies"',
    since="0.1.0",
)
def budget_alert(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a workspace that no budget with an alert covers, unless one may."""
    group = resource_group_of(given.resource["id"])
    if group is None:
        yield Unknown(msg="the id of the workspace names no resource group", path="/id")
        return
    near = given.snapshot.once(("AML-COST-103", group), lambda: _near(group, given))
    if not all(lacks for _, lacks in near):
        return
    for kind in TYPES:
        require_all(given.snapshot.by_type, kind)
    if any(set(lacks) <= set(UNCERTAIN) for _, lacks in near):
        yield Unknown(msg="whether a budget with an alert covers the workspace cannot be told", path="/id")
    elif given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: a budget may exist", path="/id")
    else:
        actual = [{"budget": budget["id"], "lacks": lacks} for budget, lacks in near]
        expected = "a budget in force at the resource group or above, with an enabled notification"
        yield Denial(msg="no budget with an alert covers the workspace", path="/id", actual=actual, expected=expected)


def _near(group: str, given: PolicyInput) -> list[tuple[JsonObject, list[str]]]:
    """Return the budgets that may cover a resource group, in the order of the snapshot, with what each lacks."""
    budgets, indexed = given.snapshot.once(("AML-COST-103",), lambda: _indexed(given))
    near = ((budgets[at], _lacks(budgets[at], group, given)) for at in positions_near(indexed, group))
    return [(budget, lacks) for budget, lacks in near if lacks is not None]


def _indexed(given: PolicyInput) -> tuple[list[JsonObject], ScopeIndex]:
    """All budgets, and their positions by scope."""
    budgets = [budget for kind in TYPES for budget in list_stated(given.snapshot.by_type, kind)]
    return budgets, index_scopes(["/" + "/".join((segments(budget["id"]) or ())[:-4])] for budget in budgets)


def _lacks(budget: JsonObject, group: str, given: PolicyInput) -> list[str] | None:
    """Return what a budget lacks for a resource group, in a fixed order; None if it is for another scope."""
    parts = segments(budget["id"]) or ()
    covered = covers("/" + "/".join(parts[:-4]), group) if parts[-4:-3] == ("providers",) else False
    if covered is False and parts[:2] != ("providers", "microsoft.billing"):
        return None
    properties = budget.get("properties")
    start, end = (get_inside(properties, "timePeriod", key) for key in ("startDate", "endDate"))
    begins, ends = moment(start), moment(end)
    lacks = {
        "the category Cost": fold(get_inside(properties, "category")) not in (None, "cost"),
        "an enabled notification": not _has_alert(properties),
        "a start before as-of": begins is not None and begins > given.as_of,
        "an end after as-of": ends is not None and ends < given.as_of,
        "a start that can be read": begins is None and start is not None,
        "an end that can be read": ends is None and end is not None,
        "a scope that surely covers it": covered is not True,
        "no filter": get_inside(properties, "filter") not in (None, {}),
    }
    return [lack for lack, is_lacking in lacks.items() if is_lacking]


def _has_alert(properties: object) -> bool:
    notifications = get_inside(properties, "notifications")
    alerts = notifications.values() if isinstance(notifications, dict) else ()
    return any(get_inside(alert, "enabled") is True or fold(get_inside(alert, "enabled")) == "true" for alert in alerts)
