"""What the reports of every question of `policyeng verify` share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.report.escaping import visible


def text_of_lines(lines: Iterable[str]) -> str:
    """Lines for a reader, in which a terminal obeys nothing and every line is one; tabs are those of quoted sources."""
    return "\n".join(visible(line, keep="\t") for line in lines)


def bundle_object(bundle: Bundle) -> JsonObject:
    """Which bundle it was, for JSON."""
    return {"name": bundle.name, "revision": bundle.revision, "digest": bundle.digest}


def junit_text(root: ET.Element) -> str:
    """JUnit XML without a last newline; what a reader cannot see is written out, for XML cannot carry most of it."""
    for element in root.iter():
        for name, value in element.items():
            element.set(name, visible(value))
        element.text = visible(element.text, keep="\n\t") if element.text else None
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}'
