"""Communicate with an OPA server through its Python client, and translate its errors.

The client retries, follows redirects, and reads proxies, certificates and passwords from the environment. A verdict
must not depend on these, so they are turned off, except for proxies.
"""

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson

from policyeng.engines.opa_query import OpaOptions
from policyeng.errors import EngineError, UsageError
from policyeng.models import JsonObject
from policyeng.rego import EvaluationError

if TYPE_CHECKING:
    from requests import Response

#: The longest wait for a connection in seconds, even if the timeout is longer.
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = (401, 403)
_CHECK_URL = "check that the URL is that of an OPA server"
_SLOW = "check whether it is overloaded, or increase `--opa-timeout`"
#: Messages of OpenSSL versions about a server that responds in plain text.
_ERRNO = re.compile(r"^.*\[Errno -?[0-9]+\] ", re.MULTILINE)
_NO_TLS = re.compile(r"wrong.version.number|http.request|packet.length.too.long|record.layer.failure|unknown.protocol")


class OpaRefusedError(EngineError):
    """An error for a request that OPA rejected; `code` and `text` are from OPA."""

    def __init__(self, code: str, text: str, place: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"could not decide: the OPA server rejects the request: {text}", place=(place,))


class OpaConnection:
    """A connection to one server, for one thread at a time.

    Raises:
        UsageError: the URL is not valid, or an option does not apply to it.
        EngineError: from every method, if the server cannot be reached or its response cannot be used.
    """

    def __init__(self, options: OpaOptions) -> None:
        from requests.utils import get_environ_proxies

        scheme, host, port, root = _endpoint(options)
        self.url = f"{scheme}://{host}:{port}{root}"
        self._timeout = options.timeout
        self._is_sent = False
        verify = str(options.ca_file) if options.ca_file else True
        try:
            from opa_client import OpaClient

            self._client = OpaClient(
                host=host,
                port=port,
                version=f"{root.lstrip('/')}/v1".lstrip("/"),
                ssl=verify if scheme == "https" else False,
                cert=str(options.client_cert) if options.client_cert else None,
                token=options.token or None,
                retries=0,
                timeout=(min(options.timeout, _CONNECT_SECONDS), options.timeout),
            )
            session = self._client._session
            session.trust_env = False
            session.proxies = {} if _is_loopback(host) else get_environ_proxies(self.url)
            session.max_redirects = 0
            session.hooks["response"].append(self._admit)
            self._send, session.send = session.send, self._send_request
        except (AttributeError, ImportError, KeyError, TypeError, ValueError) as error:
            what = f"the Python client of OPA cannot be used: {type(error).__name__}: {error}"
            remedy = "install a version of `opa-python-client` that policyeng supports"
            raise EngineError(what, place=(self.url,), remedy=remedy) from None

    def _send_request(self, *arguments: Any, **named: Any) -> Any:
        """Send a request that the client has prepared; what fails before is no fault of the server."""
        self._is_sent = True
        return self._send(*arguments, **named)

    def close(self) -> None:
        """Close the sockets."""
        self._client.close_connection()

    def query(self, path: str, document: JsonObject, *, is_strict: bool = True) -> JsonObject:
        """Return the response for a path below `data`, with `provenance`, and any `result`.

        Args:
            path: below `data`.
            document: the input.
            is_strict: a builtin that fails is an error, and not undefined.

        Raises:
            EvaluationError: a policy failed.
        """
        with self._translate_errors():
            parameters = {"strict-builtin-errors": str(is_strict).lower(), "provenance": "true"}
            answer = self._client.query_rule(document, path, query_params=parameters)
        return self._object(answer)

    def put_module(self, identity: str, source: str) -> None:
        """Add or replace a module; the same text again costs the server nothing."""
        with self._translate_errors():
            self._client.update_policy_from_string(source, quote(identity), rego_compat=False)

    def put_document(self, path: str, document: JsonObject) -> None:
        """Add or replace a document below `data`."""
        with self._translate_errors():
            self._client.update_or_create_data(document, quote(path))

    def delete_document(self, path: str) -> None:
        """Remove a document below `data`."""
        with self._translate_errors():
            self._client.delete_data(quote(path))

    def _object(self, answer: object) -> JsonObject:
        if not isinstance(answer, dict):
            raise self._error("its response is not a JSON object", _CHECK_URL)
        return answer

    def _admit(self, response: Response, **_: object) -> None:
        """Turn every unsuccessful response into an error, before the client discards its body."""
        if response.status_code < 300:
            return
        try:
            raise self._refusal(response)
        finally:
            response.close()

    def _refusal(self, response: Response) -> EngineError | EvaluationError:
        status = response.status_code
        if response.is_redirect:
            host = urlsplit(response.headers.get("location", "")).netloc or "elsewhere"
            return self._error(f"it responds with a redirect to `{host}`", "use the URL to which it redirects")
        if status in _UNAUTHORIZED:
            return self._error(f"it denies access ({status})", "use a token that can read `data` and write policies")
        body = _body(response)
        code, text, file, line = _parse_error(body)
        if status == 500 and code.startswith("eval_"):
            return EvaluationError(code, text, file, line)
        if body and status < 500 and status != 404:
            return OpaRefusedError(code, f"{file}:{line}: {text}" if file else text, self.url)
        return self._error(f"it responds with {status}{f': {text}' if text else ''}", "see the log of the server")

    def _error(self, message: str, remedy: str) -> EngineError:
        return EngineError(f"could not decide with the OPA server: {message}", place=(self.url,), remedy=remedy)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the errors of the HTTP library, which the client does not handle."""
        self._is_sent = False
        try:
            yield
        except (EngineError, EvaluationError):
            raise
        except Exception as error:
            if self._is_sent:
                raise self._translated(error) from None
            what = "could not decide: the request for the OPA server cannot be written"
            remedy = "leave out the values that JSON does not have"
            raise EngineError(f"{what}: {type(error).__name__}: {error}", place=(self.url,), remedy=remedy) from None

    def _translated(self, error: Exception) -> EngineError:
        """Return the error for a fault of a request that was sent."""
        from requests import exceptions

        if isinstance(error, exceptions.SSLError):
            return self._untrusted(_root(error))
        if isinstance(error, exceptions.Timeout):
            return self._error("it does not respond in time", _SLOW)
        if isinstance(error, ValueError):  # and JSONDecodeError
            return self._error("its response is not JSON", _CHECK_URL)
        if isinstance(error, OSError):  # and the errors of requests
            if _is_silence(error):
                return self._error(f"it sent nothing for {self._timeout:g} s during its response", _SLOW)
            return self._error(f"the connection fails: {_root(error)}", "check that it is running and reachable")
        # The client has many kinds of errors for responses that are not from OPA.
        return self._error("its response is not from an OPA server", _CHECK_URL)

    def _untrusted(self, reason: str) -> EngineError:
        if _NO_TLS.search(reason):
            remedy = f"use `http://{urlsplit(self.url).netloc}`, or check that the port uses TLS"
            return self._error("it does not use TLS", remedy)
        remedy = "name the authority of its certificate with `--opa-ca-file`"
        return self._error(f"its certificate is not trusted: {reason}", remedy)


def _endpoint(options: OpaOptions) -> tuple[str, str, int, str]:
    """Return the scheme, host, port and root path of a URL."""
    remedy = "write, for example, `https://opa.example.com:8181`"
    try:
        parts = urlsplit(options.url)
        port = parts.port
    except ValueError:
        raise UsageError("the URL of the OPA server has no valid host and port", remedy=remedy) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the URL of the OPA server is not an http or https URL", remedy=remedy)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        message = "the URL of the OPA server has parts other than a host, a port and a path"
        raise UsageError(message, remedy="pass the token in `POLICYENG_OPA_TOKEN` or `--opa-token-file`")
    for file in (options.ca_file, options.client_cert):
        if file is not None and parts.scheme != "https":
            raise UsageError(f"`{file}` applies only to an https URL", remedy="use `https://`")
        if file is not None and not file.is_file():
            raise UsageError("no such file", place=(str(file),), remedy="name a PEM file")
    if not options.timeout > 0:
        raise UsageError(f"`{options.timeout}` is not a timeout", remedy="use a number of seconds greater than 0")
    if not (options.token.isascii() and options.token.isprintable() and " " not in options.token):
        raise UsageError("the token for the OPA server has invalid characters", remedy="write it on one line")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts.scheme, host, port or {"http": 80, "https": 443}[parts.scheme], parts.path.rstrip("/")


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "[::1]") or host.startswith("127.")


def _body(response: Response) -> JsonObject:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _parse_error(body: JsonObject) -> tuple[str, str, str, int]:
    """Return code, text, file and line of OPA's error document, from its first detail if there is one."""
    details = body.get("errors")
    first = details[0] if isinstance(details, list) and details else None
    if not isinstance(first, dict):
        return str(body.get("code", "")), str(body.get("message", "")), "", 0
    found = first.get("location")
    location = found if isinstance(found, dict) else {}
    line = location.get("row")
    file = str(location.get("file", ""))
    return str(first.get("code", "")), str(first.get("message", "")), file, line if isinstance(line, int) else 0


def _innermost(error: BaseException) -> BaseException:
    while True:
        inner = getattr(error, "reason", None) or next((arg for arg in error.args if isinstance(arg, Exception)), None)
        if not isinstance(inner, BaseException):
            return error
        error = inner


def _is_silence(error: BaseException) -> bool:
    """Check whether a response timed out in the middle, which the HTTP library reports as a failed connection."""
    from urllib3.exceptions import ReadTimeoutError  # loaded with the client

    return isinstance(_innermost(error), (ReadTimeoutError, TimeoutError))


def _root(error: BaseException) -> str:
    """Return the innermost reason, without the URLs and object names around it."""
    seen = _innermost(error)
    text = _ERRNO.sub("", getattr(seen, "strerror", None) or str(seen))
    return text.lower().rstrip(".")


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
        assert self._guard.stdout is not None  # noqa: S101  # a pipe was requested
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
            with suppress(EngineError):  # it has not started yet, or another has the port
                if self.connection.query("system/policyeng", {}).get("result") == self._secret:
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
