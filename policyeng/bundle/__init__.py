"""Declare a policy; read a directory as a bundle."""

from policyeng.bundle.declaration import Policy, PolicyInput, SnapshotView, policy
from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.reader import Bundle, load_bundle

__all__ = ["Bundle", "Policy", "PolicyHeader", "PolicyInput", "SnapshotView", "load_bundle", "policy"]
