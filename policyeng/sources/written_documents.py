"""Documents as they were written, without regard to Azure resources: what Conftest checks in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath

from policyeng.errors import InputError
from policyeng.later import lazy_pattern
from policyeng.models import Document, Problem
from policyeng.parsing.json_places import lines_of
from policyeng.parsing.json_text import parse_json
from policyeng.sources.discovery import STDIN, display
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES

#: Suffixes of files in directories that are read for their resources only.
NEVER_WRITTEN = (*SOURCE_CODE, *(suffix for suffix in JSON_SUFFIXES if suffix != ".json"))

#: Formats that Conftest reads and policyeng does not, by suffix or by the beginning of the name.
_OTHER_SUFFIXES = lazy_pattern(
    r"\.(cue|dockerfile|dockerignore|edn|env|gitignore|hcl|hocon|ini|jsonc|jsonnet|properties|spdx|textproto|tf|tfvars"
    r"|toml|vcl|xml)"
)
_OTHER_NAMES = ("codeowners", "dockerfile", "jenkinsfile", "nginx.conf", ".env")


def read_documents(file: str, content: bytes, max_bytes: int) -> list[Document]:
    """Return the documents of one file: those of a YAML stream, the elements of a list, or the file as one document.

    Raises:
        InputError: the file has another format, or the strict JSON or YAML reader refuses it.
    """
    if _is_other_format(file):
        remedy = "convert it to JSON or YAML, for example with `conftest parse FILE`"
        raise InputError("only JSON and YAML documents are checked", place=(file,), remedy=remedy)
    if _is_yaml(file, content):
        from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # YAML is loaded only where there is some

        read = parse_kubernetes_yaml(content, file, max_bytes=max_bytes)
        if len(read) > 1:
            placed = [(document.value, document.places[""][0]) for document in read]
        else:
            placed = _list_elements(read[0].value, lambda pointers: [read[0].places[entry][0] for entry in pointers])
    else:
        value = parse_json(content, file, max_bytes=max_bytes)
        placed = _list_elements(value, lambda pointers: lines_of(content, pointers))
    return [
        Document(file=file, index=index, content=content_, line=line) for index, (content_, line) in enumerate(placed)
    ]


def _is_yaml(file: str, content: bytes) -> bool:
    """Check whether the suffix is that of YAML; standard input is YAML unless it begins like JSON."""
    if file == STDIN:
        return not content.lstrip().startswith((b"{", b"["))
    return file.lower().endswith(YAML_SUFFIXES)


def _list_elements(value: object, lines: Callable[[Sequence[str]], list[int]]) -> list[tuple[object, int]]:
    """Return the elements of a list with their lines, because Conftest checks each one separately."""
    if not isinstance(value, list):
        return [(value, 1)]
    return list(zip(value, lines([f"/{index}" for index in range(len(value))]), strict=True))


def _is_other_format(file: str) -> bool:
    """Check whether a file has a format that Conftest reads and policyeng does not."""
    path = PurePath(file.lower())
    return file != STDIN and (
        _OTHER_SUFFIXES.fullmatch(path.suffix) is not None
        or any(path.name == name or path.name.startswith(f"{name}.") for name in _OTHER_NAMES)
    )


def warn_about_skipped(paths: Iterable[str | Path]) -> list[Problem]:
    """Return a warning for every directory with files that Conftest would check and policyeng does not."""
    problems = []
    for entry in paths:
        if str(entry) == "-" or not Path(entry).is_dir():
            continue
        names = sorted(
            str(Path(folder) / name) for folder, _, names in os.walk(entry) for name in names if _is_other_format(name)
        )
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"only JSON and YAML documents are checked, not `{display(Path(names[0]))}`{more}"
            problems.append(Problem(level="warning", message=message, place=display(Path(entry))))
    return problems
