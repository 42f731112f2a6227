"""What the Rego modules of a directory hold before anything is compiled: language version, package, rules, reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from policyeng.bundle.analysis import AnalyzedRule, ModuleAnalysis, analysis_of
from policyeng.bundle.document_parsing import bundle_yaml
from policyeng.bundle.files import text_of
from policyeng.bundle.header import rego_metadata
from policyeng.bundle.manifest import manifest_of
from policyeng.named import NamedTuple

#: Names of rules that Conftest and Gatekeeper evaluate; the rest of the name, if any, follows an underscore.
DENYING = ("deny", "violation", "warn")


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
    rules: tuple[AnalyzedRule, ...]
    reads: frozenset[str]
    metadata: object

    @property
    def place(self) -> str:
        """How messages name the module."""
        return str(self.root / self.path)


def outlines_of(root: Path, tree: Mapping[PurePosixPath, bytes], ours: Collection[str] = frozenset()) -> list[Outline]:
    """Return the Rego modules of one root that can contain policies.

    Args:
        root: the directory or archive.
        tree: its files.
        ours: the paths of its policies that carry our header.

    Raises:
        BundleError: a module reads neither as v1 nor as v0, or the manifest is wrong.
    """
    manifest = manifest_of(tree, root)
    found = []
    for path, content in sorted(tree.items()):
        if path.suffix != ".rego":
            continue
        source, place, version = text_of(content, root / path), str(root / path), manifest.is_v0(path)
        analysis = analysis_of(source, version, place)
        if version is not False or (str(path) not in ours and _may_judge(analysis)):
            block = rego_metadata(source)
            metadata = bundle_yaml(block, place) if block is not None else None
            v0, package, rules, reads = analysis[:4]
            found.append(Outline(root, path, source, v0, package, rules, reads, metadata))
    return found


def _may_judge(analysis: ModuleAnalysis) -> bool:
    return any(rule.name.startswith(DENYING) for rule in analysis.rules)
