"""The command line: parse, call, print, exit."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from policyeng.cli.console import print_line
from policyeng.cli.fast_path import plain_check, print_version
from policyeng.errors import PolicyengError

#: What shells report for a process that SIGPIPE ended.
_BROKEN_PIPE = 141


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; raises nothing and prints no traceback."""
    return _run(sys.argv[1:] if arguments is None else arguments)[0]


def _run(arguments: Sequence[str]) -> tuple[int, bool]:
    """Return the exit code, and whether the run completed and left nothing to close."""
    try:
        code, plain = _call_with_extras(arguments)
    except PolicyengError as error:
        print_line(f"policyeng: {error}", error=True)
        return error.exit_code, False
    except KeyboardInterrupt:
        print_line("policyeng: interrupted", error=True)
        return 130, False
    except BrokenPipeError:  # the reader of the output, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at exit
        return _BROKEN_PIPE, False
    except OSError as error:  # such as a full disk or a closed terminal while printing
        print_line(f"policyeng: {(error.strerror or str(error)).lower()}", error=True)
        return 2, False
    except Exception as error:
        if os.environ.get("POLICYENG_TRACEBACK"):
            raise
        print_line(f"policyeng: internal error: {type(error).__name__}: {error}", error=True)
        print_line("policyeng: please report this with the output of a run with POLICYENG_TRACEBACK=1", error=True)
        return 2, False
    return (code if isinstance(code, int) else 0), plain


def _call_with_extras(arguments: Sequence[str]) -> tuple[object, bool]:
    """Return what `_call` does. Of every command, a library of an extra that is not installed is a usage error."""
    try:
        return _call(arguments)
    except ModuleNotFoundError as error:
        from policyeng.cli.extras import explain_missing_module

        if (explained := explain_missing_module(error)) is None:
            raise
        raise explained from None


def _call(arguments: Sequence[str]) -> tuple[object, bool]:
    """Return the result of the command, and whether it was a plain check, which starts no server."""
    if list(arguments) in (["--version"], ["-V"]):
        print_version()
        return 0, True
    plain = plain_check(arguments, os.environ)
    if plain is not None:
        from policyeng.cli.check import CheckOptions, check
        from policyeng.cli.fast_path import IN_FORCE

        IN_FORCE.set({})  # a plain run uses none, but an earlier run in this process may have
        return check(CheckOptions(**plain)), True  # type: ignore[arg-type]  # a test compares what it gives with what typer gives
    gc.enable()  # other commands may run for a long time
    from policyeng.cli.app import run_typer

    return run_typer(arguments), False


def main() -> None:
    """Run the console script."""
    gc.disable()  # a plain run creates no cycles, and each collection would traverse all imported modules
    # Other installed packages must not affect how documents are read, and looking for plugins takes time.
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
    # A plain run leaves nothing to close, and freeing every object and module would take a tenth of its time.
    # Other runs exit as usual, since they may have to stop a private OPA server.
    os._exit(code)
