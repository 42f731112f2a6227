"""`policyeng serve`: checks and admission decisions over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

from policyeng import __version__
from policyeng.bundle.assembling import path_given
from policyeng.cli.console import print_line, show_progress
from policyeng.cli.context import require_text, settings_files
from policyeng.cli.evaluation_options import CriteriaOptions
from policyeng.cli.logs import LogOptions
from policyeng.cli.option_groups import with_group, with_options
from policyeng.cli.options import option
from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.errors import UsageError
from policyeng.processes import processors, require_posix
from policyeng.server.options import Route, ServerOptions

if TYPE_CHECKING:
    from policyeng.server.decision_log import DecisionLog
    from policyeng.server.file_watcher import PolicyReload
    from policyeng.server.history_site import Reports
    from policyeng.server.service import Service

Host = Annotated[
    str, option("Listening", "Address to listen on; non-loopback addresses require --tokens.", metavar="ADDRESS")
]
Port = Annotated[int, option("Listening", "Port; 0 chooses a free one.", metavar="N", min=0, max=65535)]
Insecure = Annotated[
    bool, option("Listening", "Listen on non-loopback addresses without authentication.", "--insecure-listen")
]
Tokens = Annotated[
    Path | None,
    option(
        "Listening",
        "File of client tokens, one `NAME SCOPE,SCOPE sha256:HEX` per line; scopes: check, admit, metrics, history.",
        metavar="FILE",
    ),
]
Only = Annotated[
    list[Route] | None,
    option("Listening", f"Enable only this evaluation route: {', '.join(Route)}; repeatable.", metavar="ROUTE"),
]
TlsCert = Annotated[Path | None, option("Listening", "Certificate chain (PEM).", metavar="FILE")]
TlsKey = Annotated[Path | None, option("Listening", "Private key of the certificate (PEM).", metavar="FILE")]
TlsClientCa = Annotated[
    Path | None,
    option(
        "Listening",
        "CA certificates for client authentication (PEM); evaluation routes then require a client certificate.",
        metavar="FILE",
    ),
]
UnreadyOnFault = Annotated[
    bool,
    option(
        "Operation",
        "Report not ready while changed policies, tokens, certificates or state cannot be loaded.",
        "--unready-on-fault",
    ),
]
Drain = Annotated[
    float,
    option(
        "Operation",
        "How long to keep serving, reported as not ready, after SIGTERM or SIGINT.",
        metavar="SECONDS",
        min=0,
    ),
]
DecisionLogPlace = Annotated[
    Path | None,
    option("Operation", "Directory for the decision log (JSON Lines); `-` writes to standard output.", metavar="DIR"),
]
LogMaxBytes = Annotated[
    int, option("Operation", "Maximum size of a decision log file before rotation.", metavar="N", min=1)
]
LogKeep = Annotated[int, option("Operation", "Number of log files to keep.", metavar="N", min=1)]
State = Annotated[
    list[Path] | None,
    option(
        "State",
        "State to evaluate changes against: a file or directory, reloaded when it changes; repeatable. "
        "Without it, requests must contain the state.",
        metavar="PATH",
    ),
]
Store = Annotated[
    str | None,
    option(
        "State",
        "Audit store whose history is shown at `/`: sqlite:///audits.db or postgresql://user@host/database.",
        metavar="URL",
    ),
]
MaxAge = Annotated[
    float | None, option("State", "Reject decisions if the snapshot is older than this.", metavar="SECONDS", min=0)
]
MaxBody = Annotated[int, option("Limits", "Maximum request body size.", metavar="N", min=1)]
MaxPending = Annotated[int, option("Limits", "Maximum total body size of all concurrent requests.", metavar="N", min=1)]
Deadline = Annotated[
    float,
    option("Limits", "Maximum time per request; requests that take longer are rejected.", metavar="SECONDS", min=0.001),
]
Workers = Annotated[int, option("Limits", "Number of worker processes; 0 is one per processor.", metavar="N", min=0)]
Waiting = Annotated[
    int,
    option("Limits", "Maximum number of queued requests, over all processes; others are rejected.", metavar="N", min=0),
]
_DEFAULTS = ServerOptions()


@dataclass(kw_only=True, repr=False, eq=False)
class ServeOptions(CriteriaOptions, LogOptions):
    """The options of `policyeng serve` in addition to those of the server itself."""


def _list_given(
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
    given = locals()
    changed = {
        "only": tuple(only or _DEFAULTS.only),
        "snapshot": tuple(snapshot or ()),
        "workers": workers or processors(),
    }
    return ServerOptions(**given | changed)


@with_group("server", _list_given)
@with_options(ServeOptions)
def serve(args: ServeOptions, server: ServerOptions) -> int:
    """Run an HTTP server that checks documents and decides whether changes are allowed (docs/server.md).

    The server prints `policyeng: listening on URL` when it accepts requests, and logs each on standard error. It
    reloads its files when they change and on SIGHUP. SIGTERM and SIGINT shut it down with exit code 0.

    Examples:
      policyeng serve --snapshot snapshot.json --max-snapshot-age 3600
      policyeng serve --host 0.0.0.0 --tokens tokens.txt --snapshot snapshots/ --decision-log decisions/
      curl http://127.0.0.1:8180/v1/check --json @snapshot.json
    """
    require_posix("`policyeng serve`", "run it in WSL or a container")
    _require_extra()
    from policyeng.engines.embedded import compile_every_form
    from policyeng.server.file_watcher import PolicyReload
    from policyeng.server.run import serve as serve_service

    require_text(args.select, args.ignore)
    args.start_logging()

    def load(settings: Settings) -> EvaluationSetup:
        setup = args.setup(settings)
        compile_every_form(setup.bundle)  # now, so that the first request does not wait for it or fail
        return setup

    with show_progress("reading"):
        paths = (*args.policies, *map(path_given, args.given_data), *settings_files(args.config))
        setup = PolicyReload(args.settings, load, paths)
        service = _service(server, setup)
    serve_service(service, lambda url: print_line(f"policyeng: listening on {url}"))
    return 0


def _require_extra() -> None:
    """Check that the optional dependencies are installed.

    Raises:
        UsageError: with the command that installs them.
    """
    try:
        import fastapi  # noqa: F401  # only to check that it is installed
        import httptools  # noqa: F401  # the same
        import prometheus_client  # noqa: F401  # the same
        import uvicorn  # noqa: F401  # the same
        import uvloop  # noqa: F401  # the same
    except ModuleNotFoundError as error:
        message = f"`policyeng serve` requires `{error.name}`, which is not installed"
        raise UsageError(message, remedy="run `pip install 'policyeng[server]'`") from None


def _service(server: ServerOptions, setup: PolicyReload) -> Service:
    """Create the service and read its files.

    Raises:
        UsageError, InputError: the tokens, the state or the certificate cannot be read, or the log cannot be written.
    """
    from policyeng.server.authentication import Certificates, read_tokens
    from policyeng.server.file_watcher import Watched
    from policyeng.server.metrics import ServerMetrics
    from policyeng.server.service import Service, read_state

    certificates = tokens = state = None
    if server.tls_cert is not None and server.tls_key is not None:
        certificates = Certificates(server.tls_cert, server.tls_key, server.tls_client_ca)
    if (file := server.tokens) is not None:
        tokens = Watched("tokens", lambda: read_tokens(file), (file,))
    if server.snapshot:
        state = Watched("state", lambda: read_state(server.snapshot, setup.current.bundle.wanted), server.snapshot)
    metrics, log, reports = ServerMetrics(server.workers), _log(server), _reports(server)
    service = Service(
        server, setup, state, tokens, certificates=certificates, log=log, metrics=metrics, reports=reports
    )
    metrics.watch(service)
    return service


def _reports(server: ServerOptions) -> Reports | None:
    """Open the audit history to show; None without a store.

    Raises:
        UsageError, StoreError: the store does not exist or cannot be used.
    """
    if server.store is None:
        return None
    from policyeng.audit.store import open_store
    from policyeng.server.history_site import Reports

    store = open_store(server.store)
    store.close()  # each worker connects for itself
    return Reports(store)


def _log(server: ServerOptions) -> DecisionLog | None:
    """Open the decision log; None without one.

    Raises:
        UsageError: the log cannot be written.
    """
    from policyeng.server.decision_log import DecisionLog, Segments, Standard

    if server.decision_log is None:
        return None
    labels = {"app": "policyeng", "id": str(uuid4()), "version": __version__}
    if str(server.decision_log) == "-":
        return DecisionLog(Standard(), labels)
    segments = Segments(server.decision_log, longest=server.decision_log_max_bytes, keep=server.decision_log_keep)
    return DecisionLog(segments, labels)
