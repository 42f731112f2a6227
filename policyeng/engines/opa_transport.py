"""Communicate with an OPA server through its Python client, and translate its errors.

The client retries, follows redirects, and reads proxies, certificates and passwords from the environment. A verdict
must not depend on these, so they are turned off, except for proxies.
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
        """Close the sockets."""
        self._client.close_connection()

    def ask(self, path: str, document: JsonObject) -> JsonObject:
        """Return the response for a path below `data`, with strict builtin errors, `provenance`, and any `result`.

        Raises:
            EvaluationError: a policy failed.
        """
        with self._translate_errors():
            parameters = {"strict-builtin-errors": "true", "provenance": "true"}
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
        from requests import exceptions

        try:
            yield
        except (EngineError, EvaluationError):
            raise
        except exceptions.SSLError as error:
            raise self._untrusted(_root(error)) from None
        except exceptions.Timeout:
            raise self._error("it does not respond in time", _SLOW) from None
        except (exceptions.JSONDecodeError, ValueError):
            raise self._error("its response is not JSON", _CHECK_URL) from None
        except (exceptions.ConnectionError, exceptions.ChunkedEncodingError, OSError) as error:
            if _is_silence(error):
                raise self._error(f"it sent nothing for {self._timeout:g} s during its response", _SLOW) from None
            raise self._error(
                f"the connection fails: {_root(error)}", "check that it is running and reachable"
            ) from None
        except Exception:  # the client has many kinds of errors for responses that are not from OPA
            raise self._error("its response is not from an OPA server", _CHECK_URL) from None

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
