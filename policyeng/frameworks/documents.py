"""Framework documents: the controls of a published standard, and the policies that map to each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

from policyeng.bundle import Bundle
from policyeng.bundle.policy_selection import is_framework_file, shipped_frameworks
from policyeng.errors import InputError, UsageError, suggest_nearest
from policyeng.frozen import frozen, replace
from policyeng.later import lazy_pattern
from policyeng.models import Checked, ControlMapping, Limited, Model, lowered
from policyeng.models.frameworks import ControlKind
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, lines_of, parse_json, shortened
from policyeng.sources.parsed import Refusal
from policyeng.sources.validation import validated

_ID = lazy_pattern(r"[a-z0-9][a-z0-9.-]*")
_Text = Annotated[str, Limited(min_length=1)]


def _check_id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError("an id has lower-case letters, digits, periods and hyphens, such as `mcsb-v1`")
    return value


def _check_date(value: str) -> str:
    if value:
        date.fromisoformat(value)
    return value


@frozen(kw_only=True)
class Control(Model):
    """One requirement of a framework.

    Attributes:
        title: a short description.
        domain: the part of the framework that it is in.
        kind: `process` for what no configuration shows.
        guidance: how a person would show it, where no policy is direct.
        policies: the policies that map to it.
    """

    id: _Text
    title: str
    domain: str = ""
    kind: ControlKind = "technical"
    guidance: str = ""
    policies: tuple[ControlMapping, ...] = ()


@frozen(kw_only=True)
class Framework(Model):
    """A published standard, or an organization's own, as controls.

    Attributes:
        source: where the standard is published.
        preview: whether its publisher calls it a preview.
        disclaimer: what the mappings do not say.
    """

    id: Annotated[str, Checked(_check_id)]
    title: _Text
    version: str
    date: Annotated[str, Checked(_check_date)] = ""
    source: str
    preview: bool = False
    disclaimer: str = ""
    controls: Annotated[tuple[Control, ...], Limited(min_length=1)]

    @property
    def by_domain(self) -> dict[str, list[Control]]:
        """The controls by domain, in the order of the document."""
        found: dict[str, list[Control]] = {}
        for control in self.controls:
            found.setdefault(control.domain, []).append(control)
        return found

    def control(self, identity: str) -> Control:
        """Return a control by its id, in any letter case.

        Raises:
            UsageError: there is none; names the nearest one.
        """
        for control in self.controls:
            if lowered(control.id) == lowered(identity):
                return control
        known = [control.id for control in self.controls]
        raise UsageError(f"`{self.id}` has no control `{identity}`{suggest_nearest(identity, known)}")


def frameworks_of(bundle: Bundle) -> list[Framework]:
    """Return the frameworks of a bundle, or the built-in ones if it has none, with the mappings of headers.

    Raises:
        UsageError: one is not well formed.
    """
    return [framework_of(bundle, name) for name in bundle.frameworks]


def framework_of(bundle: Bundle, name: str) -> Framework:
    """Return a framework by its name, or that of a file, with the mappings of headers.

    Args:
        bundle: the bundle with its policies.
        name: the name of a framework of the bundle, in any letter case, or the path of a JSON or YAML file.

    Raises:
        UsageError: there is no such framework or file, or it is not well formed; names the place and a remedy.
    """
    if known := next((one for one in bundle.frameworks if lowered(one) == lowered(name)), None):
        # A bundle can have some of the policies to which the built-in frameworks map.
        policies = None if known in shipped_frameworks() else _ids(bundle)
        return _with_headers(_parsed(bundle.frameworks[known], policies, lambda _: f"framework `{known}`"), bundle)
    if is_framework_file(name):
        return read_framework(Path(name), bundle)
    remedy = f"choose from {', '.join(bundle.frameworks)}, or name a JSON or YAML file"
    raise UsageError(f"no framework is called `{name}`{suggest_nearest(name, bundle.frameworks)}", remedy=remedy)


def read_framework(path: Path, bundle: Bundle) -> Framework:
    """Read a framework from a JSON or YAML file, with the mappings of headers.

    Raises:
        UsageError: the file cannot be read, is not well formed, or maps a policy that the bundle does not have; with
            the line and a remedy.
    """
    file = str(path)
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".json":
            document = parse_json(content, file, max_bytes=DEFAULT_MAX_BYTES)
            return _with_headers(
                _parsed(document, _ids(bundle), lambda at: f"{file}:{lines_of(content, [at])[0]}"), bundle
            )
        from policyeng.parsing.yaml_text import parse_yaml  # YAML is loaded only where there is some

        document, places = parse_yaml(content, file, max_bytes=DEFAULT_MAX_BYTES)
    except OSError as error:
        message = f"the framework cannot be read ({(error.strerror or '').lower()})"
        raise UsageError(message, place=(file,), remedy="name a readable file") from None
    except InputError as error:
        raise UsageError(error.message, place=error.place, remedy=error.remedy) from None
    return _with_headers(_parsed(document, _ids(bundle), lambda at: f"{file}:{places.get(at, (1, 1))[0]}"), bundle)


def tested_controls(frameworks: Iterable[Framework]) -> dict[str, dict[str, list[str]]]:
    """Return by policy id and framework the controls that the policy tests, such as `NS-2 (published)`."""
    found: dict[str, dict[str, list[str]]] = {}
    for framework in frameworks:
        for control in framework.controls:
            for mapping in control.policies:
                if mapping.is_direct:
                    listed = found.setdefault(mapping.id, {}).setdefault(framework.id, [])
                    listed.append(f"{control.id} ({mapping.basis})")
    return found


def _ids(bundle: Bundle) -> set[str]:
    return {policy.id for policy in (*bundle.policies, *bundle.idle)}


def _parsed(document: object, policies: Collection[str] | None, place_of: Callable[[str], str]) -> Framework:
    """Return a document as a framework.

    Args:
        document: any JSON value.
        policies: the ids to which it can map; None for any.
        place_of: how messages name the place of a JSON Pointer.

    Raises:
        UsageError: with the first fault.
    """
    framework, faults = validated(Framework, document, "")
    faults = faults if framework is None else tuple(_faults(framework, policies))
    for fault in faults[:1]:
        message = fault.message.replace("does not fit", "is not valid", 1)
        raise UsageError(message, place=(place_of(fault.pointer),), remedy=fault.remedy)
    assert framework is not None  # noqa: S101  # a document without faults is a framework
    return framework


def _faults(framework: Framework, policies: Collection[str] | None) -> Iterator[Refusal]:
    seen: dict[str, str] = {}
    for number, control in enumerate(framework.controls):
        pointer = f"/controls/{number}"
        if lowered(control.id) in seen:
            message = f"two controls have the id `{shortened(control.id)}`"
            yield Refusal(f"{pointer}/id", message, f"give each its own id; the first is `{seen[lowered(control.id)]}`")
        seen.setdefault(lowered(control.id), control.id)
        mapped = set[str]()
        for at, mapping in enumerate(control.policies):
            place = f"{pointer}/policies/{at}/id"
            if policies is not None and mapping.id not in policies:
                message = f"control `{control.id}` maps to `{shortened(mapping.id)}`, which is no policy"
                remedy = suggest_nearest(mapping.id, policies).removeprefix("; ") or "see `policyeng policies list`"
                yield Refusal(place, message, remedy)
            if mapping.id in mapped:
                message = f"control `{control.id}` maps to `{shortened(mapping.id)}` twice"
                yield Refusal(place, message, "remove one of them")
            mapped.add(mapping.id)


def _with_headers(framework: Framework, bundle: Bundle) -> Framework:
    """Return a framework with the mappings that headers of policies state.

    Raises:
        UsageError: a header names a control that the framework does not have, or one that maps to the policy already.
    """
    added: dict[str, list[ControlMapping]] = {}
    for policy in (*bundle.policies, *bundle.idle):
        for name, controls in policy.header.controls.items():
            for control in controls if lowered(name) == lowered(framework.id) else ():
                found = framework.control(control)
                if any(mapping.id == policy.id and mapping.is_direct for mapping in found.policies):
                    message = (
                        f"the header of `{policy.id}` maps it to `{framework.id}:{found.id}`, and so does the framework"
                    )
                    raise UsageError(message, place=(policy.file,), remedy="remove it from `controls` of the header")
                mapping = ControlMapping(id=policy.id, basis="own", relevance="direct", source=f"header of {policy.id}")
                added.setdefault(found.id, []).append(mapping)
    if not added:
        return framework
    return replace(
        framework,
        controls=tuple(
            replace(control, policies=(*control.policies, *added.get(control.id, ()))) for control in framework.controls
        ),
    )
