"""Declare a policy; read a directory or an archive as a bundle."""

from typing import TYPE_CHECKING

from policyeng.bundle.header import PolicyHeader
from policyeng.bundle.loader import Bundle, load_bundle
from policyeng.bundle.policy_types import Policy, PolicyInput, SnapshotView, policy
from policyeng.later import attributes

if TYPE_CHECKING:
    from policyeng.bundle.signature_policy import Verification

__all__ = ["Bundle", "Policy", "PolicyHeader", "PolicyInput", "SnapshotView", "Verification", "load_bundle", "policy"]

__getattr__ = attributes(__name__, {"Verification": "signature_policy"})  # most runs verify nothing
