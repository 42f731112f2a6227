"""The options of `policyeng serve` in addition to the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

from policyeng.errors import UsageError

#: How many bytes one request may have, and those of all requests together that are being read or wait.
MAX_BODY_BYTES = 16 << 20
MAX_PENDING_BYTES = 256 << 20


class Route(StrEnum):
    """A route for evaluations and decisions, below `/v1/`."""

    CHECK = "check"
    ADMIT = "admit"
    ADMISSION_REVIEW = "admission-review"
    RESTRICTIONS = "check-policy-restrictions"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the server listens, which callers it serves, and the limits of a request.

    Attributes:
        host, port: the address to listen on; port 0 picks a free one.
        insecure_listen: listen on non-loopback addresses without authentication.
        tls_cert, tls_key: the PEM files of the certificate and its key; without them the server uses plain HTTP.
        tls_client_ca: the PEM file of root certificates for clients; with it, evaluations and decisions require a
            client certificate.
        tokens: the file of the tokens; without one callers do not authenticate.
        only: the routes to serve of those for evaluations and decisions.
        snapshot: the files and directories of the state that changes are compared with; without them each request
            includes the state.
        max_snapshot_age: the age in seconds from which on the state is too old to decide on.
        max_body_bytes: the maximum size of a request body.
        max_pending_bytes: the maximum size of all bodies in memory at a time.
        deadline: the maximum seconds from the arrival of a request to its response.
        workers: the number of worker processes.
        waiting: how many requests may wait for an evaluation thread, in all workers together.
        unready_on_fault: report not ready while changed files cannot be read.
        drain_seconds: how long the server responds, and reports not ready, after the request to end.
        decision_log: the folder of the decision log, or `-` for standard output; None for no log.
        decision_log_max_bytes: the maximum size of a log file, before the next one is started.
        decision_log_keep: how many log files to keep; the oldest is deleted.
        store: the database of audits whose history it shows; None for none.
    """

    host: str = "127.0.0.1"
    port: int = 8180
    insecure_listen: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    tokens: Path | None = None
    only: Sequence[Route] = tuple(Route)
    snapshot: Sequence[Path] = ()
    max_snapshot_age: float | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    max_pending_bytes: int = MAX_PENDING_BYTES
    deadline: float = 10.0
    workers: int = 1
    waiting: int = 64
    unready_on_fault: bool = False
    drain_seconds: float = 0.0
    decision_log: Path | None = None
    decision_log_max_bytes: int = 64 << 20
    decision_log_keep: int = 10
    store: str | None = None

    def __post_init__(self) -> None:
        """Check the options for accidental exposure.

        Raises:
            UsageError: the host is not a loopback address, and clients or readers of the history need not
                authenticate; or a certificate has no key.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            missing = "--tls-key" if self.tls_key is None else "--tls-cert"
            raise UsageError(
                "a certificate needs its key, and a key its certificate", place=(missing,), remedy="set both or neither"
            )
        if self.tls_client_ca is not None and self.tls_cert is None:
            message = "client certificates need TLS"
            raise UsageError(message, place=("--tls-client-ca",), remedy="also set --tls-cert and --tls-key")
        if not (self.tokens or self.tls_client_ca or self.insecure_listen or is_loopback(self.host)):
            message = f"`{self.host}` is reachable from other machines, without authentication"
            remedy = "set --tokens FILE or --tls-client-ca FILE, or listen on 127.0.0.1; --insecure-listen allows it"
            raise UsageError(message, place=("--host",), remedy=remedy)
        if self.store is not None and self.tokens is None and not is_loopback(self.host):
            message = f"`{self.host}` is reachable from other machines, and the history needs no sign-in"
            remedy = "set --tokens FILE with tokens for `history`, or listen on 127.0.0.1"
            raise UsageError(message, place=("--store",), remedy=remedy)


def is_loopback(host: str) -> bool:
    """Check whether a host is a loopback address; names other than `localhost` do not count."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
