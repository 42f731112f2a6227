"""Cost advice of Azure Advisor without an action."""

from collections.abc import Iterator
from datetime import timedelta

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.times import moment
from policyeng.facts.words import fold, get_inside

UPDATED = "/properties/lastUpdated"
_COSTLY = {"category": "cost", "impact": "high"}


@policy(
    id="AML-COST-107",
    title="Advisor's high-impact cost advice is not left open",
    description='"Use Azure Advisor to get recommendations on right-sizing your resources"; "regularly review '
    'recommendations provided by Azure Advisor". Advice of category Cost and impact High, for any resource of the '
    "snapshot, is acted on within `advice_days` of its `lastUpdated`. Advice that was dismissed or postponed "
    "(`suppressionIds`) was reviewed.",
    related_resources=["https://learn.microsoft.com/azure/advisor/advisor-reference-cost-recommendations"],
    severity="low",
    judges=["Microsoft.Advisor/recommendations"],
    remediation="Follow the recommendation (`az advisor recommendation list --category Cost`), or dismiss it "
    "(`az advisor recommendation disable --ids <id>`) and note why.",
    source='002 "Cost Optimization Strategies"',
    parameters={
        "advice_days": {
            "type": "integer",
            "minimum": 0,
            "maximum": 36500,
            "default": 30,
            "description": "for how many days advice may stay open",
        }
    },
    monotone_in={
        "/properties/lastUpdated": "higher",
        "/properties/impact": ["High", "Medium", "Low"],
        "parameter:advice_days": "lower",
    },
    since="0.1.0",
)
def advisor_advice(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny advice that has been open for longer than allowed."""
    suppressions = get_inside(given.resource, "properties", "suppressionIds")
    is_reviewed = isinstance(suppressions, list) and any(map(fold, suppressions))
    named = {name: fold(get_inside(given.resource, "properties", name)) for name in _COSTLY}
    if is_reviewed or any(named[name] not in (None, word) for name, word in _COSTLY.items()):
        return
    unstated = [name for name, word in named.items() if word is None]
    stated = get_inside(given.resource, "properties", "lastUpdated")
    updated = moment(stated)
    if unstated:
        msg = "it is not known whether the advice is about cost and of high impact"
        yield from (Unknown(msg=msg, path=f"/properties/{name}") for name in unstated)
    elif updated is None:
        yield Unknown(msg="it is not known how long the advice has been open", path=UPDATED)
    elif given.as_of - updated > timedelta(days=given.parameters["advice_days"]):
        expected = {"days": given.parameters["advice_days"]}
        yield Denial(msg="the advice has been open for too long", path=UPDATED, actual=stated, expected=expected)
