"""What OPA gives for calls of builtins, next to what this engine gives."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from policyeng.rego.builtins import BuiltinError, load_function
from policyeng.rego.values import UNDEFINED, Value, number_text, to_json
from tests.opa_servers import running


def seeded(seed: int) -> Random:
    """Chance that is the same every time."""
    return Random(seed)  # noqa: S311  # nothing here is secret


#: What a call gives: its kind, and a value or the code of an error.
Outcome = tuple[str, Any]


class Call(NamedTuple):
    """A call of a builtin."""

    name: str
    arguments: tuple[Value, ...]


class Oracle:
    """An OPA server that evaluates calls."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._known: set[tuple[str, int]] = set()

    def _request(self, method: str, path: str, body: str) -> Any:
        self._connection.request(method, path, body.encode())
        return json.loads(self._connection.getresponse().read(), parse_float=lambda text: f"number {text}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def evaluate(self, call: Call) -> Outcome:
        """What OPA gives: `("value", JSON)`, `("undefined", None)` or `("error", code)`."""
        rule, count = call.name.replace(".", "_"), len(call.arguments)
        if (call.name, count) not in self._known:
            names = [f"a{index}" for index in range(count)]
            reads = "\n".join(f"    some {name} in [v | v := value({index})]" for index, name in enumerate(names))
            module = (
                f"package oracle.{rule}_{count}\n"
                "value(i) := {x | some x in input.arguments[i]} if i in input.sets\n"
                "value(i) := input.arguments[i] if not i in input.sets\n"
                f"result := x if {{\n{reads}\n    x := {call.name}({', '.join(names)})\n}}\n"
            )
            answer = self._request("PUT", f"/v1/policies/{rule}_{count}", module)
            assert answer == {}, answer
            self._known.add((call.name, count))
        sets = [index for index, each in enumerate(call.arguments) if type(each) is set]
        text = _write({"arguments": [to_json(each) for each in call.arguments], "sets": sets})
        path = f"/v1/data/oracle/{rule}_{count}/result?strict-builtin-errors=true"
        try:
            answer = self._request("POST", path, f'{{"input": {text}}}')
        except http.client.RemoteDisconnected:  # the builtin of OPA has panicked
            self._connection.close()
            return "error", "panic"
        if "code" in answer:
            return "error", next(each["code"] for each in answer["errors"])
        return ("value", answer["result"]) if "result" in answer else ("undefined", None)


def _write(value: Value) -> str:
    if type(value) is dict:
        return f"{{{', '.join(f'{json.dumps(key)}: {_write(item)}' for key, item in value.items())}}}"
    if type(value) is list:
        return f"[{', '.join(map(_write, value))}]"
    return json.dumps(value) if value is None or type(value) in {bool, str} else number_text(value)


def ours(call: Call) -> Outcome:
    """What this engine gives, as `Oracle.evaluate`."""
    try:
        value = load_function(call.name)(*call.arguments)
    except BuiltinError as error:
        return "error", error.code
    if value is UNDEFINED:
        return "undefined", None
    return "value", json.loads(_write(to_json(value)), parse_float=lambda text: f"number {text}")


def differences(opa: Path, calls: Iterable[Call]) -> list[tuple[Call, Outcome, Outcome]]:
    """The calls for which OPA and this engine do not give the same, with what each gives.

    The errors of `json.match_schema` are compared without their order, in which OPA is at random.
    """
    with oracle(opa) as server:
        found = [(call, server.evaluate(call), ours(call)) for call in calls]
    return [each for each in found if not _same(each[0].name, each[1], each[2])]


def _same(name: str, theirs: Outcome, own: Outcome) -> bool:
    if theirs == ("error", "panic"):
        return own[0] == "error"
    if name == "json.match_schema" and theirs[0] == own[0] == "value":
        return bool(theirs[1][0] == own[1][0] and _sorted(theirs[1][1]) == _sorted(own[1][1]))
    return theirs == own


def _sorted(errors: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in errors)


@contextmanager
def oracle(opa: Path) -> Iterator[Oracle]:
    """A server for the time of a block."""
    with running(opa) as server, closing(Oracle(server.url)) as found:
        yield found
