"""Requests to the resource manager of Azure, with GET only and retries.

A failed request returns a `Loss`, and other requests continue. Retries, tokens and the connection are those of
azure-core. Answers are read in pieces, up to a size and a deadline, because not every host that answers is trusted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    ServiceRequestError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import Pipeline, PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import (
    BearerTokenCredentialPolicy,
    HeadersPolicy,
    HTTPPolicy,
    RetryPolicy,
    SansIOHTTPPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from policyeng.audit.collection.azure.clouds import Cloud
from policyeng.audit.collection.azure.snapshot_builder import Loss
from policyeng.errors import InputError
from policyeng.models import JsonObject
from policyeng.parsing.json_text import parse_json, shortened

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential


_SIGN_IN = "sign in with `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and a secret, certificate or identity"
#: Retries of one question; the patience of the client may end them before.
_RETRIES = 8
#: Error codes of ARM for types and versions that a cloud does not have, in lower case.
_UNKNOWN_TYPES = frozenset(
    {"invalidresourcetype", "noregisteredproviderfound", "invalidapiversionparameter"}
    | {"resourcetypenotsupported", "disallowedprovider"}
)
#: Error codes of ARM for services that a subscription has never used, in lower case: it has no resources of them.
_UNUSED = frozenset({"missingsubscriptionregistration", "subscriptionnotregistered"})


#: The name of the body of an answer in the context of its request.
_BODY = "policyeng.body"


class CollectionLimits:
    """The limits of one collection, which its requests share.

    Attributes:
        seconds: of its deadline.
        is_over: whether the deadline has passed.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], *, max_bytes: int, max_bytes_in_all: int) -> None:
        """Start the time.

        Args:
            seconds: for everything.
            clock: tells the time, in seconds.
            max_bytes: of one answer, unpacked.
            max_bytes_in_all: of all answers together.
        """
        self.seconds = seconds
        self._clock = clock
        self._until = clock() + seconds
        self._max_bytes = max_bytes
        self._left = max_bytes_in_all
        self._max_in_all = max_bytes_in_all
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self._clock() >= self._until

    def allows_wait(self, seconds: float) -> bool:
        """Check whether a wait ends before the deadline."""
        return self._clock() + seconds < self._until

    def require_time(self) -> None:
        """Raise `_LimitError` if the deadline has passed."""
        if self.is_over:
            raise _LimitError(f"the deadline of {self.seconds:g} s for the whole collection has passed")

    def take(self, count: int, size: int) -> None:
        """Count some more bytes of an answer, which has so many now; raise `_LimitError` for too many."""
        self.require_time()
        if size > self._max_bytes:
            raise _LimitError(f"the answer has more than {self._max_bytes:,} bytes")
        with self._lock:
            self._left -= count
            if self._left < 0:
                raise _LimitError(f"the answers together have more than {self._max_in_all:,} bytes")


class _LimitError(Exception):
    """An answer that is too large or too late; it is not asked for again."""


class _BodyReader(HTTPPolicy[HttpRequest, HttpResponse]):
    """Reads the body of an answer, within the limits; retries repeat this, too."""

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__()
        self._limits = limits

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, HttpResponse]:
        """Send a request and read the answer.

        Raises:
            _LimitError: it exceeds a limit.
        """
        self._limits.require_time()
        response = self.next.send(request)
        http = response.http_response
        body = bytearray()
        try:
            _refuse_repeated_packing(http.headers.get("Content-Encoding", ""))
            for piece in http.iter_bytes():
                body += piece
                self._limits.take(len(piece), len(body))
        except BaseException:
            http.close()  # an answer that was read to its end leaves the connection to the next request
            raise
        response.context[_BODY] = body
        return response


def _refuse_repeated_packing(encoding: str) -> None:
    """Refuse what is packed more than once: a piece of it can unpack to more than memory holds."""
    if "," in encoding:
        raise _LimitError("the answer is packed more than once")


class _Patience(RetryPolicy[HttpRequest, HttpResponse]):
    """Retries of azure-core, with a limit on the total wait for one request."""

    def __init__(self, seconds: float, limits: CollectionLimits) -> None:
        self._seconds = seconds
        self._limits = limits
        super().__init__(
            retry_total=_RETRIES, retry_connect=3, retry_read=3, retry_status=_RETRIES, retry_backoff_max=30
        )

    def increment(  # type: ignore[override]  # azure-core states it for any kind of request
        self,
        settings: dict[str, object],
        response: PipelineRequest[HttpRequest] | PipelineResponse[HttpRequest, HttpResponse] | None = None,
        error: Exception | None = None,
    ) -> bool:
        """Check whether to retry: not if the total wait would be too long."""
        if not super().increment(settings, response, error):
            return False
        requested = self.get_retry_after(response) if isinstance(response, PipelineResponse) else None
        wait = requested or self.get_backoff_time(settings)
        waited = settings.get("waited", 0.0)
        settings["waited"] = total = wait + (waited if isinstance(waited, float) else 0.0)
        return total <= self._seconds and self._limits.allows_wait(wait)


