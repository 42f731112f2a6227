"""Parser for a plain `policyeng check ...` without typer, which takes longer to load than the check itself.

Only unambiguous command lines with the options of `plain_options` are parsed here. For all others, including those with
mistakes or with `POLICYENG_` variables, the result is None and typer parses them. A test checks that they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from policyeng import __version__
from policyeng.cli.console import print_line
from policyeng.cli.plain_options import FLAGS, PATH_LISTS, TEXT_LISTS, TEXTS

#: Variables that do not set an option of `check`.
_ELSEWHERE = {"POLICYENG_CACHE_DIR", "POLICYENG_TRACEBACK"}


def print_version() -> None:
    """Print the version of policyeng."""
    print_line(f"policyeng {__version__}")


def plain_check(arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, object] | None:
    """Parse the arguments of `check`; None if typer has to parse the command line.

    Args:
        arguments: the command line without the program.
        environ: the environment.
    """
    if list(arguments[:1]) != ["check"] or any(_needs_typer(name) for name in environ):
        return None
    inputs: list[str] = []
    single: dict[str, object] = {}
    listed: dict[str, list[object]] = {}
    rest = iter(arguments[1:])
    for word in rest:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.strip():
            return None
        if not word.startswith("-") or word == "-":
            inputs.append(word)
            continue
        if word in FLAGS:
            single[FLAGS[word]] = True
            continue
        value = value if equals else next(rest, "")
        if not value.strip() or value.startswith("-"):
            return None
        if name in TEXTS:
            single[TEXTS[name]] = value
        elif name in TEXT_LISTS:
            listed.setdefault(TEXT_LISTS[name], []).append(value)
        elif name in PATH_LISTS and Path(value).exists():
            listed.setdefault(PATH_LISTS[name], []).append(Path(value))
        else:
            return None
    if not inputs and "from_" in single:  # it may list the formats
        return None
    return {**({"inputs": inputs} if inputs else {}), **single, **listed}


def _needs_typer(variable: str) -> bool:
    return variable.startswith(("POLICYENG_", "_POLICYENG_")) and variable not in _ELSEWHERE


#: For each environment variable that sets an option of this run: the option and its value. Settings are not included.
IN_FORCE: ContextVar[Mapping[str, tuple[str, object]]] = ContextVar("IN_FORCE", default={})  # noqa: B039  # read only

#: Options with an environment variable but without a configuration key. The token of an OPA server has no option, only
#: the variable and a file.
ENVIRONMENT = (
    "policy",
    "snapshot",
    "data",
    "no-exemptions",
    "from",
    "scope",
    "workspace",
    "parameters",
    "show-skipped",
    "no-gitignore",
    "all-files",
    "format",
    "group-by",
    "owner-tag",
    "as-of",
    "engine",
    "jobs",
    "baseline",
    "traceback",
    "cache-dir",
    "no-cache",
    "opa-url",
    "opa-token",
    "opa-token-file",
    "opa-ca-file",
    "opa-client-cert",
    "opa-timeout",
    "opa-binary",
    "opa-bundle",
    "opa-push",
)
