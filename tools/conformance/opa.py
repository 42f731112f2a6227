"""Real OPA as the reference: one server, to which each case is given in turn.

The product takes an error of a builtin for an error, as `opa eval --strict-builtin-errors` does, and OPA's own test
takes it for undefined in most cases; so what is expected of us is asked of OPA in that mode, not read from the case.
"""

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.cases import PACKAGE, Case
from conformance.values import Answer, exact

_START_SECONDS = 30


class Server:
    """A server of OPA on a port of the loopback interface."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def answer(self, case: Case) -> Answer:
        """What OPA says of a case; a fault with kind `refused` when it does not take the bundle."""
        modules = dict(case.modules)
        rule = f"{PACKAGE}/rows"
        if case.term is not None:
            body = f"found := data.{PACKAGE}.rows with input as {case.term}"
            modules["term.rego"] = f"package {PACKAGE}_term\n\nrows := found if {{ {body} }}\n"
            rule = f"{PACKAGE}_term/rows"
        put: list[str] = []
        try:
            self._ask("PUT", "/v1/data", case.facts)
            refusal = self._put(modules, put)
            if refusal is not None:
                return Answer(fault=("refused", refusal))
            given = "{}" if case.document is None else f'{{"input": {case.document}}}'
            status, body = self._ask("POST", f"/v1/data/{rule}?strict-builtin-errors=true", given)
        finally:
            for path in reversed(put):
                self._ask("DELETE", f"/v1/policies/{path}", "")
        if status != http.client.OK:
            return Answer(fault=("error", _message(body)))
        parsed = exact(body)
        return Answer(rows=parsed["result"]) if "result" in parsed else Answer()

    def _put(self, modules: dict[str, str], put: list[str]) -> str | None:
        """Puts modules, each after those it calls, and notes their paths in `put`; a message when some are refused."""
        waiting = dict(modules)
        while waiting:
            before, refusal = len(waiting), None
            for path, source in list(waiting.items()):
                status, body = self._ask("PUT", f"/v1/policies/{path}", source)
                if status == http.client.OK:
                    put.append(path)
                    del waiting[path]
                else:
                    refusal = refusal or _message(body)
            if len(waiting) == before:
                return refusal
        return None

    def _ask(self, method: str, path: str, body: str) -> tuple[int, str]:
        self._connection.request(method, path, body.encode(), {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, response.read().decode()


def _message(body: str) -> str:
    parsed: dict[str, Any] = json.loads(body)
    errors = parsed.get("errors") or [parsed]
    return f"{errors[0].get('code')}: {errors[0].get('message')}"


@contextmanager
def server(binary: Path) -> Iterator[Server]:
    """A server of one's own, ended on leaving."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(binary), "run", "--server", "--addr", f"127.0.0.1:{port}", "--log-level", "error"]
    process = subprocess.Popen([*command, "--disable-telemetry"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(port)
        yield Server(port)
    finally:
        process.terminate()
        process.wait()


def _wait(port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
