"""A private OPA server for one bundle: a process on a loopback port that ends with this process."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

import orjson

from policyeng.engines.opa_options import OpaOptions
from policyeng.engines.opa_transport import OpaConnection
from policyeng.errors import EngineError
from policyeng.frozen import replace

#: The shell waits for the end of its input, which this process causes however it ends. It then ends OPA, removes the
#: folder that this process could not remove (`$0`), and ends the rest of its process group.
_GUARD = """\
"$@" >&2 &
server=$!
echo "$server"
exec 2>&-
read -r ended
kill -KILL "$server"
wait "$server"
/bin/rm -rf -- "$0"
kill -KILL 0
"""
#: Only requests with the token are allowed. The token is passed in a file that only this user can read.
_AUTHORIZATION = """\
package system.authz

default allow := false

allow if input.identity == "{token}"
"""
#: The prefix of module paths in our bundles.
FOLDER = re.compile(r"(?<!\S)\S*/m[0-9]+/")
#: Characters of the log in a message.
_LONGEST = 1000
_ATTEMPTS = 5
_READY_SECONDS = 30.0
#: Time for a killed process to disappear. If the kernel blocks it for longer, waiting does not help.
_END_SECONDS = 5.0


class PrivateServer:
    """A running server; `close` stops it.

    Args:
        binary: the `opa` program.
        files: an OPA bundle, whose `data.system.policyeng` is the secret.
        secret: identifies this server, because another server could get the port first.
        timeout: seconds, as in `OpaOptions`.

    Attributes:
        connection: the connection to this server.
        pid: the id of the OPA process; 0 if it did not start.
    """

    def __init__(self, binary: Path, files: Mapping[PurePosixPath, bytes], secret: str, timeout: float) -> None:
        self._secret = secret
        token = secrets.token_urlsafe(32)
        self._log: deque[str] = deque(maxlen=20)
        with tempfile.TemporaryDirectory(prefix="policyeng-opa-") as folder:  # only this user may read it
            root = Path(folder) / "bundle"
            _write(root, {**files, PurePosixPath("authorization.rego"): _AUTHORIZATION.format(token=token).encode()})
            self._start(binary, root, OpaOptions(token=token, timeout=timeout))

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._reader.is_alive()

    def close(self) -> None:
        """Stop the process immediately; it has no state to save."""
        self.connection.close()
        self._end()

    def _start(self, binary: Path, root: Path, options: OpaOptions) -> None:
        for _ in range(_ATTEMPTS):
            port = _find_free_port()
            self._spawn(binary, root, port)
            self.connection = OpaConnection(_at(options, port))
            try:
                if self._answers():
                    return
            except BaseException:
                self.close()
                raise
            self.close()
            if not any("address already in use" in line for line in self._log):
                break
        output = " ".join(filter(None, map(_read_log_line, self._log))) or "it ended without a message"
        raise EngineError(
            f"could not decide: the private OPA server does not start: {output[:_LONGEST]}",
            place=(str(binary),),
            remedy="check the policies with `opa check --bundle`",
        )

    def _spawn(self, binary: Path, root: Path, port: int) -> None:
        arguments = [str(binary), "run", "--server", f"--addr=127.0.0.1:{port}", "--bundle", "--skip-version-check"]
        arguments += ["--authentication=token", "--authorization=basic", "--log-level=error", "--log-format=json"]
        arguments += ["--optimize-store-for-read-speed", str(root)]
        try:
            self._guard = subprocess.Popen(  # noqa: S603  # the program that the user names
                ["/bin/sh", "-c", _GUARD, str(root.parent), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # An interrupt from the terminal is for this process, which then ends OPA: the group is killed as one.
                start_new_session=True,
                cwd="/",
                env={"HOME": str(root)},  # OPA reads its options from the environment too
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise EngineError(f"cannot start the private OPA server: {error}", remedy="use `--opa-url`") from None
        assert self._guard.stdout is not None  # noqa: S101  # a pipe was asked for
        self.pid = int(self._guard.stdout.readline() or 0)  # none when the shell was killed already
        self._killing = threading.Lock()
        self._reader = threading.Thread(target=self._read, args=(self._guard,), daemon=True)
        self._reader.start()
        self._watcher = threading.Thread(target=self._watch, args=(self._guard,), daemon=True)
        self._watcher.start()

    def _read(self, guard: subprocess.Popen[str]) -> None:
        """Keep the last lines of the log; the pipe ends with the process."""
        for line in guard.stderr or ():
            self._log.append(line.strip())

    def _watch(self, guard: subprocess.Popen[str]) -> None:
        """End OPA when its shell ends, because then nothing else would end it; no other process has the pipe."""
        for _ in guard.stdout or ():
            pass
        self._kill(guard)

    def _kill(self, guard: subprocess.Popen[str]) -> None:
        """Kill shell and OPA as one group, once: the number is the group's until the shell was waited for."""
        if self._killing.acquire(blocking=False):
            with suppress(OSError):  # it has ended
                os.killpg(guard.pid, signal.SIGKILL)

    def _answers(self) -> bool:
        """Wait until our server responds with its bundle loaded; return False if it has ended."""
        last = time.monotonic() + _READY_SECONDS
        while time.monotonic() < last:
            with suppress(EngineError):  # it is not there yet, or another has the port
                if self.connection.ask("system/policyeng", {}).get("result") == self._secret:
                    return True
            self._reader.join(0.01)
            if not self.alive:
                return False
        return False

    def _end(self) -> None:
        """Kill the shell and OPA if they are running; all waits have a timeout."""
        guard = self._guard
        self._kill(guard)
        self._watcher.join(_END_SECONDS)
        with suppress(subprocess.TimeoutExpired):
            guard.wait(_END_SECONDS)
        self._reader.join(_END_SECONDS)
        readers = ((guard.stdin, None), (guard.stdout, self._watcher), (guard.stderr, self._reader))
        for stream, reader in readers:
            if stream is not None and not (reader and reader.is_alive()):  # to close it would wait for its reader
                stream.close()


