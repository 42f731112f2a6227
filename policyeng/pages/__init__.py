"""Pages about policies, made from their headers and cases: Markdown for a directory, text for a terminal. Pure."""

from policyeng.pages.index import MARK, directory, index
from policyeng.pages.page import Page, cited

__all__ = ["MARK", "Page", "cited", "directory", "index"]
