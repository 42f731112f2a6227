"""The command line: parse, call, print, exit."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from policyeng.cli.console import say
from policyeng.cli.fast_path import plain_check, print_version
from policyeng.errors import PolicyengError
from policyeng.later import when_used


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; nothing is raised and no traceback is printed."""
    return _run(sys.argv[1:] if arguments is None else arguments)[0]


def _run(arguments: Sequence[str]) -> tuple[int, bool]:
    """The exit code, and whether the run came to its end and left nothing that has to be closed."""
    try:
        code, plain = _called(arguments)
    except PolicyengError as error:
        say(f"policyeng: {error}", error=True)
        return error.exit_code, False
    except KeyboardInterrupt:
        say("policyeng: interrupted", error=True)
        return 130, False
    except BrokenPipeError:  # the reader of our output, such as `head`, went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit
        return 2, False
    except OSError as error:  # a full disk, a closed terminal: what a report meets when it is printed
        say(f"policyeng: {(error.strerror or str(error)).lower()}", error=True)
        return 2, False
    except Exception as error:
        if os.environ.get("POLICYENG_TRACEBACK"):
            raise
        say(f"policyeng: internal error: {type(error).__name__}: {error}", error=True)
        say("policyeng: please report it with the output of a run under POLICYENG_TRACEBACK=1", error=True)
        return 2, False
    return (code if isinstance(code, int) else 0), plain


def _called(arguments: Sequence[str]) -> tuple[object, bool]:
    """What the command returns, and whether it was a plain one: such a run starts no server."""
    if list(arguments) == ["--version"]:
        print_version()
        return 0, True
    plain = plain_check(arguments, os.environ)
    if plain is not None:
        from policyeng.cli.check import check
        from policyeng.cli.environment import IN_FORCE
        from policyeng.engines import OpaOptions

        IN_FORCE.set({})  # a plain run has none, and one before it in this process may have had some
        return check(**plain, trust={}, opa=OpaOptions()), True  # type: ignore[arg-type]  # a test compares what it gives with what typer gives
    gc.enable()  # other commands may run for long
    from policyeng.cli.app import run_typer

    return run_typer(arguments), False


def main() -> None:
    """The console script."""
    gc.disable()  # a plain run makes no cycles, and each collection walks through all that was imported
    when_used("ast", "dis", "fractions", "inspect", "tokenize")
    # What is installed beside us has no say in how documents are read, and looking for it takes time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    code, plain = _run(sys.argv[1:])
    if not plain:
        sys.exit(code)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        sys.exit(code)
    # All is written, and a plain run leaves nothing to close: freeing every object and module one by one would take a
    # tenth of its time. Other runs end as usual, since a private OPA server has to be ended with them.
    os._exit(code)
