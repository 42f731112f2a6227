"""Operations of sets."""

from __future__ import annotations

from policyeng.rego.budget import charged
from policyeng.rego.builtins.registry import builtin, check_set, too_deep
from policyeng.rego.values import Value, ValueKey, members


@builtin("and")
def intersect(left: Value, right: Value) -> Value:
    """Return the members that are in both sets."""
    if type(left) is set and type(right) is set:
        return charged(left & right)
    return charged(check_set(1, left) & check_set(2, right))


@builtin("or")
def unite(left: Value, right: Value) -> Value:
    """Return the members that are in either set."""
    if type(left) is set and type(right) is set:
        return charged(left | right)
    return charged(check_set(1, left) | check_set(2, right))


@builtin("set_diff")
def subtract(left: Value, right: Value) -> Value:
    """Return the members that are in the first set only."""
    return charged(check_set(1, left) - check_set(2, right))


@builtin("intersection")
def intersect_all(collection: Value) -> Value:
    """Return the members that are in all sets of a set."""
    found = _list_sets(collection)
    return charged(set.intersection(*found)) if found else set()


@builtin("union")
def unite_all(collection: Value) -> Value:
    """Return the members that are in any set of a set."""
    return charged(set().union(*_list_sets(collection)))


def _list_sets(collection: Value) -> list[set[Value]]:
    keys = check_set(1, collection)
    found = [key.value for key in keys if type(key) is ValueKey and type(key.value) is set]
    if len(found) < len(keys):
        try:
            # OPA reports the first in the order of the members.
            check_set(1, members(keys)[0])
        except RecursionError:
            raise too_deep() from None
    return found
