"""Assembly of a bundle from modules, data documents and policies, and its form as bytes for other processes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import orjson

from policyeng.bundle.discovery import policies_of
from policyeng.bundle.external_policies import (
    Constraint,
    ConstraintTemplate,
    constrained,
    constraints_of,
    kinds_of,
    refuse_undeclared,
    with_templates,
)
from policyeng.bundle.files import DATA_NAMES, BundleOrigin, is_gatekeepers, is_ours, text_of
from policyeng.bundle.loader import Bundle, as_json
from policyeng.bundle.manifest import MANIFEST, Manifest, bundle_json, bundle_yaml, manifest_of
from policyeng.bundle.policy_selection import ROOT, separate_frameworks
from policyeng.bundle.policy_types import Policy
from policyeng.bundle.rego_trees import Outline, outlines_of
from policyeng.errors import BundleError, UsageError
from policyeng.models import JsonObject

if TYPE_CHECKING:
    from policyeng.azure_policy.assignments import PolicyNote
    from policyeng.bundle.left_out import LeftOutModule

#: The files that `--data` takes from a directory, as in Conftest.
GIVEN_SUFFIXES = (".json", ".yaml", ".yml")
#: Where a server keeps what it knows of itself, and where we put what a server has to know of us.
_KEPT = ("policyeng", "system")


def join_document(data: JsonObject, path: PurePosixPath, content: bytes, root: Path) -> None:
    """Add a data document below the keys of its directory, as OPA does; documents must not share a key."""
    place = str(root / path)
    yaml = path.suffix != ".json"
    document = bundle_yaml(text_of(content, root / path), place) if yaml else bundle_json(content, place)
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
            raise BundleError(f"the key `{clash[0]}` is in two data documents", place=(place,))
        holder[key].update(document)
    elif key == "data" or key in holder:
        raise BundleError("the data document is not an object", place=(place,))
    else:
        holder[key] = document


def join_given(data: JsonObject, given: str | Path) -> None:
    """Join what `--data` names into `data`, as Conftest does: files by content, directories by the folders below them.

    A prefix (`a.b:path`) puts it below those keys. Objects are joined key by key, at any depth.

    Raises:
        BundleError: a file cannot be read, is not JSON or YAML, is not an object, or sets a key again.
    """
    prefix, path = _prefix(str(given))
    for file, folders in _files_below(path):
        try:
            content = file.read_bytes()
        except OSError as error:
            raise BundleError(
                f"the data cannot be read ({(error.strerror or '').lower()})", place=(str(file),)
            ) from error
        yaml = file.suffix != ".json"
        document = bundle_yaml(text_of(content, file), str(file)) if yaml else bundle_json(content, str(file))
        if not isinstance(document, dict):
            raise BundleError("the data document is no object", place=(str(file),))
        for key in reversed((*prefix, *folders)):
            document = {key: document}
        require_free(document, str(file))
        _join(data, document, str(file), "data")


def absolute(given: str | Path) -> str:
    """Return what `--data` names, in words that mean the same in every directory."""
    prefix, path = _prefix(str(given))
    return f"{'.'.join(prefix)}:{path.absolute()}" if prefix else str(path.absolute())


def path_given(given: str | Path) -> Path:
    """Return the file or directory that `--data` names, without the place in `data` before it."""
    return _prefix(str(given))[1]


def require_free(data: JsonObject, place: str) -> None:
    """Refuse data under the keys that OPA and policyeng reserve, whichever engine is used.

    Raises:
        BundleError: there is such a key.
    """
    for key in _KEPT:
        if key in data:
            remedy = "call it something else"
            what = f"the key `{key}` of `data` is not free: OPA and policyeng use it"
            raise BundleError(what, place=(place,), remedy=remedy)


def _prefix(given: str) -> tuple[tuple[str, ...], Path]:
    before, colon, after = given.partition(":")
    return (tuple(before.split(".")), Path(after)) if colon and before else ((), Path(given))


def _files_below(path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    if not path.is_dir():
        if not path.exists():
            remedy = "name a file *.json or *.yaml, or a directory of them"
            raise UsageError("the data does not exist", place=(str(path),), remedy=remedy)
        if path.suffix not in GIVEN_SUFFIXES:
            raise BundleError("the data is no JSON or YAML file", place=(str(path),), remedy="name *.json or *.yaml")
        yield path, ()
        return
    files = [file for file in sorted(path.rglob("*")) if file.suffix in GIVEN_SUFFIXES and file.is_file()]
    if not files:
        raise BundleError("the directory holds no data", place=(str(path),), remedy="name one with *.json or *.yaml")
    yield from ((file, file.relative_to(path).parts[:-1]) for file in files)


def _join(holder: JsonObject, document: JsonObject, place: str, where: str) -> None:
    for key, value in document.items():
        standing = holder.get(key)
        if key not in holder:
            holder[key] = value
        elif isinstance(standing, dict) and isinstance(value, dict):
            _join(standing, value, place, f"{where}.{key}")
        else:
            raise BundleError(f"the key `{where}.{key}` is in two data documents", place=(place,))


def bundle_of(origins: Sequence[BundleOrigin], given: Sequence[str | Path] = ()) -> Bundle:
    """Return the bundle of what was opened, with the documents that `given` names.

    Raises:
        BundleError: a module, header or data document is not well formed, or an id or package is used twice.
    """
    read = _read_all(origins)
    for path in given:
        join_given(read.data, path)
    outlines = [
        outline
        for root, tree in read.trees.items()
        for outline in outlines_of(root, tree, {policy.file for policy in read.policies[root]})
    ]
    headed = [policy for policies in read.policies.values() for policy in policies]
    kinds = kinds_of(read.templates, outlines)
    refuse_undeclared(read.constraints, kinds)
    foreign = _add_foreign_policies(outlines, read.data, headed, kinds) if outlines else []
    policies = [*headed, *(entry for policy in foreign for entry in constrained(policy, read.constraints, kinds))]
    policies += _add_left_out(read.left_out, policies)
    azure_policies, azure_notes = _read_azure_policies([origin for origin in origins if origin.azure_policy])
    policies += azure_policies
    own = [origin for origin in origins if not origin.lent]
    rego_v0 = _in_v0(outlines)
    digest = _digest(read.modules, read.others, as_json(read.data), rego_v0)
    framework_text = separate_frameworks(read.data, read.modules)
    return Bundle(
        name=", ".join(origin.name for origin in own),
        revision=", ".join(filter(None, (origin.manifest.revision for origin in own))),
        digest=digest,
        policies=_unique(policies),
        modules=_deduplicate(read.modules),
        data=read.data,
        roots=tuple(origin.root for origin in origins),
        rego_v0=rego_v0,
        lent=frozenset(path.parts[0] for origin in origins if origin.lent for path in origin.tree),
        given=tuple(map(absolute, given)),
        origins=tuple(origins),
        framework_text=framework_text,
        foreign=frozenset(read.foreign),
        lenient=frozenset(read.lenient),
        left_out=tuple(read.left_out),
        azure_notes=azure_notes,
    )


def _read_azure_policies(origins: Sequence[BundleOrigin]) -> tuple[list[Policy], tuple[PolicyNote, ...]]:
    if not origins:
        return [], ()
    from policyeng.bundle.azure_policies import read_policies  # most bundles have none

    return read_policies(origins)


def _add_foreign_policies(
    outlines: Sequence[Outline], data: JsonObject, headed: Iterable[Policy], reviewing: Collection[str]
) -> list[Policy]:
    from policyeng.bundle.external_policies import find_foreign_policies  # most bundles have none

    return find_foreign_policies(outlines, data, {policy.package for policy in headed}, reviewing)


def _add_left_out(left_out: Sequence[LeftOutModule], policies: Iterable[Policy]) -> list[Policy]:
    """Return what modules that do not parse seem to decide: their outcomes are errors, which name the fault."""
    if not left_out:
        return []
    from policyeng.bundle.external_policies import left_out_policies

    return left_out_policies(left_out, {policy.id for policy in policies})


def _in_v0(outlines: Iterable[Outline]) -> frozenset[str]:
    versions: dict[str, bool] = {}
    for outline in outlines:
        if versions.setdefault(str(outline.path), outline.rego_v0) != outline.rego_v0:
            message = f"`{outline.path}` is in two directories, once in Rego v0 and once in v1"
            raise BundleError(message, place=(outline.place,), remedy="rename one of them")
    return frozenset(path for path, v0 in versions.items() if v0)


def _deduplicate(modules: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return modules by path, without modules of equal text, such as copies of Gatekeeper's libraries."""
    first: dict[str, str] = {}
    for path, source in sorted(modules):
        first.setdefault(source, path)
    return tuple((path, source) for source, path in first.items())


