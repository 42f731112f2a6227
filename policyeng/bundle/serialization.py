"""Carry a bundle to another process, machine or year: all that judges as bytes, which open as the same bundle.

It is JSON and no archive of `policyeng bundle build`: that one is for OPA, too, which has one tree of files and knows
nothing of what `--data` gave, and its bytes depend on the version of zlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import orjson

from policyeng.bundle.assembling import bundle_of
from policyeng.bundle.files import DATA_NAMES, BundleOrigin
from policyeng.bundle.framework_mappings import ROOT
from policyeng.bundle.loader import Bundle, as_json
from policyeng.bundle.manifest import Manifest, manifest_of
from policyeng.errors import BundleError
from policyeng.frozen import replace
from policyeng.models import JsonObject

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
                "files": {
                    _text(path): content.decode(_BYTES)
                    for path, content in origin.tree.items()
                    if path.name not in DATA_NAMES
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
    """Return the bundle that `packed` gave these bytes, with the policies in force that were.

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
        yield BundleOrigin(entry["name"], root, tree, manifest_of(tree, root), lent=entry["lent"])


def _text(path: object) -> str:
    """Return a path as JSON can hold it, bytes that are not UTF-8 escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
