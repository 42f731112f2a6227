"""Input formats: detection, conversion of documents to ARM resources, and merging of all inputs into a snapshot.

A format is a module with `SUMMARY`, `SHAPES`, `detect` and `read` that is listed in `FORMATS`; no other code depends on
it. If its documents belong to a workspace that they do not name, it also has `belongs_to_workspace`. If its documents
refer to things that other documents name, it has `names_in`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyeng.later import attributes

if TYPE_CHECKING:
    from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
    from policyeng.sources.arm_resource import is_resource_id
    from policyeng.sources.changes import (
        CHANGE_FORMATS,
        ChangesRead,
        load_changes,
        parse_changes,
        read_changes,
        read_document,
        read_whole,
    )
    from policyeng.sources.context import DocumentContext, normalize_context
    from policyeng.sources.detection import FORMATS
    from policyeng.sources.discovery import EVERYTHING, FileWalk, excluded, resolve_paths
    from policyeng.sources.exemptions_file import ExemptionsRead, exemptions_of, load_exemptions, read_exemptions
    from policyeng.sources.reader import Inputs, ReadDocument, load_snapshot, read_inputs
    from policyeng.sources.saved_report import read_report
    from policyeng.sources.templates import read_parameters

__all__ = [
    "CHANGE_FORMATS",
    "DEFAULT_MAX_BYTES",
    "EVERYTHING",
    "FORMATS",
    "ChangesRead",
    "DocumentContext",
    "ExemptionsRead",
    "FileWalk",
    "Inputs",
    "ReadDocument",
    "excluded",
    "exemptions_of",
    "is_resource_id",
    "load_changes",
    "load_exemptions",
    "load_snapshot",
    "normalize_context",
    "parse_changes",
    "read_changes",
    "read_document",
    "read_exemptions",
    "read_inputs",
    "read_parameters",
    "read_report",
    "read_whole",
    "resolve_paths",
]

__getattr__ = attributes(
    __name__,
    {
        "CHANGE_FORMATS": "changes",
        "ChangesRead": "changes",
        "DEFAULT_MAX_BYTES": "reader",
        "EVERYTHING": "discovery",
        "ExemptionsRead": "exemptions_file",
        "FORMATS": "detection",
        "DocumentContext": "context",
        "Inputs": "reader",
        "ReadDocument": "reader",
        "FileWalk": "discovery",
        "excluded": "discovery",
        "exemptions_of": "exemptions_file",
        "normalize_context": "context",
        "read_parameters": "templates",
        "is_resource_id": "arm_resource",
        "load_changes": "changes",
        "load_exemptions": "exemptions_file",
        "load_snapshot": "reader",
        "parse_changes": "changes",
        "read_report": "saved_report",
        "read_changes": "changes",
        "read_document": "changes",
        "read_exemptions": "exemptions_file",
        "read_inputs": "reader",
        "read_whole": "changes",
        "resolve_paths": "discovery",
    },
)