class _Read(NamedTuple):
    """The content of all origins, by root where that matters; `others` are Python policies and Gatekeeper's files."""

    trees: dict[Path, Mapping[PurePosixPath, bytes]]
    modules: list[tuple[str, str]]
    others: dict[PurePosixPath, bytes]
    data: JsonObject
    policies: dict[Path, list[Policy]]
    templates: list[ConstraintTemplate]
    constraints: list[Constraint]
    foreign: list[str]
    lenient: list[str]
    left_out: list[LeftOutModule]


def _read_all(origins: Sequence[BundleOrigin]) -> _Read:
    read = _Read({}, [], {}, {}, {}, [], [], [], [], [])
    for origin in origins:
        if origin.azure_policy:
            read.others.update({PurePosixPath(origin.name, path): content for path, content in origin.tree.items()})
            continue
        tree, templates = with_templates(origin.root, origin.tree)
        policies = _read_policies(origin, tree, read)
        modules = [str(path) for path in tree if path.suffix == ".rego"]
        if not (policies or origin.lent):
            read.foreign.extend(modules)
        if _is_lenient(origin, is_foreign=not (policies or origin.lent)):
            read.lenient.extend(modules)
        for path, content in sorted(tree.items()):
            if path.name in DATA_NAMES:
                join_document(read.data, path, content, origin.root)
            elif path.suffix == ".rego":
                read.modules.append((str(path), text_of(content, origin.root / path)))
            elif path.suffix == ".py" or is_gatekeepers(path, content):
                read.others[path] = content
        if not origin.lent:
            read.trees[origin.root] = tree
        read.policies.setdefault(origin.root, []).extend(policies)
        read.templates.extend(templates)
        read.constraints.extend(constraints_of(origin.root, tree))
    return read


