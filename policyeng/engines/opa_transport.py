"""Speak with an OPA server through its Python client, and say in our words what goes wrong.

The client retries, follows redirects, and reads proxies, certificates and passwords from the environment; a verdict
must not depend on any of these, so they are turned off, and proxies alone are read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from policyeng.engines.opa_options import OpaOptions
from policyeng.errors import EngineError, UsageError
from policyeng.models import JsonObject
from policyeng.rego import EvaluationError

if TYPE_CHECKING:
    from requests import Response

#: Seconds to wait for a connection at most, whatever the timeout.
_CONNECT_SECONDS = 10.0
_UNAUTHORIZED = (401, 403)
_SLOW = "see whether it is overloaded, or give it more time with `--opa-timeout`"
#: What OpenSSL says, in its versions, of a server that answers in plain text.
_ERRNO = re.compile(r"^.*\[Errno -?[0-9]+\] ", re.MULTILINE)
_NO_TLS = re.compile(r"wrong.version.number|http.request|packet.length.too.long|record.layer.failure|unknown.protocol")


class OpaRefusedError(EngineError):
    """OPA refused what it was given; `code` and `text` are its own."""

    def __init__(self, code: str, text: str, place: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"could not decide: the OPA server refuses it: {text}", place=(place,))


class OpaConnection:
    """A connection to one server, for one thread at a time.

    Raises:
        UsageError: the URL is none, or an option does not fit it.
        EngineError: from every method, when the server cannot be reached or its answer cannot be used.
    """

    def __init__(self, options: OpaOptions) -> None:
        from opa_client import OpaClient
        from requests.utils import get_environ_proxies

        scheme, host, port, root = _endpoint(options)
        self.url = f"{scheme}://{host}:{port}{root}"
        self._timeout = options.timeout
        verify = str(options.ca_file) if options.ca_file else True
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

    def close(self) -> None:
        """Give the sockets back."""
        self._client.close_connection()

    def ask(self, path: str, document: JsonObject) -> JsonObject:
        """The answer for a path below `data`, builtin errors strict; with `provenance`, and `result` when defined.

        Raises:
            EvaluationError: a policy failed.
        """
        with self._spoken():
            parameters = {"strict-builtin-errors": "true", "provenance": "true"}
            answer = self._client.query_rule(document, path, query_params=parameters)
        return self._object(answer)

    def put_module(self, identity: str, source: str) -> None:
        """Add or replace a module; the same text again costs the server nothing."""
        with self._spoken():
            self._client.update_policy_from_string(source, quote(identity), rego_compat=False)

    def put_document(self, path: str, document: JsonObject) -> None:
        """Add or replace a document below `data`."""
        with self._spoken():
            self._client.update_or_create_data(document, quote(path))

    def delete_document(self, path: str) -> None:
        """Remove a document below `data`."""
        with self._spoken():
            self._client.delete_data(quote(path))

    def _object(self, answer: object) -> JsonObject:
        if not isinstance(answer, dict):
            raise self._error("its answer is not a JSON object", "see that the URL is that of an OPA server")
        return answer

    def _admit(self, response: Response, **_: object) -> None:
        """Turn every answer that is no success into an error, before the client drops its body."""
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
            return self._error(f"it answers with a redirect to `{host}`", "give the URL that it redirects to")
        if status in _UNAUTHORIZED:
            return self._error(f"it refuses us ({status})", "give a token that may read `data` and write policies")
        body = _body(response)
        code, text, file, line = _said(body)
        if status == 500 and code.startswith("eval_"):
            return EvaluationError(code, text, file, line)
        if body and status < 500 and status != 404:
            return OpaRefusedError(code, f"{file}:{line}: {text}" if file else text, self.url)
        return self._error(f"it answers {status}{f': {text}' if text else ''}", "see the log of the server")

    def _error(self, message: str, remedy: str) -> EngineError:
        return EngineError(f"could not decide with the OPA server: {message}", place=(self.url,), remedy=remedy)

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """Name what can go wrong on the way; the client lets the errors of its HTTP library through."""
        from requests import exceptions

        try:
            yield
        except (EngineError, EvaluationError):
            raise
        except exceptions.SSLError as error:
            raise self._untrusted(_root(error)) from None
        except exceptions.Timeout:
            raise self._error("it does not answer in time", _SLOW) from None
        except (exceptions.JSONDecodeError, ValueError):
            raise self._error("its answer is not JSON", "see that the URL is that of an OPA server") from None
        except (exceptions.ConnectionError, exceptions.ChunkedEncodingError, OSError) as error:
            if _is_silence(error):
                raise self._error(f"it was silent for {self._timeout:g} s in its answer", _SLOW) from None
            raise self._error(f"the connection fails: {_root(error)}", "see that it runs and can be reached") from None
        except Exception:  # the client has errors of many kinds for answers that are not OPA's
            message = "its answer is not that of an OPA server"
            raise self._error(message, "see that the URL is that of an OPA server") from None

    def _untrusted(self, reason: str) -> EngineError:
        if _NO_TLS.search(reason):
            remedy = f"write `http://{urlsplit(self.url).netloc}`, or see that the port is that of TLS"
            return self._error("it does not speak TLS", remedy)
        remedy = "name the authority of its certificate with `--opa-ca-file`"
        return self._error(f"its certificate is not trusted: {reason}", remedy)


def _endpoint(options: OpaOptions) -> tuple[str, str, int, str]:
    """Scheme, host, port and root path of a URL."""
    remedy = "write, for example, `https://opa.example.com:8181`"
    try:
        parts = urlsplit(options.url)
        port = parts.port
    except ValueError:
        raise UsageError("the URL of the OPA server has no readable host and port", remedy=remedy) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("the URL of the OPA server is not an http or https URL", remedy=remedy)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        message = "the URL of the OPA server has more than a host, a port and a path"
        raise UsageError(message, remedy="give the token with `POLICYENG_OPA_TOKEN` or `--opa-token-file`")
    for file in (options.ca_file, options.client_cert):
        if file is not None and parts.scheme != "https":
            raise UsageError(f"`{file}` is of use with an https URL only", remedy="write `https://`")
        if file is not None and not file.is_file():
            raise UsageError("no such file", place=(str(file),), remedy="name a PEM file")
    if not options.timeout > 0:
        raise UsageError(f"`{options.timeout}` is no timeout", remedy="give a number of seconds above 0")
    if not (options.token.isascii() and options.token.isprintable() and " " not in options.token):
        raise UsageError("the token for the OPA server has signs that no token has", remedy="give it as one line")
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


def _said(body: JsonObject) -> tuple[str, str, str, int]:
    """Code, text, file and line of OPA's error document: of its first detail, if there is one."""
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
    """Whether the time was up in the middle of an answer, which the HTTP library calls a failed connection."""
    from urllib3.exceptions import ReadTimeoutError  # loaded with the client

    return isinstance(_innermost(error), (ReadTimeoutError, TimeoutError))


def _root(error: BaseException) -> str:
    """The innermost reason, without the URLs and object names that surround it."""
    seen = _innermost(error)
    text = _ERRNO.sub("", getattr(seen, "strerror", None) or str(seen))
    return text.lower().rstrip(".")
