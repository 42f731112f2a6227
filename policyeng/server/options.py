"""Everything that `policyeng serve` can be told beyond the settings."""

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
    """A route that judges, below `/v1/`."""

    CHECK = "check"
    ADMIT = "admit"
    ADMISSION_REVIEW = "admission-review"
    RESTRICTIONS = "check-policy-restrictions"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the server listens, whom it answers, and what a request may cost.

    Attributes:
        host, port: where it listens; port 0 is any that is free.
        insecure_listen: listen beyond loopback though nobody has to say who they are.
        tls_cert, tls_key: the files of the certificate and its key, in PEM; without them it speaks plain HTTP.
        tls_client_ca: the roots of clients' certificates, in PEM; with it who asks for a verdict has to have one.
        tokens: the file of the tokens; without one nobody has to say who they are.
        only: the routes that judge; there are no others.
        snapshot: the files and directories of the state that changes are judged against; without them a request brings
            the state.
        max_snapshot_age: in seconds, from which age on the state is too old to decide by.
        max_body_bytes: of one request.
        max_pending_bytes: of the bodies that are held at a time.
        deadline: in seconds, from the arrival of a request to its answer.
        workers: processes that answer.
        waiting: requests that may wait in all of them for a thread that judges.
        unready_on_fault: say in readiness that it cannot decide while what changed cannot be read.
        drain_seconds: how long it answers on after it was told to end, and says in readiness that it will.
        decision_log: the folder of the decision log, or `-` for standard output; None for no log.
        decision_log_max_bytes: of a file of it, before the next is begun.
        decision_log_keep: files of it, of which the oldest goes.
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
