"""Choose policies of a bundle by id, area, control or severity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import orjson
from msgspec import Struct, field

from policyeng.bundle.loader import Bundle
from policyeng.bundle.parameters import find_fault, spread_parameters
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.facts.catalogue import built_in_root
from policyeng.models import JsonObject, Severity, lowered

_TEXTS = ("title", "description", "source")
_KEYS = (*_TEXTS, "parameters")


class Profile(Struct, frozen=True):
    """A named set of parameters.

    Attributes:
        title, description, source: its purpose, and the origin of its values; empty if not stated.
        parameters: by policy id and parameter name; the values below `*` of the document are in those of each policy.
    """

    name: str
    title: str = ""
    description: str = ""
    source: str = ""
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)


def profiles_of(bundle: Bundle) -> list[Profile]:
    """Return the profiles of a bundle, by name.

    Raises:
        BundleError: one is not well formed: its shape, a policy or a parameter that does not exist, or a value that
            does not fit the parameter's JSON Schema.
    """
    return [profile_of(bundle, name) for name in sorted(_documents(bundle))]


def profile_of(bundle: Bundle, name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        UsageError: the bundle has none of that name.
        BundleError: it is not well formed, as of `profiles_of`.
    """
    documents = _documents(bundle)
    if name not in documents:
        remedy = f"the profiles are {', '.join(sorted(documents))}" if documents else "the policies bring no profile"
        raise UsageError(f"no profile is called `{name}`{suggest_nearest(name, documents)}", remedy=remedy)
    document = documents[name]
    if not isinstance(document, dict):
        raise BundleError("the profile is no object", place=(_place(name),), remedy=_remedy())
    for key, value in document.items():
        _require_form(name, key, value)
    try:
        document = {**document, "parameters": spread_parameters(bundle, document.get("parameters", {}))}
    except UsageError as error:
        raise BundleError(error.message, place=(_place(name),)) from None
    profile = Profile(name=name, **document)
    for message in _faults(bundle, profile):
        raise BundleError(message, place=(_place(name),))
    return profile


