"""Run every command once, and print what each returned: for environments in which something is not installed.

`python every_command.py MODULES FILE`, with modules that count as not installed (comma-separated, or empty) and a
snapshot. It imports policyeng and what policyeng imports, nothing else.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence

for hidden in filter(None, sys.argv[1].split(",")):
    sys.modules[hidden] = None  # type: ignore[assignment]  # Python then reports that it is not installed

from typer.core import TyperGroup  # noqa: E402  # modules are hidden before anything is imported
from typer.main import get_command  # noqa: E402

from policyeng.cli import run  # noqa: E402
from policyeng.cli.app import app  # noqa: E402

SNAPSHOT = sys.argv[2]
_ONE = [SNAPSHOT, "--select", "AML-NET-001"]
#: By command, the arguments with which it gets to its work. What is not here runs without any.
ARGUMENTS = {
    "check": [
        _ONE,
        [*_ONE, "--engine", "opa", "--opa-url", "http://127.0.0.1:9"],
        *([*_ONE, "--format", name] for name in ("html", "csv", "sarif", "oscal", "junit", "markdown", "github")),
        [*_ONE, "--suggest"],
        [*_ONE, "--framework", "mcsb-v1"],
    ],
    "report": [[SNAPSHOT]],
    "admit": [["/subscriptions/1/resourceGroups/g/providers/T/t/n", "--snapshot", SNAPSHOT]],
    "diff": [[SNAPSHOT, SNAPSHOT]],
    "test": [["--select", "AML-NET-001"]],
    "verify": [["--select", "AML-NET-001", "--examples", "1"]],
    "serve": [["--snapshot", SNAPSHOT]],
    "policies show": [["AML-NET-001"]],
    "policies new": [["network/some_policy"]],
    "frameworks show": [["mcsb-v1"]],
    "bundle build": [["--output", "built.tar.gz"], ["--output", "signed.tar.gz", "--signing-key", SNAPSHOT]],
    "bundle sign": [["policies", "--signing-key", SNAPSHOT]],
    "bundle verify": [["built.tar.gz"], ["built.tar.gz", "--verification-key", SNAPSHOT]],
    "audit run": [
        ["--input", SNAPSHOT, "--estate", "e", "--store", database]
        for database in ("sqlite:///store.db", "postgresql://localhost/none")
    ],
    "audit report": [["production"]],
    "audit history": [["production"]],
    "audit ahead": [["--input", SNAPSHOT]],
    "audit replay": [["1"]],
    "audit evidence": [["1", "--output", "pack.tar.gz"], ["--verify", "pack.tar.gz"]],
    "audit prune": [["--keep-days", "1"]],
    "schema": [["snapshot"]],
    "snapshot collect": [["--subscription", "11111111-1111-1111-1111-111111111111"]],
}


def names_of(command: object, above: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield the words of each command that is no group."""
    if not isinstance(command, TyperGroup):
        yield [*above]
        return
    for name in command.commands:
        yield from names_of(command.commands[name], [*above, name])


def main() -> None:
    """Run them in this process, one after the other."""
    results = {}
    for words in names_of(get_command(app)):
        for arguments in ARGUMENTS.get(" ".join(words), [[]]):
            printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = run([*words, *arguments])
            printed.seek(0)
            results[" ".join([*words, *arguments])] = [code, printed.read()]
    sys.stdout.write(json.dumps(results))


main()