def binary_of(options: OpaOptions) -> Path:
    """Return the `opa` program: the named one, or from the `PATH`, or from a checkout.

    Raises:
        EngineError: it is not found.
    """
    if options.binary is not None:
        named = shutil.which(options.binary.resolve())
        if named is None:
            raise EngineError(
                "no such program", place=(str(options.binary),), remedy="name an executable `opa` program"
            )
        return Path(named)
    found = shutil.which("opa") or _of_checkout()
    if found is None:
        remedy = "install OPA (https://www.openpolicyagent.org), name it with `--opa-binary`, or use `--opa-url`"
        raise EngineError("could not decide: no `opa` program found to start a private server", remedy=remedy)
    return Path(found)


def _of_checkout() -> str | None:
    """Return the program that `make test` builds, or None if this is not a checkout."""
    root = Path(__file__).resolve().parents[2]
    return shutil.which(root / ".tools" / "bin" / "opa") if (root / "pyproject.toml").is_file() else None


def version_of(binary: Path) -> str:
    """Return the version that the program reports."""
    try:
        output = subprocess.run(  # noqa: S603  # the program that the user names
            [str(binary), "version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"the program does not report its version: {error}", place=(str(binary),)) from None
    return output.partition("Version:")[2].split("\n")[0].strip()


def _read_log_line(line: str) -> str:
    """Return the message of a log line without our folders; empty if it is not an error."""
    try:
        entry = orjson.loads(line)
        line = f"{entry['msg']} {entry.get('err', '')}" if entry["level"] == "error" else ""
    except (ValueError, TypeError, KeyError):  # OPA also writes plain lines
        pass
    return FOLDER.sub("", line).strip()


def _write(root: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _at(options: OpaOptions, port: int) -> OpaOptions:
    return replace(options, url=f"http://127.0.0.1:{port}")
