"""Decide on changes of a snapshot."""

from __future__ import annotations

from policyeng.admission.admit import admit, list_effective
from policyeng.admission.changes import Changes, changes_of
from policyeng.admission.decide import decided_wholly
from policyeng.admission.decision import AdmissionOptions
from policyeng.admission.session import AdmissionSession

#: The earlier name, which users import.
Basis = AdmissionSession

__all__ = [
    "AdmissionOptions",
    "AdmissionSession",
    "Basis",
    "Changes",
    "admit",
    "changes_of",
    "decided_wholly",
    "list_effective",
]
