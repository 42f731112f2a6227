"""What runs where: workloads derived from jobs, deployments and services, and declared ones."""

from policyeng.workloads.builder import Workload
from policyeng.workloads.derive import Derivation, Derived, derivation, derive

__all__ = ["Derivation", "Derived", "Workload", "derivation", "derive"]
