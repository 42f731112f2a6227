"""The documents of a snapshot made ready for judging, each as JSON and under a name of its own.

What is no JSON, or a second of one name, is a problem and hides no other.
"""

from __future__ import annotations

import orjson

from policyeng.errors import InputError
from policyeng.models import Document, Problem, Snapshot
from policyeng.strict.json_text import require_readable


def documents_of(snapshot: Snapshot) -> tuple[list[tuple[Document, bytes]], list[Problem]]:
    """Documents with their canonical JSON, in their order, and a problem for each that cannot be judged."""
    ready: list[tuple[Document, bytes]] = []
    problems: list[Problem] = []
    names: set[str] = set()
    for document in snapshot.documents:
        if document.name in names:
            message = "two documents have this name; remove one of them"
            problems.append(Problem(level="error", message=message, place=document.name))
            continue
        names.add(document.name)
        try:
            text = orjson.dumps(document.content, option=orjson.OPT_SORT_KEYS)
            require_readable(document.content, text, document.name)
        except (TypeError, InputError) as error:
            message = f"the document cannot be judged: {error}"
            problems.append(Problem(level="error", message=message, place=document.name))
        else:
            ready.append((document, text))
    return ready, problems
