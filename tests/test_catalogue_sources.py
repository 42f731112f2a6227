"""What policies cite is there: documents, sections, quoted words, rules of others; and the catalogue is the bundle."""

from __future__ import annotations

import re

import pytest

from policyeng.bundle import Bundle, Policy, load_bundle
from tests.documents import SHARED, cited, documents, peers, plain, rows, sections

POLICIES = load_bundle().policies
EACH = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.id)
#: The numbers of policies from documents. Below them, policies keep the number of the rule of others that they carry
#: over; above them are those from neither.
OWN = range(101, 201)


def _number(policy: Policy) -> int:
    return int(policy.id.rpartition("-")[2])


def test_the_catalogue_can_be_read() -> None:
    """Fifty-eight rows, each id once."""
    assert len(rows()) == 58
    assert len({row.id for row in rows()}) == 58


def test_the_bundle_is_the_catalogue(bundle: Bundle) -> None:
    """Every row is a policy, and every policy from documents is a row."""
    own = {policy.id for policy in bundle.policies if _number(policy) in OWN}

    assert own == {row.id for row in rows()}


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if _number(policy) in OWN], ids=lambda one: one.id)
def test_title_and_severity_are_the_catalogues(policy: Policy) -> None:
    """Letter by letter."""
    (row,) = [row for row in rows() if row.id == policy.id]

    assert (policy.header.title, policy.header.severity.value) == (row.title, row.severity)


@EACH
def test_the_source_names_a_document_or_a_rule_of_others(bundle: Bundle, policy: Policy) -> None:
    """Everything that a source cites is known: documents, rules of others, sources of the facts."""
    source = cited(policy.header.source)

    assert source.sections or source.peers or policy.id == f"AML-{policy.header.source}"
    assert set(source.rest) <= set(bundle.facts.document["sources"])
    if SHARED.is_dir():
        assert {document for document, _ in source.sections} <= set(documents())
        assert set(source.peers) <= peers()


@EACH
def test_the_cited_sections_exist(policy: Policy) -> None:
    """A section is a line of its document, whatever the markup."""
    missing = [
        (document, section)
        for document, section in cited(policy.header.source).sections
        if section and plain(section) not in sections(document)
    ]

    assert missing == []


@EACH
def test_the_quoted_sentences_are_in_the_cited_documents(policy: Policy) -> None:
    """Word by word, whatever the markup; `...` and `[...]` leave words out."""
    named = {document for document, _ in cited(policy.header.source).sections} or set(documents())
    texts = [plain(documents()[document]) for document in sorted(named)]
    quotes = re.findall(r'"([^"]+)"', policy.header.description)
    missing = [
        quote
        for quote in quotes
        if not any(all(plain(part).strip(" .,") in text for part in re.split(r"\[?\.\.\.\]?", quote)) for text in texts)
    ]

    assert missing == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('001 "A (b)"; 003', ((("001", ""), ("001", "A (b)"), ("003", "")), (), ())),
        ('002 "A", 3 "B" and 7 "C"', ((("002", ""), ("002", "A"), ("002", "B"), ("002", "C")), (), ())),
        ("001 (a remark), 003; CMP-05, CMP-16", ((("001", ""), ("003", "")), ("CMP-05", "CMP-16"), ())),
        ('001 "A" (see "B")', ((("001", ""), ("001", "A"), ("001", "B")), (), ("(see", ")"))),
        ("NET-01; azure-retired-list", ((), ("NET-01",), ("azure-retired-list",))),
    ],
)
def test_sources_are_read(source: str, found: object) -> None:
    """Sections belong to the document before them."""
    assert cited(source) == found
