"""Pages about policies, made from their headers and cases: Markdown for a directory, text for a terminal. Pure."""

from policyeng.policy_docs.index import MARK, directory, index
from policyeng.policy_docs.page import PolicyPage, cited

__all__ = ["MARK", "PolicyPage", "cited", "directory", "index"]
