"""The Python twin of AML-RBAC-102, written on its own so that the suite can hold the two against each other."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject

PRINCIPAL = "/properties/principalId"


@policy()
def known_principals(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a principal that is deleted, unknown, or a guest who is not allowed."""
    stated = get_inside(given.resource, "properties", "principalId")
    principal, kind = fold(stated), fold(get_inside(given.resource, "properties", "principalType"))
    expected = "a principal of the directory: a member, a group or a service principal"
    gone = Denial(msg="the principal is deleted or unknown", path=PRINCIPAL, actual=stated, expected=expected)
    if principal is None:
        yield Unknown(msg="the assignment names no principal", path=PRINCIPAL)
    elif kind == "unknown":
        yield gone
    elif not given.snapshot.principals:
        yield Unknown(msg="the snapshot names no principals", path=PRINCIPAL)
    elif principal in given.snapshot.by_principal:
        entries = [given.snapshot.principals[position] for position in given.snapshot.by_principal[principal]]
        if any(entry["deleted"] for entry in entries):
            yield gone
        if not given.parameters["allow_guests"]:
            yield from _guests([entry for entry in entries if not entry["deleted"]], kind, stated, expected)
    elif given.snapshot.incomplete:
        yield Unknown(msg="the snapshot is incomplete: the principal may exist", path=PRINCIPAL)
    else:
        yield gone


def _guests(entries: list[JsonObject], kind: str | None, stated: object, expected: str) -> Iterator[Denial | Unknown]:
    standings = {fold(entry["userType"]) or "" for entry in entries}
    unsaid = [entry for entry in entries if fold(entry["userType"]) not in ("guest", "member")]
    if "guest" in standings:
        yield Denial(msg="a guest holds access", path=PRINCIPAL, actual=stated, expected=expected)
    if any((fold(entry["type"]) or kind or "user") in ("user", "unknown") for entry in unsaid):
        yield Unknown(msg="it is not stated whether the user is a guest", path=PRINCIPAL)
