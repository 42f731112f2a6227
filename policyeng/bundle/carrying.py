"""Carry a bundle to another process, machine or year: all that judges as bytes, which open as the same bundle.

An archive of `policyeng bundle build` is for OPA, too, which has one tree of files. This keeps what a bundle was read
from apart, so that every bundle that judges can be carried, with what `--data` names and with its selection.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import orjson

from policyeng.bundle.building import archive_bytes
from policyeng.bundle.data_documents import join_given
from policyeng.bundle.manifest import manifest_of
from policyeng.bundle.origins import Origin, open_origins
from policyeng.bundle.reader import Bundle, bundle_of
from policyeng.bundle.tar_members import Limits, members_of
from policyeng.errors import BundleError
from policyeng.models import JsonObject

_INDEX = PurePosixPath("carried.json")
_GIVEN = PurePosixPath("given.json")
_PLACE = "carried bundle"
#: What was read as a bundle is not too large to be one.
_LIMITS = Limits(archive=1 << 40, total=1 << 40, member=1 << 40, members=1 << 40)
_GZIP = 31  # zlib's word for a gzip header and its checksum


def packed(bundle: Bundle) -> bytes:
    """A bundle as bytes, the same for the same bundle; its files are read once more.

    Raises:
        BundleError: they are gone, or no longer those that the bundle was read from.
    """
    own = bundle.roots[:-1] if bundle.lent else bundle.roots
    origins = open_origins(own)
    document: JsonObject = {}
    for given in bundle.given:
        join_given(document, given)
    if bundle_of(origins, joined=document).digest != bundle.digest:
        place = ", ".join(map(str, own))
        remedy = "load them again"
        raise BundleError("the policies have changed since they were loaded", place=(place,), remedy=remedy)
    origins = [origin for origin in origins if origin.tree]
    index: JsonObject = {
        "name": _text(bundle.name),
        "revision": bundle.revision,
        "digest": bundle.digest,
        "given": [_text(given) for given in bundle.given],
        "inForce": [policy.id for policy in bundle.policies],
        "origins": [
            {"name": _text(origin.name), "root": _text(origin.root), "lent": origin.lent} for origin in origins
        ],
    }
    files = {_INDEX: orjson.dumps(index), _GIVEN: orjson.dumps(document, option=orjson.OPT_SORT_KEYS)}
    for number, origin in enumerate(origins):
        files |= {PurePosixPath(str(number)) / path: content for path, content in origin.tree.items()}
    return archive_bytes(files)


def unpacked(content: bytes) -> Bundle:
    """The bundle that `packed` gave these bytes.

    Raises:
        BundleError: the bytes are damaged, or this version of policyeng reads another bundle in them.
    """
    try:
        files = members_of(zlib.decompress(content, _GZIP), _PLACE, _LIMITS).files
        index: JsonObject = orjson.loads(files[_INDEX])
        document: JsonObject = orjson.loads(files[_GIVEN])
    except (zlib.error, KeyError, orjson.JSONDecodeError) as error:
        remedy = "carry it anew"
        raise BundleError(f"the bytes are damaged ({error})", place=(_PLACE,), remedy=remedy) from None
    whole = bundle_of(list(_origins(index["origins"], files)), joined=document)
    if whole.digest != index["digest"]:
        what = f"the digest was `{index['digest'][:12]}`, and the content has `{whole.digest[:12]}`"
        raise BundleError(what, place=(_PLACE,), remedy="open it with the version of policyeng that it comes from")
    whole = replace(whole, name=index["name"], revision=index["revision"], given=tuple(index["given"]))
    in_force = set(index["inForce"])
    return whole.only(policy for policy in whole.policies if policy.id in in_force)


def _text(path: object) -> str:
    """A path as JSON can hold it: it is only to be told of where the bundle is opened."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _origins(entries: list[JsonObject], files: Mapping[PurePosixPath, bytes]) -> Iterator[Origin]:
    trees: list[dict[PurePosixPath, bytes]] = [{} for _ in entries]
    for path, content in files.items():
        if path not in (_INDEX, _GIVEN):
            trees[int(path.parts[0])][PurePosixPath(*path.parts[1:])] = content
    for entry, tree in zip(entries, trees, strict=True):
        root = Path(entry["root"])
        yield Origin(entry["name"], root, tree, manifest_of(tree, root), lent=entry["lent"])
