"""What the Rego modules of a directory hold before anything is compiled: language version, package, rules, reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng import _native
from policyeng.bundle.header import rego_metadata
from policyeng.bundle.manifest import Manifest, manifest_of
from policyeng.bundle.parsing import bundle_yaml
from policyeng.bundle.tree import text_of
from policyeng.errors import BundleError

#: Names of rules that Conftest and Gatekeeper judge by; the rest of the name, if any, follows an underscore.
JUDGING = "deny|violation|warn"
_JUDGING_LINE = re.compile(rf"^[ \t]*(?:default[ \t]+)?(?:{JUDGING})", re.MULTILINE)


class Rule(NamedTuple):
    """One rule of a module: `form` is `set`, `value`, `true`, `map`, `function` or `default`."""

    name: str
    form: str
    line: int


class Outline(NamedTuple):
    """One Rego module of a directory.

    Attributes:
        path: relative to the root.
        rego_v0: written in Rego v0.
        package: without `data`.
        reads: references to `input` and `data`, as far as their parts are names.
        metadata: the `# METADATA` block above its `package`; None without one.
    """

    root: Path
    path: PurePosixPath
    source: str
    rego_v0: bool
    package: str
    rules: tuple[Rule, ...]
    reads: frozenset[str]
    metadata: object

    @property
    def place(self) -> str:
        """How messages name the module."""
        return str(self.root / self.path)


def outlines_of(root: Path, tree: Mapping[PurePosixPath, bytes], ours: Collection[str] = frozenset()) -> list[Outline]:
    """The Rego modules of one root without those that can hold no policy of others: v1, and no judging rule or ours.

    Args:
        root: the directory or archive.
        tree: its files.
        ours: the paths of its policies that carry our header.

    Raises:
        BundleError: a module that holds a judging rule reads neither as v1 nor as v0, or the manifest is wrong.
    """
    manifest = manifest_of(tree, root)
    found = []
    for path, content in sorted(tree.items()):
        if path.suffix != ".rego":
            continue
        source = text_of(content, root / path)
        judging = str(path) not in ours and _may_judge(source)
        version = _versions(manifest, path)
        if judging or version is not False:
            outline = outline_of(root, path, source, version, required=judging)
            found += [outline] if outline else []
    return found


def outline_of(
    root: Path, path: PurePosixPath, source: str, rego_v0: bool | None, *, required: bool = True
) -> Outline | None:
    """One module; None for one that does not parse and need not, since the compiler will name its fault.

    Raises:
        BundleError: it must parse and does not.
    """
    place = str(root / path)
    try:
        v0, package, rules, reads = _native.outline(place, source, rego_v0)
    except ValueError as error:
        if not required:
            return None
        raise BundleError(f"the module cannot be read: {error}", place=(place,)) from error
    block = rego_metadata(source)
    metadata = bundle_yaml(block, place) if block is not None else None
    named = tuple(Rule(*rule) for rule in rules)
    return Outline(root, path, source, v0, package, named, frozenset(reads), metadata)


def _may_judge(source: str) -> bool:
    return _JUDGING_LINE.search(source) is not None


def _versions(manifest: Manifest, path: PurePosixPath) -> bool | None:
    """Whether a manifest says that a module is v0; None when it leaves it open."""
    named = [number for pattern, number in manifest.file_rego_versions.items() if path.match(pattern.lstrip("/"))]
    number = named[0] if named else manifest.rego_version
    return None if number is None else number == 0