def _read_policies(origin: BundleOrigin, tree: dict[PurePosixPath, bytes], read: _Read) -> list[Policy]:
    """Return the policies of ours in a root; of policies of others, take out the modules that do not parse.

    Raises:
        BundleError: a module of ours does not parse.
    """
    try:
        return policies_of(origin.root, tree)
    except BundleError:
        if origin.lent or any(is_ours(path, content) for path, content in tree.items()):
            raise
        from policyeng.bundle.left_out import unreadable_modules  # most modules parse

        left_out = list(unreadable_modules(origin.root, tree, origin.manifest.is_v0))
        if not left_out or len(left_out) == sum(path.suffix == ".rego" for path in tree):
            raise
    for module in left_out:
        read.others[PurePosixPath(module.path)] = tree.pop(PurePosixPath(module.path))
    read.left_out.extend(left_out)
    return policies_of(origin.root, tree)


def _is_lenient(origin: BundleOrigin, *, is_foreign: bool) -> bool:
    """Return whether a builtin that fails is undefined, as for `opa test`, Conftest and Gatekeeper.

    Raises:
        BundleError: a bundle with policies of ours demands it.
    """
    stated = origin.manifest.builtin_errors
    if stated == "undefined" and not is_foreign:
        what = "`builtin_errors` of the manifest is `undefined`, and there are policies of policyeng: they are strict"
        raise BundleError(what, place=(str(origin.root / MANIFEST),), remedy="remove the setting")
    return is_foreign and stated != "error"


