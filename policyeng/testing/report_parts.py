"""The parts that all reports of `policyeng verify` and `policyeng test` share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from policyeng.bundle import Bundle
from policyeng.models import JsonObject
from policyeng.report.escaping import visible


def text_of_lines(lines: Iterable[str]) -> str:
    """Join lines into a text in which control characters are escaped; tabs stay, because quoted sources have them."""
    return "\n".join(visible(line, keep="\t") for line in lines)


def bundle_object(bundle: Bundle) -> JsonObject:
    """Return the name, revision and digest of a bundle for JSON."""
    return {"name": bundle.name, "revision": bundle.revision, "digest": bundle.digest}


def junit_text(root: ET.Element) -> str:
    """Return JUnit XML without a final newline; characters that XML cannot contain are escaped."""
    for element in root.iter():
        for name, value in element.items():
            element.set(name, visible(value))
        element.text = visible(element.text, keep="\n\t") if element.text else None
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}'
