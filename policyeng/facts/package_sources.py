"""Where the packages of a conda file come from: the channels of conda, and the indexes and addresses of pip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from policyeng.errors import InputError
from policyeng.facts.words import trim
from policyeng.models import lowered

#: The index that pip uses if none is named.
DEFAULT_INDEX = "https://pypi.org/simple"
#: The variables that name an index, in capitals, and whether it replaces the default one.
INDEX_VARIABLES = {
    "PIP_INDEX_URL": True,
    "PIP_EXTRA_INDEX_URL": False,
    "UV_INDEX_URL": True,
    "UV_EXTRA_INDEX_URL": False,
    "UV_DEFAULT_INDEX": True,
    "UV_INDEX": False,
}
#: Options of pip that name a source, and whether it replaces the default index.
_OPTIONS = {
    "-i": True,
    "--index-url": True,
    "--pypi-url": True,
    "--extra-index-url": False,
    "-f": False,
    "--find-links": False,
}
_FILES = ("-r", "--requirement")
_NO_INDEX = "--no-index"
_CHANNELS = "https://conda.anaconda.org/"


class PackageSources(Struct, frozen=True):
    """The package sources of a conda file.

    Attributes:
        named: channels and indexes, as written.
        addresses: URLs of packages that come from none of them.
        needs_default: whether pip packages come from the default index, because nothing replaces it.
        doubts: why the sources cannot be determined.
    """

    named: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    needs_default: bool = False
    doubts: tuple[str, ...] = ()


def normalized_source(source: str) -> str:
    """Return a source for comparing: without credentials and a slash at its end, its scheme and host in lower case.

    A channel by its name is the same as its address at conda.anaconda.org.
    """
    text = trim(source).rstrip("/")
    if "://" not in text:
        return lowered(text)
    scheme, _, others = text.partition("://")
    host, slash, path = others.partition("/")
    url = f"{lowered(scheme)}://{lowered(host.rpartition('@')[2])}{slash}{path}"
    return lowered(url.removeprefix(_CHANNELS)) if url.startswith(_CHANNELS) else url


def is_listed(source: str, allowed: Iterable[str]) -> bool:
    """Return whether a channel or an index is one of those that are allowed."""
    return normalized_source(source) in set(map(normalized_source, allowed))


def is_below(address: str, allowed: Iterable[str]) -> bool:
    """Return whether the address of a package is below an index that is allowed, by whole segments."""
    parts = normalized_source(address.removeprefix("git+")).split("/")
    return any(parts[: len(outer)] == outer for outer in (normalized_source(entry).split("/") for entry in allowed))


@lru_cache(maxsize=1024)
def parse_conda(text: str) -> PackageSources:
    """Return the sources of a conda file."""
    from policyeng.parsing.yaml_text import parse_yaml  # few runs read one

    try:
        document = parse_yaml(text.encode("utf-8", "replace"), "condaFile").value
    except InputError as error:
        return PackageSources(doubts=(f"the conda file cannot be read: {error.message}",))
    if not isinstance(document, dict):
        return PackageSources(doubts=("the conda file is not a mapping",))
    channels, dependencies = document.get("channels"), document.get("dependencies")
    doubts = [
        f"`{name}` of the conda file is not a list"
        for name in ("channels", "dependencies")
        if not isinstance(document.get(name), list | None)
    ]
    named: list[str] = []
    lines: list[str] = []
    for channel in channels if isinstance(channels, list) else ():
        if not isinstance(channel, str):
            doubts.append("a channel of the conda file is not text")
        elif lowered(trim(channel)) != "nodefaults":
            named.append(channel)
    for dependency in dependencies if isinstance(dependencies, list) else ():
        if isinstance(dependency, str):
            named += [dependency.rpartition("::")[0]] if "::" in dependency else []
        elif isinstance(dependency, dict) and set(dependency) == {"pip"} and _is_texts(dependency["pip"]):
            lines += dependency["pip"] or ()
        else:
            doubts.append("a dependency of the conda file is neither text nor a list for pip")
    pip = _parse_pip(lines)
    return PackageSources((*named, *pip.named), pip.addresses, pip.needs_default, (*doubts, *pip.doubts))


def _is_texts(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _parse_pip(lines: Iterable[str]) -> PackageSources:
    """Return the sources of the lines of a requirements file."""
    named: list[str] = []
    addresses: list[str] = []
    doubts: list[str] = []
    packages, is_replaced = 0, False
    for line in lines:
        words = list(_words(line))
        for option, value in _options(words):
            if option == _NO_INDEX:
                is_replaced = True
            elif option in _FILES:
                doubts.append("the conda file takes packages from another file")
            elif value:
                named.append(value)
                is_replaced = is_replaced or _OPTIONS[option]
            else:
                doubts.append("an option of the conda file names no index")
        address = _address(words)
        addresses += [address] if address else []
        packages += bool(words) and not words[0].startswith("-") and not address
    return PackageSources(tuple(named), tuple(addresses), packages > 0 and not is_replaced, tuple(doubts))


def _words(line: str) -> Iterator[str]:
    """Yield the words of a line up to a comment."""
    for word in line.split():
        if word.startswith("#"):
            return
        yield word.strip("'\"")


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a line that name a source, each with its value, empty if it has none."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not word.startswith("--") and word[:2] in (*_OPTIONS, *_FILES):
            name, equals, value = word[:2], word[2:], word[2:].removeprefix("=")
        if name in _OPTIONS or name in _FILES:
            yield name, value if equals else "".join(words[at + 1 : at + 2])
        elif name == _NO_INDEX:
            yield name, ""


def _address(words: list[str]) -> str:
    """Return the address of a package that a line names by it; empty if it names none."""
    if not words or (words[0].startswith("-") and words[0] not in ("-e", "--editable")):
        return ""
    found = next((word for word in words if "://" in word), "")
    return found.partition("@")[2] if "@" in found.partition("://")[0] else found
