"""What an earlier run read from the same text: validated headers, and analyses of Rego modules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import orjson

from policyeng import __version__, cache
from policyeng.bundle.analysis import Analysis, analysis_of, keep
from policyeng.bundle.header import (
    Consulted,
    Judged,
    PolicyHeader,
    header_from_metadata,
    parse_header,
)
from policyeng.bundle.header_parts import RelatedResource
from policyeng.bundle.parsing import bundle_yaml
from policyeng.bundle.python_headers import read_header
from policyeng.bundle.remediation import Patch, Remediation
from policyeng.errors import BundleError
from policyeng.models import JsonObject, Severity


class ModuleHeader(NamedTuple):
    """What the text of a Python module states: its header, None for the twin of a Rego policy.

    Attributes:
        fields: digest of the fields, to compare them with those that the module declares once it has run.
    """

    header: PolicyHeader | None
    has_applies: bool
    fields: str

    def is_of(self, fields: Mapping[str, object]) -> bool:
        """Return whether these are the fields that the text states."""
        return digest_of(fields) == self.fields


def digest_of(fields: Mapping[str, object]) -> str:
    """Return the digest of the fields of a header as Python writes them."""
    return hashlib.sha256(repr(dict(fields)).encode("utf-8", "surrogatepass")).hexdigest()


class Headers:
    """The headers and analyses of one tree of files: each is looked up by the very text that it was read from."""

    def __init__(self, tree: Mapping[PurePosixPath, bytes]) -> None:
        texts = [(str(path), hashlib.sha256(content).hexdigest()) for path, content in sorted(tree.items())]
        own = (part for path, digest in texts if path.endswith((".rego", ".py")) for part in (path, digest))
        self._key = cache.key_of("headers", __version__, _code(), *own)
        parts = cache.load(self._key)
        self._known: dict[str, Any] = orjson.loads(parts[0]) if parts else {}
        self._fresh = False

    def of_metadata(self, text: str, place: str) -> PolicyHeader | None:
        """The header in the YAML text of a METADATA block; None for a library module.

        Raises:
            BundleError: it is not well formed.
        """
        return self._of(f"metadata:{text}", lambda: header_from_metadata(bundle_yaml(text, place), place))

    def of_module(self, content: bytes, place: str, *, is_twin: bool) -> ModuleHeader:
        """Return what `@policy(...)` states in the text of a Python module.

        Raises:
            BundleError: the module or its header is not well formed, or it is the twin of a Rego policy and has one.
        """
        digest = f"module:{is_twin}:{hashlib.sha256(content).hexdigest()}"
        if (stored := self._known.get(digest)) is not None:
            header = None if is_twin else _rebuilt(self._known[stored["fields"]])
            return ModuleHeader(header, stored["has_applies"], stored["fields"])
        stated = read_header(content, place)
        if is_twin and stated.fields:
            remedy = "write `@policy()` alone"
            raise BundleError("the twin of a Rego policy repeats the header", place=(place,), remedy=remedy)
        fields = digest_of(stated.fields)
        header = None if is_twin else parse_header(dict(stated.fields), place)
        if header is None or self._kept(fields, header):
            self._known[digest] = {"fields": fields, "has_applies": stated.has_applies}
            self._fresh = True
        return ModuleHeader(header, stated.has_applies, fields)

    def analysis(self, source: str, rego_v0: bool | None, place: str) -> Analysis:
        """Return the analysis of a Rego module; see `analysis_of`.

        Raises:
            BundleError: it does not parse.
        """
        digest = f"analysis:{rego_v0}:{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"
        if digest in self._known:
            analysis = Analysis.load(self._known[digest])
            keep(source, rego_v0, analysis)
        else:
            analysis = analysis_of(source, rego_v0, place)
            self._known[digest] = analysis.dump()
            self._fresh = True
        return analysis

    def keep(self) -> None:
        """Store what is new for later runs."""
        if self._fresh:
            cache.store(self._key, [orjson.dumps(self._known)])

    def _of(self, text: str, read: Callable[[], PolicyHeader | None]) -> PolicyHeader | None:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest in self._known:
            stored = self._known[digest]
            return None if stored is None else _rebuilt(stored)
        header = read()
        self._kept(digest, header)
        return header

    def _kept(self, digest: str, header: PolicyHeader | None) -> bool:
        """Keep a header, if JSON can: a tuple among the values of a Python policy, for example, it cannot."""
        stored = None if header is None else header.model_dump(mode="json", exclude_unset=True)
        if stored is not None and repr(_rebuilt(stored)) != repr(header):
            return False
        self._known[digest] = stored
        self._fresh = True
        return True


def _rebuilt(stored: JsonObject) -> PolicyHeader:
    """The header of a validated one's JSON, without validating it again."""
    fields = dict(stored)
    fields["severity"] = Severity(stored["severity"])
    fields["judges"] = tuple(_judged(entry) for entry in stored["judges"])
    if "related_resources" in stored:
        fields["related_resources"] = tuple(
            RelatedResource.model_construct(**entry) for entry in stored["related_resources"]
        )
    for name in ("inspects", "insensitive_to", "refines"):
        if name in stored:
            fields[name] = tuple(stored[name])
    if isinstance(stored.get("clock"), list):
        fields["clock"] = tuple(stored["clock"])
    if "monotone_in" in stored:
        ways = stored["monotone_in"].items()
        fields["monotone_in"] = {place: tuple(way) if isinstance(way, list) else way for place, way in ways}
    if "consults" in stored:
        fields["consults"] = tuple(_consulted(entry) for entry in stored["consults"])
    if stored.get("remediation") is not None:
        remediation = stored["remediation"]
        made = {"patches": tuple(map(_patch, remediation["patches"]))} if "patches" in remediation else {}
        fields["remediation"] = Remediation.model_construct(**{**remediation, **made})
    if "controls" in stored:
        fields["controls"] = {framework: tuple(ids) for framework, ids in stored["controls"].items()}
    return PolicyHeader.model_construct(**fields)


def _judged(entry: JsonObject) -> Judged:
    if "where" not in entry:
        return Judged.model_construct(**entry)
    where = {pointer: tuple(values) for pointer, values in entry["where"].items()}
    return Judged.model_construct(**{**entry, "where": where})


def _patch(entry: JsonObject) -> Patch:
    fields: JsonObject = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Patch.model_construct(**fields)


def _consulted(entry: JsonObject) -> Consulted:
    fields: JsonObject = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Consulted.model_construct(**fields)


def _code() -> str:
    """Which code reads them: names, sizes and times of change of its files, so that editing it is seen at once."""
    package = Path(__file__).parents[1]
    seen = []
    for folder in ("bundle", "facts", "models", "rego", "strict"):
        with os.scandir(package / folder) as files:
            for file in files:
                if file.name.endswith(".py"):
                    status = file.stat()
                    seen.append(f"{folder}/{file.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(seen))
