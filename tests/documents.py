"""The founding documents and the catalogue of policies next to the checkout, as text that can be searched."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
SEEDS = SHARED / "seeds"
CATALOGUE = SHARED / "policies.md"
PEERS = SHARED / "research" / "peer_rules.md"

_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u00a0": " "})
_ROW = re.compile(r"^\| ([A-Z]+-\d{3}) \| (.+?) \|.*\| (critical|high|medium|low|info) \| ([RP]) \|$", re.MULTILINE)
_PEER = re.compile(r"^\| ([A-Z]+-\d{2}) \|", re.MULTILINE)


class Row(NamedTuple):
    """A policy as the catalogue has it; `language` is R for Rego or P for Python, a recommendation."""

    id: str
    title: str
    severity: str
    language: str


class Cited(NamedTuple):
    """What the source of a policy names.

    Attributes:
        sections: of documents by their first three digits; a document without a section has an empty one.
        peers: ids of rules of others.
        rest: words that are neither.
    """

    sections: tuple[tuple[str, str], ...]
    peers: tuple[str, ...]
    rest: tuple[str, ...]


def needed(path: Path) -> Path:
    """A path next to the checkout; the test is skipped where it is missing."""
    if not path.exists():
        pytest.skip(f"`{path.name}` next to the checkout is missing")
    return path


def plain(text: str) -> str:
    """A text without its markup, its line breaks and its letter case."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.translate(_CURLY))
    text = re.sub(r"(?<!\w)_|_(?!\w)|[*`]", "", text)
    text = re.sub(r"[#|>]|<br */?>", " ", text)
    return " ".join(text.split()).lower()


@cache
def documents() -> dict[str, str]:
    """The founding documents by their first three digits."""
    return {path.name[:3]: path.read_text(encoding="utf-8") for path in sorted(needed(SEEDS).glob("*.txt"))}


@cache
def sections(document: str) -> frozenset[str]:
    """The lines of a document that could be headings, without marks and numbers in front and colons behind."""
    lines = documents()[document].splitlines()
    return frozenset(re.sub(r"^(\d+\.|-) ", "", plain(line)).removesuffix(":") for line in lines)


@cache
def rows() -> tuple[Row, ...]:
    """The policies of the catalogue, in its order; their ids as the bundle writes them."""
    found = _ROW.findall(needed(CATALOGUE).read_text(encoding="utf-8"))
    return tuple(Row(f"AML-{number}", *rest) for number, *rest in found)


@cache
def peers() -> frozenset[str]:
    """The ids of the canonical rules of others."""
    return frozenset(_PEER.findall(needed(PEERS).read_text(encoding="utf-8")))


def cited(source: str) -> Cited:
    """What the source of a policy names: `001 "Section" and 2 "Part"; 003 (a remark); CMP-02`."""
    source = re.sub(r"\([^()\"]*\)(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)", " ", source)
    document, found, rest = "", [], []
    named: tuple[str, ...] = ()
    for token in re.findall(r'"[^"]+"|[^\s",;]+', source):
        if token.startswith('"'):
            found.append((document, token.strip('"')))
        elif re.fullmatch(r"\d{3}", token):
            document = token
            found.append((document, ""))
        elif re.fullmatch(r"[A-Z]+-\d\d", token):
            named += (token,)
        elif not re.fullmatch(r"\d+|and", token):
            rest.append(token)
    return Cited(tuple(found), named, tuple(rest))
