"""Decide on changes of a snapshot."""

from __future__ import annotations

from policyeng.admission.admit import admit
from policyeng.admission.basis import Basis
from policyeng.admission.changes import Changes, changes_of
from policyeng.admission.decide import AdmissionOptions, decided_wholly

__all__ = ["AdmissionOptions", "Basis", "Changes", "admit", "changes_of", "decided_wholly"]
