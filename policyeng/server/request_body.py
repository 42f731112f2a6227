"""Read requests: ids, bodies with their limits, and problem responses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from random import Random

import orjson
from starlette.requests import Request
from starlette.responses import Response

from policyeng.errors import InputError, PolicyengError, UsageError
from policyeng.parsing.json_text import parse_json
from policyeng.server.schemas import RefusedRequest

#: Seeded by the system once: to call it for each id would give the interpreter to another thread each time.
_chance = Random()  # noqa: S311  # an id is no secret
os.register_at_fork(after_in_child=_chance.seed)  # or all workers would give the same ids


def new_id() -> str:
    """One that no other has, 32 hexadecimal digits."""
    return f"{_chance.getrandbits(128):032x}"


PROBLEM = "application/problem+json"
#: Seconds after which clients may retry.
_RETRY_AFTER = "1"


class RequestRefusedError(InputError):
    """A request that the server refuses.

    Args:
        status: the HTTP status.
        message, place, remedy: as of every error.
        headers: the headers for the status.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        place: tuple[str, ...] = (),
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, place=place, remedy=remedy)
        self.status = status
        self.headers = dict(headers or {})


def refuse_busy(message: str, *, status: int = HTTPStatus.SERVICE_UNAVAILABLE) -> RequestRefusedError:
    """Return a refusal of a request that may succeed later."""
    return RequestRefusedError(status, message, remedy="retry later", headers={"Retry-After": _RETRY_AFTER})


def refuse_body(message: str, pointer: str, remedy: str) -> RequestRefusedError:
    """Return a refusal of a body for the value at a JSON Pointer in it (422)."""
    return RequestRefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, message, place=(BODY, pointer), remedy=remedy)


def status_of(error: PolicyengError) -> int:
    """Return the status of an error: 4xx for faults of the request, 503 for others."""
    if isinstance(error, RequestRefusedError):
        return error.status
    if isinstance(error, InputError | UsageError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.SERVICE_UNAVAILABLE


def problem_of(error: PolicyengError, request_id: str) -> RefusedRequest:
    """Return the members of the problem; empty ones are omitted."""
    status = HTTPStatus(status_of(error))
    problem: RefusedRequest = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": error.message,
        "requestId": request_id,
    }
    if error.place:
        problem["place"] = ": ".join(error.place)
    if error.remedy:
        problem["remedy"] = error.remedy
    return problem


def problem_response(error: PolicyengError, request_id: str) -> Response:
    """Return the response to a refused request."""
    headers = error.headers if isinstance(error, RequestRefusedError) else {}
    body = orjson.dumps(problem_of(error, request_id))
    return Response(body, status_of(error), headers, PROBLEM)


JSON = "application/json"
YAML = ("application/yaml", "application/x-yaml", "text/yaml")
#: Bytes that a body in YAML may have: reading it takes 200 times as much memory, and seconds for each MB.
MAX_YAML_BYTES = 1 << 20
#: How messages name what was sent.
BODY = "body"


class Bodies:
    """The bodies in memory, and the limits of their size in bytes.

    Args:
        longest: bytes that one body may have.
        pending: bytes that all may have together.
    """

    def __init__(self, longest: int, pending: int) -> None:
        self._longest = longest
        self._pending = max(pending, longest)
        self.buffered = 0

    @asynccontextmanager
    async def body_of(self, request: Request, until: float) -> AsyncIterator[bytes]:
        """Read the body; it counts as buffered until the block ends.

        Args:
            request: of which nothing is read yet.
            until: the time of the loop at which all of it must be there.

        Raises:
            RefusedError: it is longer than allowed (413), does not end in time (408), has not the length that was
                announced, or is empty (400), or all together are too long (503).
            ClientDisconnect: the client went away.
        """
        longest = self._longest_of(request)
        announced = self._announced(request, longest)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout_at(until):
                async for part in request.stream():
                    size += len(part)
                    self.buffered += len(part)
                    _refuse_size(size, longest)
                    if self.buffered > self._pending:
                        raise refuse_busy("too much is being sent at a time")
                    parts.append(part)
            if announced is not None and size != announced:
                message = f"the body has {size} bytes, but `Content-Length` is {announced}"
                raise RequestRefusedError(HTTPStatus.BAD_REQUEST, message, remedy="send the complete body")
            if not size:
                raise RequestRefusedError(HTTPStatus.BAD_REQUEST, "the body is empty", remedy="send a document")
            yield b"".join(parts)
        except TimeoutError:
            message = "the body did not arrive in time"
            raise RequestRefusedError(
                HTTPStatus.REQUEST_TIMEOUT, message, remedy="send it faster", headers={"Connection": "close"}
            ) from None
        finally:
            self.buffered -= size

    def _longest_of(self, request: Request) -> int:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return min(self._longest, MAX_YAML_BYTES) if kind in YAML else self._longest

    def _announced(self, request: Request, longest: int) -> int | None:
        text = request.headers.get("content-length")
        if text is None:
            return None
        if not (text.isascii() and text.isdigit()):
            raise RequestRefusedError(
                HTTPStatus.BAD_REQUEST, "`Content-Length` is not a number", remedy="send the length in bytes"
            )
        _refuse_size(int(text), longest)
        return int(text)


def _refuse_size(size: int, longest: int) -> None:
    if size > longest:
        message = f"the body is longer than {longest} bytes"
        remedy = "send less, or raise the limit (`--max-body-bytes`)"
        if longest == MAX_YAML_BYTES:
            remedy = "send it as JSON, which may be longer"
        raise RequestRefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message, remedy=remedy, headers={"Connection": "close"}
        )


def media_type_of(request: Request, taken: Collection[str]) -> str:
    """Return the media type of a body in lower case, without parameters.

    Raises:
        RefusedError: it is none of those that are taken, compressed, or not in UTF-8 (415).
    """
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        message = f"the body is compressed (`{coding}`)"
        raise _unsupported(message, "send it uncompressed", {"Accept-Encoding": "identity"})
    name, *parameters = request.headers.get("content-type", "").split(";")
    kind = name.strip().lower()
    if kind not in taken:
        message = f"the body is `{kind}`" if kind else "the request has no `Content-Type`"
        remedy = f"send `Content-Type: {' or '.join(taken)}`"
        raise _unsupported(message, remedy, {"Accept": ", ".join(taken)})
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
            raise _unsupported(f"the body is in `{value.strip()}`", "send UTF-8", {"Accept": ", ".join(taken)})
    return kind


def _unsupported(message: str, remedy: str, headers: dict[str, str]) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message, remedy=remedy, headers=headers)


def json_of(content: bytes) -> object:
    """Parse a body as JSON.

    Raises:
        RefusedError: it is what the strict reader refuses (400).
    """
    try:
        return parse_json(content, BODY)
    except InputError as error:
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, error.message, place=error.place, remedy=error.remedy
        ) from None
