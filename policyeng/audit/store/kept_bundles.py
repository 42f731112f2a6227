"""Bundles as contents: everything that was judged with, from which the same bundle is read again.

It is JSON and no archive of `policyeng bundle build`: that one leaves out what `--data` gave, and its bytes depend on
the version of zlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import orjson

from policyeng.audit.store.digests import canonical
from policyeng.bundle import Bundle
from policyeng.bundle.manifest import Manifest, manifest_of
from policyeng.bundle.origins import Origin
from policyeng.bundle.reader import bundle_of
from policyeng.bundle.tree import DATA_NAMES
from policyeng.errors import StoreError
from policyeng.models import JsonObject

#: Bytes as text, one character each, whatever their encoding.
_BYTES = "latin-1"


def kept_bundle(bundle: Bundle) -> bytes:
    """The content of a bundle: the files of each of its origins, and `data` as it was joined from all of them."""
    return canonical(
        {
            "name": bundle.name,
            "revision": bundle.revision,
            "digest": bundle.digest,
            "lent": sorted(bundle.lent),
            "given": list(bundle.given),
            "policies": sorted(policy.id for policy in bundle.policies),
            "data": bundle.data_bytes.decode(),
            "origins": [
                {
                    "name": origin.name,
                    "root": str(origin.root),
                    "lent": origin.lent,
                    "files": {
                        str(path): content.decode(_BYTES)
                        for path, content in origin.tree.items()
                        if path.name not in DATA_NAMES
                    },
                }
                for origin in bundle.origins
            ],
        }
    )


def bundle_from(content: bytes) -> Bundle:
    """The bundle of a content, with the policies in force that were.

    Raises:
        StoreError: this version of policyeng reads another bundle out of it.
        BundleError: this version refuses it.
    """
    stored = orjson.loads(content)
    origins = tuple(_origins(stored["origins"]))
    data = Origin("data", Path("data"), {PurePosixPath("data.json"): stored["data"].encode()}, Manifest(), lent=True)
    whole = bundle_of([*origins, data])
    if whole.digest != stored["digest"]:
        what = f"the stored policies have the digest `{whole.digest[:12]}`, and had `{stored['digest'][:12]}`"
        raise StoreError(what, remedy="use the version of policyeng that made the run")
    named = replace(
        whole,
        name=stored["name"],
        revision=stored["revision"],
        roots=tuple(origin.root for origin in origins),
        lent=frozenset(stored["lent"]),
        given=tuple(stored["given"]),
        origins=(*origins, data),
    )
    wanted = set(stored["policies"])
    return named.only(policy for policy in named.policies if policy.id in wanted)


def _origins(stated: list[JsonObject]) -> Iterator[Origin]:
    for entry in stated:
        files: Mapping[str, str] = entry["files"]
        tree = {PurePosixPath(path): content.encode(_BYTES) for path, content in files.items()}
        root = Path(entry["root"])
        yield Origin(entry["name"], root, tree, manifest_of(tree, root), lent=entry["lent"])
