"""Where container images come from: `[host[:port]/]path[:tag][@digest]`, from Docker Hub where no host is stated."""

from __future__ import annotations

from collections.abc import Iterable

from policyeng.facts.words import trim
from policyeng.models import lowered

_HUB = "docker.io"
_HUBS = frozenset((_HUB, "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"))


def image_source(image: str) -> str:
    """Return the host, in lower case, and the path of an image, without tag and digest."""
    host, path = _split_host(trim(image).partition("@")[0])
    if not host:
        return f"{_HUB}/{path if '/' in path else f'library/{path}'}"
    return f"{host}/{path}"


def is_from(image: str, allowed: Iterable[str]) -> bool:
    """Return whether an image is under one of some sources, by whole segments.

    Args:
        image: the reference of an image.
        allowed: hosts, or hosts with a path.
    """
    parts = image_source(image).split("/")
    return any(parts[: len(outer)] == outer for outer in map(_segments, allowed))


def _segments(entry: str) -> list[str]:
    """Return the segments of an allowed source, which can be only a host."""
    written = trim(entry).removeprefix("https://").rstrip("/")
    if "/" not in written and _is_host(written):
        return [_named(written)]
    return image_source(written).split("/")


def _split_host(reference: str) -> tuple[str, str]:
    """Return the host of a reference, empty if it has none, and its path without the tag."""
    first, slash, others = reference.partition("/")
    host, path = (_named(first), others) if slash and _is_host(first) else ("", reference)
    above, slash, name = path.rpartition("/")
    return host, f"{above}{slash}{name.partition(':')[0]}"


def _is_host(segment: str) -> bool:
    """Return whether the first segment of a reference is a host, as Docker decides it."""
    name, _, port = segment.partition(":")
    return lowered(name) == "localhost" or "." in name or port.isdecimal()


def _named(host: str) -> str:
    return _HUB if lowered(host) in _HUBS else lowered(host)
