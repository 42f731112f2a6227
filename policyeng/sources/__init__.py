"""Documents that come in: detect the format, read it into ARM shape, say what could not be read, join into a snapshot.

A format is one module with `SUMMARY`, `detect` and `read`, named in `FORMATS`; nothing else knows about it. One whose
documents lie within a workspace that they do not name has `belongs_to_workspace`, too, and one whose documents name
things of each other has `names_in`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyeng.later import attributes

if TYPE_CHECKING:
    from policyeng.sources.arm_entry import is_resource_id
    from policyeng.sources.baseline_report import read_baseline
    from policyeng.sources.changes import CHANGE_FORMATS, ChangesRead, parse_changes, read_changes, read_whole
    from policyeng.sources.exemptions_file import ExemptionsRead, exemptions_of, load_exemptions, read_exemptions
    from policyeng.sources.formats import FORMATS
    from policyeng.sources.inputs import Inputs, Read, load_snapshot, read_inputs
    from policyeng.sources.opening import Skipped
    from policyeng.sources.surroundings import Given, given
    from policyeng.sources.template_parameters import given_parameters
    from policyeng.sources.walking import EVERYTHING, Walk, excluded, whole_paths
    from policyeng.strict.json_text import DEFAULT_MAX_BYTES

__all__ = [
    "CHANGE_FORMATS",
    "DEFAULT_MAX_BYTES",
    "EVERYTHING",
    "FORMATS",
    "ChangesRead",
    "ExemptionsRead",
    "Given",
    "Inputs",
    "Read",
    "Skipped",
    "Walk",
    "excluded",
    "exemptions_of",
    "given",
    "given_parameters",
    "is_resource_id",
    "load_exemptions",
    "load_snapshot",
    "parse_changes",
    "read_baseline",
    "read_changes",
    "read_exemptions",
    "read_inputs",
    "read_whole",
    "whole_paths",
]

__getattr__ = attributes(
    __name__,
    {
        "CHANGE_FORMATS": "changes",
        "ChangesRead": "changes",
        "DEFAULT_MAX_BYTES": "inputs",
        "EVERYTHING": "walking",
        "ExemptionsRead": "exemptions_file",
        "FORMATS": "formats",
        "Given": "surroundings",
        "Inputs": "inputs",
        "Read": "inputs",
        "Skipped": "opening",
        "Walk": "walking",
        "excluded": "walking",
        "exemptions_of": "exemptions_file",
        "given": "surroundings",
        "given_parameters": "template_parameters",
        "is_resource_id": "arm_entry",
        "load_exemptions": "exemptions_file",
        "load_snapshot": "inputs",
        "parse_changes": "changes",
        "read_baseline": "baseline_report",
        "read_changes": "changes",
        "read_exemptions": "exemptions_file",
        "read_inputs": "inputs",
        "read_whole": "changes",
        "whole_paths": "walking",
    },
)