def with_profile(bundle: Bundle, name: object, given: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
    """Parameters by policy id and name: those that are given over those of a profile.

    Args:
        bundle: a profile may also set parameters of inactive policies.
        name: the profile; None for none.
        given: the parameters of the configuration, which override the profile.

    Raises:
        UsageError, BundleError: as of `profile_of`.
    """
    if name is None:
        return given
    if not isinstance(name, str):
        raise UsageError(f"a profile is chosen by its name, and not by `{name}`", remedy="give the name as text")
    chosen = profile_of(bundle, name).parameters
    return {identity: {**chosen.get(identity, {}), **given.get(identity, {})} for identity in {**chosen, **given}}


def _documents(bundle: Bundle) -> JsonObject:
    documents = bundle.data.get("profiles", {})
    if not isinstance(documents, dict):
        raise BundleError("the profiles are no object", place=("data.profiles",), remedy="name each by a key")
    return documents


def _require_form(name: str, key: str, value: object) -> None:
    if key not in _KEYS:
        message = f"the profile has an unknown key `{key}`{suggest_nearest(key, _KEYS)}"
        raise BundleError(message, place=(_place(name),), remedy=_remedy())
    if key in _TEXTS and not isinstance(value, str):
        raise BundleError(f"the {key} of the profile is no text", place=(_place(name), key))
    if key == "parameters" and not (
        isinstance(value, dict) and all(isinstance(chosen, dict) for chosen in value.values())
    ):
        message = "the parameters of the profile are no objects by policy id"
        raise BundleError(message, place=(_place(name), key))


def _faults(bundle: Bundle, profile: Profile) -> Iterator[str]:
    """Yield what does not fit: a policy, a parameter or a value."""
    policies = {policy.id: policy for policy in (*bundle.policies, *bundle.idle)}
    for identity, chosen in profile.parameters.items():
        if identity not in policies:
            yield f"parameters are given for `{identity}`, which is no policy{suggest_nearest(identity, policies)}"
            continue
        for parameter, value in chosen.items():
            if fault := find_fault(policies[identity], parameter, value):
                yield fault


def _place(name: str) -> str:
    return f"profile `{name}`"


def _remedy() -> str:
    return f"the keys of a profile are {', '.join(_KEYS)}"


def selected(bundle: Bundle, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Bundle:
    """Return the bundle with the policies that some `select` names (all when empty) and no `ignore` names.

    A selector is a policy id, an area (`network`, or `NET` as in the ids; for a policy of others its package or one of
    its folders), a framework, a control (`NS-2`, or with its framework
    `mcsb-v1:NS-2` or `mcsb-v1 NS-2`), or a severity (`high`: that one alone,
    and no policy is an answer too); letters compare without case. A severity that is also the name of an id, an area or
    a control of the bundle is read as that name.

    Raises:
        UsageError: a selector names nothing in the bundle.
    """
    names = {policy.id: _names(policy, bundle) for policy in bundle.policies}
    known = set().union(*names.values())
    severities = set(map(str, Severity)) - known
    for policy in bundle.policies:
        names[policy.id] |= severities & {policy.header.severity}
    for selector in (*select, *ignore):
        if selector.lower() not in known | severities:
            if untested := _untested_control(bundle, selector):
                raise UsageError(f"no policy tests the control `{untested}`", remedy="see `policyeng frameworks show`")
            spelled = {name.upper() if name.upper() in names else name for name in known | severities}
            raise UsageError(
                f"`{selector}` is no policy id, area, control or severity{suggest_nearest(selector, spelled)}"
            )
    wanted = {selector.lower() for selector in select}
    unwanted = {selector.lower() for selector in ignore}
    return bundle.only(
        policy
        for policy in bundle.policies
        if (not wanted or names[policy.id] & wanted) and not names[policy.id] & unwanted
    )


def _untested_control(bundle: Bundle, selector: str) -> str:
    """Return the control that a selector with its framework names; empty if there is none."""
    for name, document in bundle.frameworks.items():
        for control in document.get("controls", ()) if isinstance(document, dict) else ():
            stated = f"{name}:{control.get('id')}" if isinstance(control, dict) else ""
            if selector.lower() in (stated.lower(), stated.lower().replace(":", " ", 1)):
                return stated
    return ""


def _names(policy: Policy, bundle: Bundle) -> set[str]:
    parts = policy.id.lower().split("-")
    names = {policy.id.lower(), policy.area.lower()}
    if policy.input_form == "policy":
        names.update(parts[1:-1])
    else:  # a foreign policy: its package, and every folder above it
        names.add(policy.package.lower())
        names.update(part.lower() for part in policy.file.split("/")[:-1])
    for stated in bundle.controls.get(policy.id, ()):
        framework, _, control = stated.lower().partition(":")
        names.update((framework, control, f"{framework}:{control}", f"{framework} {control}"))
    return names - {""}


#: The key of `data` and the root of a bundle with the documents.
ROOT = "frameworks"


def is_framework_file(name: str) -> bool:
    """Return whether a framework is given as a file and not by its name."""
    return "/" in name or name.lower().endswith((".json", ".yaml", ".yml"))


def separate_frameworks(data: JsonObject, modules: Iterable[tuple[str, str]]) -> bytes:
    """Return the framework documents of a bundle as JSON, and remove them from its data unless a module names them.

    Raises:
        BundleError: they are no object of objects.
    """
    found = data.get(ROOT, {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise BundleError("the frameworks are no object", place=(f"data.{ROOT}",), remedy="name each by a folder")
    if not any(ROOT in source for _, source in modules):
        data.pop(ROOT, None)
    return orjson.dumps(found) if found else b""


def shipped_frameworks() -> JsonObject:
    """Return the documents of the built-in frameworks by name."""
    places = sorted((built_in_root() / ROOT).glob("*/data.json"))
    return {place.parent.name: orjson.loads(place.read_bytes()) for place in places}


def controls_of(policies: Collection[Policy], frameworks: JsonObject) -> dict[str, tuple[str, ...]]:
    """Return the controls that each policy tests, as `FRAMEWORK:CONTROL`, by the id of the policy.

    Raises:
        BundleError: a header maps its policy to a control to which a framework maps it, too.
    """
    found: dict[str, list[str]] = {policy.id: [] for policy in policies}
    for name, document in frameworks.items():
        for control, identity in _direct_mappings(document):
            if identity in found:
                found[identity].append(f"{name}:{control}")
    for policy in policies:
        stated = [f"{name}:{control}" for name, ids in policy.header.controls.items() for control in ids]
        known = {lowered(control): control for control in found[policy.id]}
        if twice := [known[lowered(control)] for control in stated if lowered(control) in known]:
            message = f"the header of `{policy.id}` maps it to `{twice[0]}`, and so does the framework"
            raise BundleError(message, place=(policy.file,), remedy="remove it from `controls` of the header")
        found[policy.id] += stated
    return {policy: tuple(controls) for policy, controls in found.items() if controls}


def _direct_mappings(document: object) -> Iterator[tuple[str, str]]:
    """Yield the control and the policy of each direct mapping; `policyeng.frameworks` reports wrong documents."""
    for control in _list(document, "controls"):
        for mapping in _list(control, "policies"):
            if isinstance(mapping, dict) and isinstance(control, dict) and mapping.get("relevance") == "direct":
                yield str(control.get("id")), str(mapping.get("id"))


def _list(holder: object, key: str) -> list[object]:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []
