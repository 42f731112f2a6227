"""The built-in bundle as the wheel brings it: without the texts of its files, which are there too, and their place."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from policyeng import prebuilt
from policyeng.bundle import analysis
from policyeng.bundle.discovery import compiled_module
from policyeng.bundle.files import contents_of, text_of

if TYPE_CHECKING:
    from policyeng.bundle.analysis import ModuleAnalysis
    from policyeng.bundle.loader import Bundle


def load(root: Path) -> Bundle | None:
    """Return the built-in bundle as of when the wheel was built; None where there is none, or where files differ.

    Args:
        root: the directory of the built-in policies.
    """
    if not prebuilt.is_installed() or (contents := contents_of(root)) is None:
        return None
    parts = (prebuilt.digest_of(contents),)
    if (stored := prebuilt.load("bundle", parts)) is None:
        return None
    code = prebuilt.load("python", parts, prebuilt.this_python())
    bundle: Bundle = _BundleReader(stored, root, contents, pickle.loads(code) if code else {}).load()  # noqa: S301  # of this package
    analysis.set_loader(partial(_add_analyses, bundle, parts))
    return bundle


def _add_analyses(bundle: Bundle, parts: tuple[str, ...]) -> None:
    if stored := prebuilt.load("analyses", parts):
        analyses = pickle.loads(stored)  # noqa: S301  # of this package
        for (path, source), known in zip(bundle.modules, analyses, strict=True):
            analysis.add_analysis(source, path in bundle.rego_v0, known)


def write(folder: Path, bundle: Bundle, analyses: Iterable[ModuleAnalysis]) -> tuple[str, ...]:
    """Write the built-in bundle for `load`, and return what the code of its Python policies follows from.

    Args:
        folder: the folder `compiled`.
        bundle: as read, with what is worked out of it.
        analyses: of its modules.

    Raises:
        ValueError: the result would name the directory that it was read from, or there are links in that.
    """
    (root,) = bundle.roots
    if (contents := contents_of(root)) is None:
        raise ValueError(f"{root} has links, or cannot be read")
    parts = (prebuilt.digest_of(contents),)
    vars(bundle).pop("data_bytes", None)  # made of `data` faster than read
    buffer = io.BytesIO()
    _BundleWriter(buffer, root, bundle).dump(bundle)
    if os.fsencode(root) in buffer.getvalue():
        raise ValueError(f"the stored bundle names {root}")
    prebuilt.write(folder, "bundle", parts, buffer.getvalue())
    prebuilt.write(folder, "analyses", parts, pickle.dumps(list(analyses), protocol=5))
    return parts


class _BundleWriter(pickle.Pickler):
    """Writes a bundle with references to files in the place of their contents and names."""

    def __init__(self, buffer: io.BytesIO, root: Path, bundle: Bundle) -> None:
        super().__init__(buffer, protocol=5)
        self._root = root
        self._prefix = f"{root}{os.sep}"
        (origin,) = bundle.origins
        self._contents = {content: str(path) for path, content in origin.tree.items()}
        self._texts = {text: path for path, text in bundle.modules}
        self._code = module_code(bundle)

    def persistent_id(self, value: Any) -> tuple[str, str] | None:  # anything that a bundle has
        """Return the kind of a reference and the path of its file, None for what is written as it is."""
        if isinstance(value, PurePath):
            # Versions of Python differ in how they pickle paths.
            return (
                ("path", value.relative_to(self._root).as_posix()) if value.is_absolute() else ("relative", str(value))
            )
        if isinstance(value, bytes):
            if value in self._code:
                return "code", self._code[value]
            return ("content", self._contents[value]) if value in self._contents else None
        if isinstance(value, str):
            if value in self._texts:
                return "text", self._texts[value]
            if value.startswith(self._prefix):
                return "place", value.removeprefix(self._prefix).replace(os.sep, "/")
        return None


class _BundleReader(pickle.Unpickler):
    """Reads what `_BundleWriter` has written, for the directory in which the files are here."""

    def __init__(self, stored: bytes, root: Path, contents: Mapping[str, bytes], code: Mapping[str, bytes]) -> None:
        super().__init__(io.BytesIO(stored))
        self._values: dict[str, Callable[[str], object]] = {
            "code": code.get,
            "content": contents.__getitem__,
            "path": root.__truediv__,
            "place": lambda path: f"{root}{os.sep}{path.replace('/', os.sep)}",
            "relative": PurePosixPath,
            "text": lambda path: text_of(contents[path], root / path),
        }

    def persistent_load(self, reference: tuple[str, str]) -> object:
        """Return what a reference names."""
        kind, path = reference
        return self._values[kind](path)


def module_code(bundle: Bundle) -> dict[bytes, str]:
    """Return the paths of the Python policies by their code, as `marshal` has it."""
    policies = (*bundle.policies, *bundle.idle)
    return {code: file for file, code in filter(None, map(compiled_module, policies))}
