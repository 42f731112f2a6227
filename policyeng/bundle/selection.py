"""Choose policies of a bundle by id, area, control or severity."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.bundle.declaration import Policy
from policyeng.bundle.reader import Bundle
from policyeng.errors import UsageError, nearest
from policyeng.models import Severity


def selected(bundle: Bundle, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Bundle:
    """The bundle with the policies that some `select` names (all when empty) and no `ignore` names.

    A selector is a policy id, an area (`network`, or `NET` as in the ids; for a policy of others its package or one of
    its folders), a control (`NS-2`, or with its framework `mcsb-v1:NS-2`), or a severity (`high`: that one alone,
    and no policy is an answer too); letters compare without case. A severity that is also the name of an id, an area or
    a control of the bundle is read as that name.

    Raises:
        UsageError: a selector names nothing in the bundle.
    """
    names = {policy.id: _names(policy) for policy in bundle.policies}
    known = set().union(*names.values())
    severities = set(map(str, Severity)) - known
    for policy in bundle.policies:
        names[policy.id] |= severities & {policy.header.severity}
    for selector in (*select, *ignore):
        if selector.lower() not in known | severities:
            spelled = {name.upper() if name.upper() in names else name for name in known | severities}
            raise UsageError(f"`{selector}` is no policy id, area, control or severity{nearest(selector, spelled)}")
    wanted = {selector.lower() for selector in select}
    unwanted = {selector.lower() for selector in ignore}
    return bundle.only(
        policy
        for policy in bundle.policies
        if (not wanted or names[policy.id] & wanted) and not names[policy.id] & unwanted
    )


def _names(policy: Policy) -> set[str]:
    parts = policy.id.lower().split("-")
    names = {policy.id.lower(), policy.area.lower()}
    if policy.input_form == "policy":
        names.update(parts[1:-1])
    else:  # a policy of others: its package, and every folder that it lies in
        names.add(policy.package.lower())
        names.update(part.lower() for part in policy.file.split("/")[:-1])
    for framework, controls in policy.header.controls.items():
        names.add(framework.lower())
        names.update(control.lower() for control in controls)
        names.update(f"{framework}:{control}".lower() for control in controls)
    return names - {""}
