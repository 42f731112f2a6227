"""Read a directory of policies as a bundle: the layout is OPA's, nothing is registered anywhere."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import ModuleType

import orjson

from policyeng.bundle.declaration import Declaration, Policy, PythonPolicy, Role
from policyeng.bundle.header import PolicyHeader, header_from_metadata, parse_header, rego_metadata
from policyeng.bundle.parsing import bundle_json, bundle_yaml
from policyeng.errors import BundleError
from policyeng.facts import Facts
from policyeng.models import JsonObject

_PACKAGE = re.compile(r"^package[ \t]+([\w.\[\]\"-]+)", re.MULTILINE)
_RULE = re.compile(r"^(?:default[ \t]+)?(applies|deny|unknown)\b", re.MULTILINE)
_DATA_NAMES = frozenset({"data.json", "data.yaml", "data.yml"})
#: Roots that our own bundle lends to one that does not bring them.
_LENT = ("lib", "facts")


@dataclass(frozen=True)
class Bundle:
    """Policies with everything they need, as read from one or several directories.

    Attributes:
        revision: from `.manifest`; empty without one.
        digest: SHA-256 over the paths and contents of every module, data document and Python policy, as hexadecimal.
        policies: sorted by id.
        modules: Rego (path, source) without tests, sorted by path.
        data: the `data` document of OPA.
    """

    name: str
    revision: str
    digest: str
    policies: tuple[Policy, ...]
    modules: tuple[tuple[str, str], ...]
    data: JsonObject
    roots: tuple[Path, ...] = ()

    @cached_property
    def facts(self) -> Facts:
        """The catalogue in `data.facts`, as values."""
        return Facts.from_document(self.data.get("facts", {}))

    @cached_property
    def data_bytes(self) -> bytes:
        """The `data` document as JSON."""
        return orjson.dumps(self.data)

    def only(self, policies: Iterable[Policy]) -> Bundle:
        """The same bundle with fewer policies in force; modules, data and digest stay."""
        return replace(self, policies=tuple(policies))


def built_in_root() -> Path:
    """The directory of the built-in policies: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "policies"
    return installed if installed.is_dir() else package.parent / "policies"


def load_bundle(*directories: str | Path) -> Bundle:
    """Read the built-in policies, or those of the given directories joined.

    A directory without packages under `lib` or data under `facts` is lent ours, so that its policies can use them.

    Raises:
        BundleError: a directory, module, header or data document is not well formed, or an id stands twice.
    """
    ours = built_in_root()
    roots = tuple(Path(directory) for directory in directories) or (ours,)
    files = [_files(root) for root in roots]
    if directories:
        present = {path.parts[0] for tree in files for path in tree if len(path.parts) > 1}
        lent = {path: content for path, content in _files(ours).items() if path.parts[0] in _LENT}
        files.append({path: content for path, content in lent.items() if path.parts[0] not in present})
        roots = (*roots, ours)
    digest, modules, data, policies = _read_all(roots, files)
    revisions = [_revision(root) for root in roots[: len(directories) or 1]]
    name = ", ".join(root.resolve().name for root in roots[: len(directories) or 1])
    return Bundle(
        name="policyeng" if not directories else name,
        revision=", ".join(filter(None, revisions)),
        digest=digest,
        policies=_unique(policies),
        modules=tuple(sorted(modules)),
        data=data,
        roots=roots,
    )


def _read_all(
    roots: Sequence[Path], files: Sequence[Mapping[PurePosixPath, bytes]]
) -> tuple[str, list[tuple[str, str]], JsonObject, list[Policy]]:
    modules: list[tuple[str, str]] = []
    data: JsonObject = {}
    policies: list[Policy] = []
    digest = hashlib.sha256()
    for root, tree in zip(roots, files, strict=True):
        for path, content in sorted(tree.items()):
            digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
            if path.name in _DATA_NAMES:
                _join_data(data, path, content, root)
            elif path.suffix == ".rego":
                modules.append((str(path), _text(content, root / path)))
        policies += _policies(root, tree)
    return digest.hexdigest(), modules, data, policies


def _files(root: Path) -> dict[PurePosixPath, bytes]:
    """Every file of a bundle that counts: Rego without tests, data documents, Python policies, the manifest."""
    if not root.is_dir():
        raise BundleError(f"`{root}` is not a directory", remedy="name a directory that holds policies")
    found: dict[PurePosixPath, bytes] = {}
    for path in sorted(root.rglob("*")):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        hidden = any(part.startswith((".", "__")) for part in relative.parts) and relative.name != ".manifest"
        test = path.name.endswith("_test.rego") or path.name == "conftest.py" or path.match("test_*.py")
        wanted = path.suffix in {".rego", ".py"} or path.name in _DATA_NAMES or path.name == ".manifest"
        if wanted and not hidden and not test and path.is_file():
            found[relative] = path.read_bytes()
    return found


