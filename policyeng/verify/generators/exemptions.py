"""Random exemptions of the policies of a bundle, at and above the resources of a snapshot, active or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from policyeng.bundle import Policy
from policyeng.models import Exemption, JsonObject
from policyeng.verify.generators.json_mutations import draw_boolean

_SECOND = timedelta(seconds=1)
#: The possible times from the clock to the end: long active, active or expired by a second, long expired, future.
_ENDS = (
    *(timedelta(days=30), timedelta(days=30), timedelta(days=200), _SECOND, timedelta(0), -_SECOND),
    *(timedelta(days=-30), timedelta(days=400)),
)
#: The longest duration of an exemption.
_LASTS = timedelta(days=365)
_PEOPLE = ("ann@contoso.example", "bob@contoso.example", "ml-platform@contoso.example")
#: The lengths, in segments, of the scopes above a resource: subscription, resource group, workspace.
_SCOPES = (2, 4, 8)


def exemptions_of(
    random: Random, policies: Sequence[Policy], document: JsonObject, as_of: datetime
) -> tuple[Exemption, ...]:
    """Return up to six exemptions for a document that a reader of exemption files accepts."""
    ids = [str(resource["id"]) for resource in document["resources"]]
    ids += [str(entry["id"]) for kind in ("workloads", "approvals") for entry in document.get(kind, ())]
    ids = [identity for identity in ids if identity]
    exemptable = [policy for policy in policies if policy.header.exemptable]
    count = random.randrange(7) if ids and exemptable else 0
    return tuple(_exemption(random, number, random.choice(exemptable), ids, as_of) for number in range(count))


def _exemption(random: Random, number: int, policy: Policy, ids: Sequence[str], as_of: datetime) -> Exemption:
    scope = random.choice(ids)
    if scope.startswith("/") and draw_boolean(random, 0.4):
        scope = "/".join(scope.split("/")[: random.choice(_SCOPES) + 1])
    owner, approver = random.sample(_PEOPLE, 2)
    begin, end = _draw_period(random, as_of)
    return Exemption(
        id=f"E-{number}",
        policy=policy.id,
        scope=scope.upper() if draw_boolean(random, 0.1) else scope,
        category=random.choice(("waiver", "mitigated")),
        reason="the migration ends this quarter",
        owner=owner,
        approved_by=approver,
        created_at=begin,
        expires_at=end,
    )


def _draw_period(random: Random, as_of: datetime) -> tuple[datetime, datetime]:
    """Return the begin and end of an allowed duration; it begins at the clock if the calendar ends before."""
    try:
        end = as_of + random.choice(_ENDS)
        return end - random.choice((_LASTS, timedelta(days=60), _SECOND)), end
    except OverflowError:
        return (as_of - _SECOND, as_of) if as_of.year > 1 else (as_of, as_of + _SECOND)
