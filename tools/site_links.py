"""Name files outside of docs by their paths: mkdocs, which calls this, publishes docs alone."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\((\.\.?/[^)#]*|\w+)(#[^)]*)?\)")
DOCS = Path(__file__).resolve().parents[1] / "docs"


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Replace each link that leaves docs, or that leads to a directory, by its text and the path."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        path = normpath(folder / link[2])
        inside = path.startswith("docs/") and not (DOCS.parent / path).is_dir()
        return link[0] if inside else f"{link[1]} (`{path}`)"

    return _LINK.sub(replaced, markdown)
