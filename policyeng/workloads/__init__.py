"""What runs where: workloads derived from jobs, deployments and services, and declared ones."""

from policyeng.workloads.declared import Workload
from policyeng.workloads.derive import derive

__all__ = ["Workload", "derive"]
