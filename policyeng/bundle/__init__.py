"""Declare a policy; read a directory or an archive as a bundle."""

from policyeng.bundle.declaration import Policy, PolicyInput, SnapshotView, policy
from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.reader import Bundle, load_bundle
from policyeng.bundle.verification import Verification

__all__ = ["Bundle", "Policy", "PolicyHeader", "PolicyInput", "SnapshotView", "Verification", "load_bundle", "policy"]