def _digest(
    modules: Iterable[tuple[str, str]], others: Mapping[PurePosixPath, bytes], data: bytes, rego_v0: Iterable[str]
) -> str:
    """Return the digest of the content, regardless of the files: an archive that joins documents is the same bundle."""
    parts = {(path, source.encode()) for path, source in modules}
    parts |= {(str(path), content) for path, content in others.items()}
    digest = hashlib.sha256()
    versions = [("v0", path.encode()) for path in sorted(rego_v0)]
    for path, content in (*sorted(parts), ("data", data), *versions):
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _unique(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    seen: dict[str, Policy] = {}
    packages: dict[str, Policy] = {}
    for policy in policies:
        if policy.id in seen:
            places = f"`{seen[policy.id].file}` and `{policy.file}`"
            raise BundleError(f"duplicate policy id `{policy.id}` in {places}", remedy="give one of them another id")
        seen[policy.id] = policy
        own = policy.rules if policy.input_form == "policy" else ()  # foreign rules are read by package
        for package in {rule.rpartition(".")[0] for _, rule in own}:
            if package in packages:  # each would report the denials of both
                places = f"`{packages[package].file}` and `{policy.file}`"
                what = f"two policies share the package `{package.removeprefix('data.')}`, in {places}"
                raise BundleError(what, remedy="give one of them a package of its own")
            packages[package] = policy
    return tuple(sorted(seen.values(), key=lambda policy: policy.id))


#: Bytes as text, one character each, whatever their encoding.
_BYTES = "latin-1"


def pack_bundle(bundle: Bundle) -> bytes:
    """Return a bundle as bytes, the same for the same bundle: the files of its origins, and `data` as joined.

    Raises:
        BundleError: it was made, and not read from files.
    """
    if not bundle.origins:
        raise BundleError("the policies were not read from files", place=(bundle.name,), remedy="load them from files")
    stated: JsonObject = {
        "name": _text(bundle.name),
        "revision": bundle.revision,
        "digest": bundle.digest,
        "lent": sorted(bundle.lent),
        "given": [_text(given) for given in bundle.given],
        "policies": sorted(policy.id for policy in bundle.policies),
        "data": _whole_data(bundle).decode(),
        "origins": [
            {
                "name": _text(origin.name),
                "root": _text(origin.root),
                "lent": origin.lent,
                **({"azure_policy": True} if origin.azure_policy else {}),
                "files": {
                    _text(path): content.decode(_BYTES)
                    for path, content in origin.tree.items()
                    if origin.azure_policy or path.name not in DATA_NAMES
                },
            }
            for origin in bundle.origins
        ],
    }
    return orjson.dumps(stated, option=orjson.OPT_SORT_KEYS)


def _whole_data(bundle: Bundle) -> bytes:
    """Return the data of a bundle with its frameworks, which are separate from it unless a module reads them."""
    if not bundle.framework_text:
        return bundle.data_bytes
    return as_json(bundle.data | {ROOT: orjson.loads(bundle.framework_text)})


def unpack_bundle(content: bytes) -> Bundle:
    """Return the bundle that `packed` gave these bytes, with the same policies active.

    Raises:
        BundleError: this version of policyeng reads another bundle in them, or refuses it.
    """
    stated: JsonObject = orjson.loads(content)
    origins = tuple(_origins(stated["origins"]))
    data = BundleOrigin(
        "data", Path("data"), {PurePosixPath("data.json"): stated["data"].encode()}, Manifest(), lent=True
    )
    whole = bundle_of([*origins, data])
    if whole.digest != stated["digest"]:
        what = f"the policies had the digest `{stated['digest'][:12]}`, and have `{whole.digest[:12]}` here"
        raise BundleError(what, place=(stated["name"],), remedy="use the version of policyeng that they come from")
    named = replace(
        whole,
        name=stated["name"],
        revision=stated["revision"],
        roots=tuple(origin.root for origin in origins),
        lent=frozenset(stated["lent"]),
        given=tuple(stated["given"]),
        origins=(*origins, data),
    )
    wanted = set(stated["policies"])
    return named.only(policy for policy in named.policies if policy.id in wanted)


def _origins(stated: list[JsonObject]) -> Iterator[BundleOrigin]:
    for entry in stated:
        files: Mapping[str, str] = entry["files"]
        tree = {PurePosixPath(path): content.encode(_BYTES) for path, content in files.items()}
        root = Path(entry["root"])
        azure_policy = entry.get("azure_policy", False)
        manifest = Manifest() if azure_policy else manifest_of(tree, root)
        yield BundleOrigin(entry["name"], root, tree, manifest, lent=entry["lent"], azure_policy=azure_policy)


def _text(path: object) -> str:
    """Return a path as JSON can contain it, bytes that are not UTF-8 escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
