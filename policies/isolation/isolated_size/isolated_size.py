"""The twin of `isolated_size.rego`, which is in force; the suite proves that they agree."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import cluster_of, compute_regulated, node_sizes
from policyeng.facts.words import Regulated


def _standing(given: PolicyInput) -> Regulated:
    snapshot, words = given.snapshot, given.parameters["regulated_classifications"]
    return compute_regulated(given.resource, given.workspace, snapshot.by_id, snapshot.by_host, words)


def _applies(given: PolicyInput) -> bool:
    nodes = node_sizes(given.resource, given.snapshot.by_id)
    if nodes is None or _standing(given).decided is False:
        return False
    return bool(nodes) or cluster_of(given.resource, given.snapshot.by_id) is None


@policy(applies=_applies)
def isolated_size(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny every size of a regulated compute that the catalogue does not hold for isolated."""
    standing = _standing(given)
    nodes = node_sizes(given.resource, given.snapshot.by_id)
    if standing.decided is None:
        yield Unknown(msg=standing.reason, path="workspace:/properties/hbiWorkspace")
    if not nodes:
        yield Unknown(msg="what states the size is not in the snapshot", path="/properties/resourceId")
        return
    for node in nodes if standing.decided else ():
        if not (isinstance(node.size, str) and given.facts.is_isolated(node.size)):
            message = "regulated work runs on a size that is not isolated"
            actual = {"size": node.size, "because": standing.reason}
            yield Denial(msg=message, path=node.path, actual=actual, expected="an isolated size")
