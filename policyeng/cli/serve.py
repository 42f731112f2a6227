"""`policyeng serve`: the same verdicts over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from policyeng import __version__
from policyeng.bundle.data_documents import path_given
from policyeng.cli import options
from policyeng.cli.loading import require_text, settings_files, settings_of
from policyeng.cli.printing import busy, say
from policyeng.cli.serving import with_serving
from policyeng.cli.trust import with_trust
from policyeng.configuration import Settings
from policyeng.errors import UsageError
from policyeng.in_force import Held, held_of
from policyeng.server.options import ServerOptions

if TYPE_CHECKING:
    from policyeng.server.decision_log import DecisionLog
    from policyeng.server.holding import Holding
    from policyeng.server.reports import Reports
    from policyeng.server.service import Service


@with_trust
@with_serving
def serve(
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    exemptions: options.Exemptions = None,
    no_exemptions: options.NoExemptions = False,
    config: options.Config = None,
    profile: options.Profile = None,
    fail_on: options.FailOn = None,
    strict_unknown: options.StrictUnknown = False,
    *,
    trust: Mapping[str, object],
    server: ServerOptions,
) -> int:
    """Answer over HTTP what `check` says of a document, and whether a change may be made (docs/server.md).

    It prints `policyeng: listening on URL` once it takes requests. What it reads is read again when it changes and on
    SIGHUP. SIGTERM and SIGINT end it with exit 0.

    Examples:
      policyeng serve --snapshot snapshot.json --max-snapshot-age 3600
      policyeng serve --host 0.0.0.0 --tokens tokens.txt --snapshot snapshots/ --decision-log decisions/
      curl http://127.0.0.1:8180/v1/check --json @snapshot.json
    """
    _require_extra()
    from policyeng.engines.embedded import compile_rego
    from policyeng.server.holding import Holding
    from policyeng.server.running import serve as serve_service

    require_text(select, ignore)
    flags: dict[str, object] = {"select": select, "ignore": ignore, "exemptions": exemptions, "fail_on": fail_on}
    flags |= {"profile": profile, "strict_unknown": strict_unknown, **trust}

    def load(settings: Settings) -> Held:
        held = held_of(policy or (), data or (), settings, no_exemptions=no_exemptions)
        compile_rego(held.bundle)  # compiled now, or the first request would wait for it, and learn that it cannot be
        return held

    with busy("reading"):
        paths = (*(policy or ()), *map(path_given, data or ()), *settings_files(config))
        holding = Holding(lambda: settings_of(flags, config), load, paths)
        service = _service(server, holding)
    serve_service(service, lambda url: say(f"policyeng: listening on {url}"))
    return 0


def _require_extra() -> None:
    """Refuse to serve where what it takes is not installed.

    Raises:
        UsageError: naming how to install it.
    """
    try:
        import fastapi  # noqa: F401  # asked for only
        import httptools  # noqa: F401  # the same
        import prometheus_client  # noqa: F401  # the same
        import uvicorn  # noqa: F401  # the same
        import uvloop  # noqa: F401  # the same
    except ModuleNotFoundError as error:
        message = f"`{error.name}` is not installed, which `policyeng serve` needs"
        raise UsageError(message, remedy="run `pip install 'policyeng[server]'`") from None


def _service(server: ServerOptions, holding: Holding) -> Service:
    """The parts of the server, all of them read once.

    Raises:
        UsageError, InputError: the tokens, the state or the certificate cannot be read, or the log not be written.
    """
    from policyeng.server.metrics import Metrics
    from policyeng.server.service import Service
    from policyeng.server.state import standing_of
    from policyeng.server.tls import Certificates
    from policyeng.server.tokens import read_tokens
    from policyeng.server.watching import Watched

    certificates = tokens = state = None
    if server.tls_cert is not None and server.tls_key is not None:
        certificates = Certificates(server.tls_cert, server.tls_key, server.tls_client_ca)
    if (file := server.tokens) is not None:
        tokens = Watched("tokens", lambda: read_tokens(file), (file,))
    if server.snapshot:
        state = Watched("state", lambda: standing_of(server.snapshot, holding.current.bundle.wanted), server.snapshot)
    metrics, log, reports = Metrics(server.workers), _log(server), _reports(server)
    service = Service(
        server, holding, state, tokens, certificates=certificates, log=log, metrics=metrics, reports=reports
    )
    metrics.watch(service)
    return service


def _reports(server: ServerOptions) -> Reports | None:
    """What is shown of the history of audits; None where nothing is.

    Raises:
        UsageError, StoreError: there is no such store, or it cannot be used.
    """
    if server.store is None:
        return None
    from policyeng.audit.store import open_store
    from policyeng.server.reports import Reports

    store = open_store(server.store)
    store.close()  # each worker connects for itself
    return Reports(store)


def _log(server: ServerOptions) -> DecisionLog | None:
    """The decision log; None where none is wanted.

    Raises:
        UsageError: it cannot be written there.
    """
    from policyeng.server.decision_log import DecisionLog, Standard
    from policyeng.server.segments import Segments

    if server.decision_log is None:
        return None
    labels = {"app": "policyeng", "id": str(uuid4()), "version": __version__}
    if str(server.decision_log) == "-":
        return DecisionLog(Standard(), labels)
    segments = Segments(server.decision_log, longest=server.decision_log_max_bytes, keep=server.decision_log_keep)
    return DecisionLog(segments, labels)
