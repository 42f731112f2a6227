"""The options of `policyeng serve` that no other command has, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli.groups import with_group
from policyeng.processes import processors
from policyeng.server.options import Route, ServerOptions

Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Where to listen; beyond loopback only with --tokens.", rich_help_panel="Listening"
    ),
]
Port = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=65535, help="The port; 0 is any that is free.", rich_help_panel="Listening"),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure-listen",
        help="Listen beyond loopback though callers need not say who they are.",
        rich_help_panel="Listening",
    ),
]
Tokens = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Who may ask for what: lines of `NAME SCOPE,SCOPE sha256:HEX`; "
        "the scopes are check, admit, metrics, history.",
        rich_help_panel="Listening",
    ),
]
Only = Annotated[
    list[Route] | None,
    typer.Option(
        metavar="ROUTE",
        help=f"Answer this route alone of those that judge: {', '.join(Route)}; repeatable.",
        rich_help_panel="Listening",
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The certificate, in PEM, with those between.", rich_help_panel="Listening"),
]
TlsKey = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key of the certificate, in PEM.", rich_help_panel="Listening")
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-client-ca",
        metavar="FILE",
        help="Roots in PEM; who asks for a verdict needs a certificate that one of them has signed.",
        rich_help_panel="Listening",
    ),
]
UnreadyOnFault = Annotated[
    bool,
    typer.Option(
        "--unready-on-fault",
        help="Be unready while changed policies, tokens, certificates or a changed state cannot be read.",
        rich_help_panel="Operation",
    ),
]
Drain = Annotated[
    float,
    typer.Option(
        "--drain-seconds",
        metavar="SECONDS",
        min=0,
        help="How long to answer on, unready, after SIGTERM or SIGINT.",
        rich_help_panel="Operation",
    ),
]
DecisionLogPlace = Annotated[
    Path | None,
    typer.Option(
        "--decision-log",
        metavar="DIR",
        help="Where to write what was decided, as JSON Lines; `-` is standard output.",
        rich_help_panel="Operation",
    ),
]
LogMaxBytes = Annotated[
    int,
    typer.Option(
        "--decision-log-max-bytes",
        metavar="N",
        min=1,
        help="How long a file of it gets before the next is begun.",
        rich_help_panel="Operation",
    ),
]
LogKeep = Annotated[
    int,
    typer.Option(
        "--decision-log-keep", metavar="N", min=1, help="How many files of it are kept.", rich_help_panel="Operation"
    ),
]
State = Annotated[
    list[Path] | None,
    typer.Option(
        "--snapshot",
        metavar="PATH",
        help="The state that changes are judged against, a file or directory, read again when it changes; repeatable. "
        "Without it requests bring the state.",
        rich_help_panel="State",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Show the history of audits at `/`: sqlite:///audits.db, or postgresql://user@host/database.",
        rich_help_panel="State",
    ),
]
MaxAge = Annotated[
    float | None,
    typer.Option(
        "--max-snapshot-age",
        metavar="SECONDS",
        min=0,
        help="Decide nothing by a state that is older.",
        rich_help_panel="State",
    ),
]
MaxBody = Annotated[
    int,
    typer.Option("--max-body-bytes", metavar="N", min=1, help="The longest body.", rich_help_panel="Limits"),
]
MaxPending = Annotated[
    int,
    typer.Option(
        "--max-pending-bytes",
        metavar="N",
        min=1,
        help="The bodies of all requests at a time, together.",
        rich_help_panel="Limits",
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.001,
        help="From the arrival of a request to its answer; then it is refused.",
        rich_help_panel="Limits",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Processes that answer; 0 is one for each processor.", rich_help_panel="Limits"
    ),
]
Waiting = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Requests that may wait in all processes; others are refused.",
        rich_help_panel="Limits",
    ),
]
_DEFAULTS = ServerOptions()


def with_serving(command: Callable[..., int]) -> Callable[..., int]:
    """A command with these options; they reach it as `server`."""
    return with_group(command, "server", _given)


def _given(
    *,
    host: Host = _DEFAULTS.host,
    port: Port = _DEFAULTS.port,
    insecure_listen: Insecure = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
    tokens: Tokens = None,
    only: Only = None,
    snapshot: State = None,
    max_snapshot_age: MaxAge = None,
    store: Store = None,
    max_body_bytes: MaxBody = _DEFAULTS.max_body_bytes,
    max_pending_bytes: MaxPending = _DEFAULTS.max_pending_bytes,
    deadline: Deadline = _DEFAULTS.deadline,
    workers: Workers = _DEFAULTS.workers,
    waiting: Waiting = _DEFAULTS.waiting,
    unready_on_fault: UnreadyOnFault = False,
    drain_seconds: Drain = _DEFAULTS.drain_seconds,
    decision_log: DecisionLogPlace = None,
    decision_log_max_bytes: LogMaxBytes = _DEFAULTS.decision_log_max_bytes,
    decision_log_keep: LogKeep = _DEFAULTS.decision_log_keep,
) -> ServerOptions:
    return ServerOptions(
        host=host,
        port=port,
        insecure_listen=insecure_listen,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        tokens=tokens,
        only=tuple(only or _DEFAULTS.only),
        snapshot=tuple(snapshot or ()),
        max_snapshot_age=max_snapshot_age,
        store=store,
        max_body_bytes=max_body_bytes,
        max_pending_bytes=max_pending_bytes,
        deadline=deadline,
        workers=workers or processors(),
        waiting=waiting,
        unready_on_fault=unready_on_fault,
        drain_seconds=drain_seconds,
        decision_log=decision_log,
        decision_log_max_bytes=decision_log_max_bytes,
        decision_log_keep=decision_log_keep,
    )
