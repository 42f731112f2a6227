"""Data documents of a bundle, joined as OPA joins them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from policyeng.bundle.document_parsing import bundle_json, bundle_yaml
from policyeng.bundle.files import text_of
from policyeng.errors import BundleError, UsageError
from policyeng.models import JsonObject

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
