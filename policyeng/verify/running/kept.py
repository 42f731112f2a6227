"""Failures kept for the next run: a directory with a JSON file for each, safe to delete."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from policyeng.errors import InputError, UsageError
from policyeng.verify.example_documents import document_of, example_of, text_of
from policyeng.verify.laws.law import Violation
from policyeng.verify.running.trying import Blamed

_REMEDY = "name another directory with `--database`, or keep none with `--no-database`"


@dataclass(frozen=True)
class Kept:
    """A failure of an earlier run, and its file."""

    path: Path
    bundle: str
    blamed: Blamed


def require_usable(folder: Path) -> None:
    """Refuse a directory before a long run would find out; it is not made yet where it is missing.

    Raises:
        UsageError: it is none, or cannot be listed, or nothing can be written into it.
    """
    try:
        whole = folder.absolute()
        there = next(path for path in (whole, *whole.parents) if path.exists())
        if there == whole:
            next(whole.iterdir(), None)
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"failures cannot be kept there: {reason}", place=(str(folder),), remedy=_REMEDY) from error


def kept_in(folder: Path) -> Iterator[Kept]:
    """The failures that a directory holds, in the order of their names; none where there is no directory.

    Raises:
        InputError: a file is none of ours, or cannot be read.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_bytes())
            law, policy, message = document["law"], document["policy"], document["message"]
            example = example_of(document["example"])
            blamed = Blamed(law, Violation(message, policy), example, document["chance"])
            yield Kept(path, document["bundle"], blamed)
        except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            remedy = "remove it, or name another directory with `--database`"
            raise InputError("no failure that a run has kept", place=(str(path),), remedy=remedy) from error


def keep(folder: Path, bundle: str, blamed: Blamed) -> Path:
    """Write a failure into a directory, which is made where it is missing; its file, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    digest = hashlib.sha256(json.dumps([bundle, *blamed.kind]).encode()).hexdigest()[:12]
    path = folder / f"{blamed.law}-{digest}.json"
    document = {
        "law": blamed.law,
        "policy": blamed.violation.policy,
        "message": blamed.violation.message,
        "bundle": bundle,
        "chance": blamed.chance,
        "example": document_of(blamed.example),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        try:
            beside.write_text(text_of(document), encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot keep a failure: {reason}", place=(str(path),), remedy=_REMEDY) from error
    return path