def _policies(root: Path, tree: Mapping[PurePosixPath, bytes]) -> list[Policy]:
    rego: dict[PurePosixPath, Policy] = {}
    for path, content in sorted(tree.items()):
        if path.suffix == ".rego" and (found := _rego_policy(root, path, _text(content, root / path))):
            rego[path.with_suffix("")] = found
    policies = dict(rego)
    for path, content in sorted(tree.items()):
        if path.suffix == ".py" and b"policyeng" in content and b"policy" in content.replace(b"policyeng", b""):
            stem = path.with_suffix("")
            policies[stem] = _python_policy(root, path, content, rego.get(stem))
    return list(policies.values())


def _rego_policy(root: Path, path: PurePosixPath, source: str) -> Policy | None:
    place = str(root / path)
    metadata = rego_metadata(source)
    header = header_from_metadata(bundle_yaml(metadata, place), place) if metadata is not None else None
    if header is None:
        if path.parts[0] != "lib" and re.search(r"^deny\b", source, re.MULTILINE):
            remedy = "give it a `# METADATA` block directly above `package`, with `custom` and its `id`"
            raise BundleError("the module defines `deny` and carries no policy header", place=(place,), remedy=remedy)
        return None
    package = _PACKAGE.search(source)
    if package is None:  # rego_metadata found the block above a `package` line
        raise BundleError("the module has no `package` line", place=(place,))
    roles: set[Role] = set()
    for rule in _RULE.finditer(source):
        roles.add("applies" if rule[1] == "applies" else "deny" if rule[1] == "deny" else "unknown")
    if "deny" not in roles:
        raise BundleError(
            "the policy defines no `deny` rule", place=(place,), remedy="add `deny contains {...} if ...`"
        )
    rules = tuple((role, f"data.{package[1]}.{role}") for role in sorted(roles))
    return Policy(header, _area(path), path.stem, str(path), rules=rules, cases=_cases(root, path))


def _python_policy(root: Path, path: PurePosixPath, content: bytes, twin: Policy | None) -> Policy:
    place = str(root / path)
    module = _execute(path, content, place)
    declared = [value for value in vars(module).values() if hasattr(value, "__policy__")]
    if len(declared) != 1:
        raise BundleError(
            f"{len(declared)} functions carry `@policy(...)`", place=(place,), remedy="declare exactly one"
        )
    declaration: Declaration = declared[0].__policy__
    python = PythonPolicy(declared[0], declaration.applies)
    if twin is not None:
        if declaration.fields:
            raise BundleError(
                "the twin of a Rego policy repeats the header", place=(place,), remedy="write `@policy()` alone"
            )
        return replace(twin, python=python)
    header: PolicyHeader = parse_header(dict(declaration.fields), place)
    return Policy(header, _area(path), path.stem, str(path), python=python, cases=_cases(root, path))


def _execute(path: PurePosixPath, content: bytes, place: str) -> ModuleType:
    """Run a policy's module without leaving compiled files beside it."""
    module = ModuleType(f"policyeng_policy_{hashlib.sha256(content).hexdigest()[:16]}_{path.stem}")
    module.__file__ = place
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        exec(compile(content, place, "exec"), module.__dict__)  # noqa: S102  # policies are trusted code, ADR 5
    except (Exception, SystemExit) as error:
        raise BundleError(f"the module cannot be loaded: {type(error).__name__}: {error}", place=(place,)) from error
    return module


def _area(path: PurePosixPath) -> str:
    return path.parts[0] if len(path.parts) > 1 else ""


def _cases(root: Path, path: PurePosixPath) -> Path | None:
    cases = root / path.parent / "cases.yaml"
    return cases if cases.is_file() else None


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BundleError(f"not UTF-8 at byte {error.start}", place=(str(path),)) from error


def _join_data(data: JsonObject, path: PurePosixPath, content: bytes, root: Path) -> None:
    """Put a data document where its directory says, as OPA does; no two documents may give one key."""
    place = str(root / path)
    yaml = path.suffix != ".json"
    document = bundle_yaml(_text(content, root / path), place) if yaml else bundle_json(content, place)
    holder: JsonObject = {"data": data}
    key = "data"
    for part in path.parts[:-1]:
        below = holder.setdefault(key, {})
        if not isinstance(below, dict):
            raise BundleError("it lies under a value of another data document that is no object", place=(place,))
        holder, key = below, part
    if isinstance(document, dict) and isinstance(holder.setdefault(key, {}), dict):
        clash = sorted(set(document) & set(holder[key]))
        if clash:
            raise BundleError(f"the key `{clash[0]}` stands in two data documents", place=(place,))
        holder[key].update(document)
    elif key == "data" or key in holder:
        raise BundleError("the data document is no object", place=(place,))
    else:
        holder[key] = document


def _revision(root: Path) -> str:
    manifest = root / ".manifest"
    if not manifest.is_file():
        return ""
    document = bundle_json(manifest.read_bytes(), str(manifest))
    revision = document.get("revision", "") if isinstance(document, dict) else ""
    return revision if isinstance(revision, str) else ""


def _unique(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    seen: dict[str, Policy] = {}
    for policy in policies:
        if policy.id in seen:
            places = f"`{seen[policy.id].file}` and `{policy.file}`"
            raise BundleError(f"the id `{policy.id}` stands twice, in {places}", remedy="give one of them another id")
        seen[policy.id] = policy
    return tuple(sorted(seen.values(), key=lambda policy: policy.id))
