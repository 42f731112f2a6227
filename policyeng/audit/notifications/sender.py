"""Delivery of messages through apprise, with errors that reveal no part of a URL."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from policyeng.configuration.notification_targets import Notifying
from policyeng.errors import UsageError
from policyeng.report.escaping import visible

if TYPE_CHECKING:
    from apprise import Apprise

_VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
#: What separates the parts of a URL that may be secret; shorter parts reveal nothing.
_SEPARATORS = re.compile(r"[:/?&=@#,;+]+")
_SHORTEST = 4
#: Seconds that a service has to take a message.
_PATIENCE = 30
#: One message at a time: lines that apprise logs do not name their thread, and may contain parts of another URL.
_LOGGING = Lock()
#: The longest reason that is kept.
_LONGEST = 300


def require_extra() -> None:
    """Check whether apprise is installed.

    Raises:
        UsageError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("apprise") is None:
        raise UsageError("notifications need `apprise`, which is not installed", remedy="install `policyeng[audit]`")


def require_expandable(target: Notifying) -> None:
    """Reject `${NAME}` in a URL of a configuration in a parent directory, which could read the environment.

    Raises:
        UsageError: the URL has a variable, and the file was found in a parent directory.
    """
    found = _VARIABLE.search(target.url.get_secret_value())
    if found and target.inherited_from:
        message = f"`{found[0]}` is not expanded, because the configuration was found in a parent directory"
        remedy = f"name it with `--config {target.inherited_from}`, or run policyeng in its directory"
        raise UsageError(message, place=(target.inherited_from, f"notify {target.name}"), remedy=remedy)


def address_of(target: Notifying, environ: Mapping[str, str]) -> str:
    """Return the URL of a target with its variables replaced, percent-encoded within a URL.

    Raises:
        UsageError: a variable is not set, or the configuration was found in a parent directory.
    """
    require_expandable(target)
    stated = target.url.get_secret_value()

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if not environ.get(name):
            place, remedy = (f"notify {target.name}",), f"set `{name}`, or write the URL without it"
            raise UsageError(f"the environment has no variable `{name}`", place=place, remedy=remedy)
        return environ[name] if found[0] == stated else quote(environ[name], safe="")

    return _VARIABLE.sub(value, stated)


def send(target: Notifying, title: str, body: str, environ: Mapping[str, str]) -> str:
    """Send a message. Return why it failed, on one line and without secrets, or an empty text."""
    from apprise import NotifyFormat

    try:
        address = address_of(target, environ)
    except UsageError as error:
        return error.message
    with _LOGGING, _caught() as lines:
        try:
            services = _services(address)
            if not len(services):
                return _hide_url(f"apprise does not take the URL ({_last(lines)})", address)
            sent = services.notify(body=body, title=title, body_format=NotifyFormat.TEXT, timeout=2 * _PATIENCE)
        except Exception as error:  # what a service raises is of its own kind, and one that fails must not end a run
            return _hide_url(f"{type(error).__name__}: {error}", address)
    return "" if sent else _hide_url(_last(lines), address)


def _services(address: str) -> Apprise:
    """Return the services of a URL; they read and write no files, and do not interpret emoji names or escapes."""
    from apprise import Apprise, AppriseAsset

    asset = AppriseAsset(
        app_id="policyeng",
        app_desc="policyeng audits",
        async_mode=False,
        interpret_emojis=False,
        interpret_escapes=False,
        allow_templates=False,
        http_redirects=False,
        storage_mode="memory",
        service_timeout=_PATIENCE,
    )
    services = Apprise(asset=asset)
    services.add(address)
    return services


class _caught(logging.Handler):  # noqa: N801  # it is used as a context manager
    """The lines that apprise logs, on this and other threads; they are not printed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def __enter__(self) -> list[str]:
        logger = logging.getLogger("apprise")
        self._propagates, logger.propagate = logger.propagate, False
        logger.addHandler(self)
        return self._lines

    def __exit__(self, *_: object) -> None:
        logger = logging.getLogger("apprise")
        logger.removeHandler(self)
        logger.propagate = self._propagates

    def emit(self, line: logging.LogRecord) -> None:
        """Store a line."""
        self._lines.append(line.getMessage())


def _last(lines: list[str]) -> str:
    return lines[-1] if lines else "no details"


def _hide_url(text: str, address: str) -> str:
    """Return a reason on one line without any part of the URL."""
    for secret in sorted(_secrets(address), key=len, reverse=True):
        text = text.replace(secret, "***")
    shown = visible(" ".join(text.split())).rstrip(".")
    return f"{shown[:_LONGEST]}…" if len(shown) > _LONGEST else shown


def _secrets(address: str) -> Iterator[str]:
    _, _, rest = address.partition("://")
    for part in {rest, *_SEPARATORS.split(rest)}:
        yield from (each for each in (part, unquote(part), quote(part)) if len(each) >= _SHORTEST)
