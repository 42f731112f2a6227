"""The twin of `minimum_nodes.rego`, with another boundary."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, policy

_PATH = "/properties/properties/scaleSettings/minNodeCount"


@policy()
def minimum_nodes(given: PolicyInput) -> Iterator[Denial]:
    """Deny two nodes and more."""
    nodes: object = given.resource
    for key in _PATH.split("/")[1:]:
        nodes = nodes.get(key) if isinstance(nodes, dict) else None
    if isinstance(nodes, int | float) and not isinstance(nodes, bool) and nodes >= 2:
        message = "the cluster keeps many nodes while it is idle"
        yield Denial(msg=message, path=_PATH, actual=nodes, expected="at most 2")
