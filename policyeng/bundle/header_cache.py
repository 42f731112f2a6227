"""What an earlier run read from the same text: validated headers, code of Python policies, analyses of Rego modules."""

from __future__ import annotations

import hashlib
import marshal
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from policyeng import __version__, cache
from policyeng.bundle.analysis import ModuleAnalysis, add_analysis, analysis_of
from policyeng.bundle.header import PolicyHeader, header_from_metadata, parse_header
from policyeng.bundle.manifest import bundle_yaml
from policyeng.errors import BundleError

#: The folders of this package with the code that headers and bundles follow from.
READ_BY = ("bundle", "facts", "models", "parsing", "rego")


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
        self._key = cache.key_of("headers", __version__, sys.version, cache.state_of_code(*READ_BY), *own)
        parts = cache.load(self._key)
        self._known: dict[str, Any] = pickle.loads(parts[0]) if parts else {}  # noqa: S301  # from a private file, its digest verified
        self._fresh = False

    def of_metadata(self, text: str, place: str) -> PolicyHeader | None:
        """Return the header in the YAML text of a METADATA block; None for a library module.

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
            found: ModuleHeader = stored
            return found
        from policyeng.bundle.python_headers import read_header  # what earlier runs read needs no syntax tree

        stated = read_header(content, place)
        if is_twin and stated.fields:
            remedy = "write `@policy()` alone"
            raise BundleError("the twin of a Rego policy repeats the header", place=(place,), remedy=remedy)
        fields = digest_of(stated.fields)
        header = None if is_twin else parse_header(dict(stated.fields), place)
        read = ModuleHeader(header, stated.has_applies, fields)
        self._add(digest, read)
        return read

    def code_of(self, content: bytes, place: str) -> bytes | None:
        """Return the code of a Python module as `marshal` has it; None for one that Python refuses."""
        digest = f"code:{place}:{hashlib.sha256(content).hexdigest()}"
        if digest not in self._known:
            try:
                self._add(digest, marshal.dumps(compile(content, place, "exec")))
            except (SyntaxError, ValueError):
                return None
        code: bytes = self._known[digest]
        return code

    def analysis(self, source: str, rego_v0: bool | None, place: str) -> ModuleAnalysis:
        """Return the analysis of a Rego module; see `analysis_of`.

        Raises:
            BundleError: it does not parse.
        """
        digest = f"analysis:{rego_v0}:{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"
        if digest in self._known:
            analysis: ModuleAnalysis = self._known[digest]
            add_analysis(source, rego_v0, analysis)
        else:
            analysis = analysis_of(source, rego_v0, place)
            self._add(digest, analysis)
        return analysis

    def keep(self) -> None:
        """Store what is new for later runs."""
        if self._fresh:
            with suppress(TypeError, AttributeError, pickle.PicklingError):  # such as a value of a Python policy
                cache.store(self._key, [pickle.dumps(self._known)])

    def _of(self, text: str, read: Callable[[], PolicyHeader | None]) -> PolicyHeader | None:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest not in self._known:
            self._add(digest, read())
        header: PolicyHeader | None = self._known[digest]
        return header

    def _add(self, digest: str, read: object) -> None:
        self._known[digest] = read
        self._fresh = True
