"""The command line as a program that starts at once: a process that has imported it all forks for each run.

Each run is a process with its own arguments, folder, environment and streams, as `python -m policyeng` is; a server,
which its caller ends with a signal, is started in the usual way.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

ROOT = Path(__file__).parents[1]
#: What runs on the side of the caller, with nothing but the standard library.
CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as client:
    client.connect(sys.argv[1])
    socket.send_fds(client, [b"0"], [0, 1, 2])
    client.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode())
    client.shutdown(socket.SHUT_WR)
    code = client.recv(1)
sys.exit(code[0] if code else 70)
"""


def write_program(path: Path) -> None:
    """Write an executable that is `policyeng`."""
    client = f'"{sys.executable}" -IS -c \'{CLIENT}\' "{_listening()}" "$@"'
    usual = f'exec "{sys.executable}" -m policyeng "$@"'
    path.write_text(f'#!/bin/sh\ncase "$1" in serve) {usual};; esac\nexec {client}\n', encoding="utf-8")
    path.chmod(0o755)


@cache
def _listening() -> Path:
    """Where the process listens, which is started when it is first needed."""
    folder = mkdtemp(prefix="policyeng-warm-")
    path = Path(folder, "socket")
    environ = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    line = [sys.executable, "-m", "tests.warm", str(path)]
    process = subprocess.Popen(line, cwd=ROOT, env=environ, stdout=subprocess.PIPE)  # until the end
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    atexit.register(_end, process, path)
    return path


def _end(process: subprocess.Popen[bytes], path: Path) -> None:
    process.terminate()
    process.wait()
    path.unlink()
    path.parent.rmdir()


def _serve(path: str) -> None:
    """Fork for each requested run."""
    from policyeng.bundle import load_bundle
    from policyeng.engines.embedded import compile_rego
    from tests.command import policyeng as command

    compile_rego(load_bundle())
    for words in ("check", "policies list", "diff"):  # for what they import
        command(*words.split(), *[str(ROOT / "samples/workspaces/compliant.json")] * (2 if words == "diff" else 1))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"ready\n")
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                os._exit(_respond(connection))
            connection.close()


def _respond(connection: socket.socket) -> int:
    """Run a request in a further process, and return how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    text = b"".join(iter(lambda: connection.recv(65536), b""))
    arguments, folder, environ = json.loads(text)
    process = os.fork()
    if process == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        os._exit(_run(arguments))
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(bytes([code if code >= 0 else 128 - code]))
    return 0


def _run(arguments: list[str]) -> int:
    """What `policyeng` does from its start to its end."""
    from policyeng.cli import main

    sys.argv = ["policyeng", *arguments]
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
    ended = 0
    try:
        main()
    except SystemExit as ending:
        ended = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter does at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return ended


if __name__ == "__main__":
    _serve(sys.argv[1])