class _Transport(RequestsTransport):  # type: ignore[misc]  # azure-core loads it late, without its type
    """A connection whose waits end when the work is stopped."""

    def __init__(self, stopped: threading.Event, read_timeout: float) -> None:
        self._stopped = stopped
        super().__init__(connection_timeout=10, read_timeout=read_timeout)

    def sleep(self, duration: float) -> None:
        """Wait for a number of seconds.

        Raises:
            AzureError: the work was stopped meanwhile.
        """
        if self._stopped.wait(duration):
            raise AzureError("stopped")


class Client:
    """A thread-safe client of one resource manager."""

    def __init__(
        self,
        cloud: Cloud,
        credential: TokenCredential,
        *,
        stopped: threading.Event,
        limits: CollectionLimits,
        patience: float = 120,
        read_timeout: float = 60,
    ) -> None:
        """Use a credential in a cloud, and wait for one request up to `patience` seconds."""
        self._cloud = cloud
        self._patience = patience
        self._timeout = read_timeout
        policies: list[HTTPPolicy[HttpRequest, HttpResponse] | SansIOHTTPPolicy[Any, Any]] = [
            HeadersPolicy({"Accept": "application/json"}),
            UserAgentPolicy("policyeng"),
            _Patience(patience, limits),
            BearerTokenCredentialPolicy(credential, cloud.audience),
            _BodyReader(limits),
        ]
        self._pipeline: Pipeline[HttpRequest, HttpResponse] = Pipeline(_Transport(stopped, read_timeout), policies)
        self._pipeline.__enter__()

    @property
    def endpoint(self) -> str:
        """The address of the resource manager."""
        return self._cloud.endpoint

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.__exit__()

    def get(self, address: str, query: Mapping[str, str] | None = None) -> JsonObject | Loss:
        """Return the JSON object of an address (a path, or a URL on the same host), or why there is none.

        Raises:
            InputError: there is no token.
        """
        url = address if address.startswith(("https:", "http:")) else self._cloud.endpoint + address
        request = HttpRequest("GET", url, params=dict(query) if query else None)
        try:
            response = self._pipeline.run(request, stream=True, enforce_https=not self._cloud.is_local)
            return self._parse_response(response.http_response, bytes(response.context[_BODY]))
        except _LimitError as error:
            return Loss(str(error))
        except ClientAuthenticationError as error:
            reason = shortened(" ".join(str(error.message).split()[:40]), 300)
            raise InputError(f"no token for Azure: {reason}", place=(self._cloud.name,), remedy=_SIGN_IN) from None
        except ServiceResponseTimeoutError:
            return Loss(f"no answer within {self._timeout:g} s")
        except ServiceRequestError:
            return Loss("the host cannot be reached")
        except AzureError:
            return Loss("the connection was cut, again and again")

    def _parse_response(self, response: HttpResponse, content: bytes) -> JsonObject | Loss:
        status = response.status_code
        try:
            body = parse_json(content, "the answer")
        except InputError:
            body = None
        if status == 200:
            return body if isinstance(body, dict) else Loss("the answer is not a JSON object", status)
        code = _code(body)
        what = f"{status} {shortened(code)}" if code else str(status)
        if code.lower() in _UNUSED:
            return Loss(f"the service is not used ({what})", status, is_unused=True)
        if status in (401, 403):
            return Loss(f"not allowed ({what})", status)
        if status == 429:
            return Loss(f"throttled ({what}) for longer than the patience of {self._patience:g} s", status)
        return Loss(f"refused ({what})" if status < 500 else f"failed ({what})", status, code.lower() in _UNKNOWN_TYPES)


def _code(body: object) -> str:
    """Return the code of an error of ARM."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, str) else ""


#: More pages than these have no list.
_MOST = 10_000


class ListPage(NamedTuple):
    """A page of a list."""

    entries: list[object]


def pages(client: Client, path: str, query: Mapping[str, str]) -> Iterator[ListPage | Loss]:
    """Yield the pages of a list. A loss is the last, for the pages that are missing."""
    answer = client.get(path, query)
    seen = set[str]()
    while True:
        if isinstance(answer, Loss):
            yield answer
            return
        entries = answer.get("value")
        if not isinstance(entries, list):
            yield Loss("the answer has no `value` that is a list")
            return
        yield ListPage(entries)
        following = answer.get("nextLink")
        if not following:
            return
        address = _get_next_page(following, client.endpoint)
        if isinstance(address, Loss):
            yield address
            return
        if address in seen:
            yield Loss("its pages never end: a `nextLink` leads back to a page before")
            return
        if len(seen) >= _MOST:
            yield Loss(f"there are more than {_MOST:,} further pages")
            return
        seen.add(address)
        answer = client.get(address)
        if isinstance(answer, Loss):
            answer = Loss(f"a further page: {answer.reason}")


def _get_next_page(link: object, endpoint: str) -> str | Loss:
    """Return the address of the next page; a token must not be sent to another host."""
    if not isinstance(link, str):
        return Loss("`nextLink` is no address")
    address = urljoin(endpoint, link)
    if urlsplit(address)[:2] != urlsplit(endpoint)[:2]:
        return Loss(f"the next page is on another host, `{shortened(urlsplit(address).netloc)}`, and was not asked for")
    return address
