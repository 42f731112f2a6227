"""Documents that come in: detect the format, read it into ARM shape, say what could not be read, join into a snapshot.

A format is one module with `SUMMARY`, `detect` and `read`, named in `FORMATS`; nothing else knows about it. One whose
documents lie within a workspace that they do not name has `belongs_to_workspace`, too, and one whose documents name
things of each other has `names_in`.
"""

from __future__ import annotations

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
