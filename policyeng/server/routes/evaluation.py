"""`POST /v1/check` and `POST /v1/admit`: evaluate a document, or decide on a change before it is made."""

from __future__ import annotations

from datetime import UTC

import orjson
from msgspec.structs import replace

from policyeng.context import EvaluationSetup
from policyeng.errors import InputError
from policyeng.evaluation import evaluate
from policyeng.models import (
    AppliedSettings,
    Blame,
    Decision,
    Exemption,
    Problem,
)
from policyeng.parsing.json_pointer import escaped
from policyeng.report.json import render
from policyeng.server import openapi
from policyeng.server.authentication import TokenScope
from policyeng.server.options import Route
from policyeng.server.request_body import BODY, JSON, YAML, json_of, refuse_body
from policyeng.server.routes.handling import Endpoint, RouteRequest, RouteResponse
from policyeng.server.schemas import CheckDocument
from policyeng.server.service import Service, SnapshotState, decide
from policyeng.sources import (
    ChangesRead,
    exemptions_of,
    normalize_context,
    read_document,
    read_inputs,
)
from policyeng.sources.parsed import raise_errors
from policyeng.sources.validation import validated

_REMEDY = (
    'send a resource, an id, `{"operation": ...}`, a list of them, what-if output, a plan, or any of that as '
    '`{"change": ..., "state": ...}`'
)

#: The options of a request that replace settings of the server.
_CRITERIA = ("fail_on", "strict_unknown")


def decided(service: Service, request: RouteRequest) -> RouteResponse:
    """Decide on a change.

    Raises:
        RefusedError: the body is no JSON (400), there is no state (422), or it is too old (503).
        InputError: nothing in the body can be read as a change, or it states none.
        PolicyengError: as `policyeng.admit`.
    """
    setup = service.setup.current
    document = json_of(request.content)
    read, given, is_dry_run = _parts(document)
    state = None if given is None else _state(given, setup, request)
    state, age = service.choose_state(state, request.at)
    if given is not None:
        decision = decide(setup, state, read, request.at, Blame.TOUCHED, with_standing=request.standing)
    else:
        decision = service.decided(
            setup,
            state,
            read,
            request.at,
            Blame.TOUCHED,
            is_dry_run=is_dry_run,
            with_standing=request.standing,
        )
    return RouteResponse(rendered(decision, request.decision_id, age), setup, document, decision, age)


def rendered(decision: Decision, decision_id: str, age: float) -> bytes:
    """Return an `AdmitAnswer` as JSON, with its id and the age of the state first: equal decisions end alike."""
    begun = orjson.dumps({"decisionId": decision_id, "stateAgeSeconds": age})
    return begun[:-1] + b"," + decision.model_dump_json(by_alias=True, fallback=str).encode()[1:]


def _parts(document: object) -> tuple[ChangesRead, object, bool]:
    """Return the change and the state that a body brings, and whether it is a dry run; None for a state that it lacks.

    Raises:
        RefusedError: it has other keys or values.
        InputError: as for `read_document`.
    """
    if not isinstance(document, dict) or "change" not in document:
        return read_document(document, BODY), None, False
    if surplus := sorted(document.keys() - {"change", "state", "dryRun"}):
        raise refuse_body(f"unknown key `{surplus[0]}` next to `change`", f"/{escaped(surplus[0])}", _REMEDY)
    is_dry_run = document.get("dryRun", False)
    if not isinstance(is_dry_run, bool):
        raise refuse_body("`dryRun` is not true or false", "/dryRun", "give `true` or `false`")
    return read_document(document["change"], BODY), document.get("state"), is_dry_run


def _state(given: object, setup: EvaluationSetup, request: RouteRequest) -> SnapshotState:
    """Read the state before the change from a request; its time is now unless it has one."""
    read = read_inputs(["-"], stdin=orjson.dumps(given), **setup.bundle.wanted)
    try:
        raise_errors(read.problems)
    except InputError as error:
        message = f"the state cannot be read: {error.message}"
        raise refuse_body(message, "/state", "send a snapshot that `policyeng check` reads") from None
    return SnapshotState(read.snapshot, read.snapshot.taken_at or request.at)


def report_on_document(service: Service, request: RouteRequest) -> RouteResponse:
    """Return the report on a document.

    Raises:
        RefusedError: the body is no JSON (400), or its options do not fit (422).
        PolicyengError: as `evaluate`.
    """
    setup = service.setup.current
    content, options = _read_request(request)
    exemptions, problems = _exemptions(options, setup)
    requested = {name: value for name in _CRITERIA if (value := getattr(options, name)) is not None}
    criteria = replace(setup.options(options.as_of or request.at), exemptions=exemptions, **requested)
    read = read_inputs(
        ["-"],
        from_format=options.from_,
        max_bytes=max(len(content), 1),
        stdin=content,
        context=normalize_context(options.scope, options.workspace, {}),
        **setup.bundle.wanted,
    )
    evaluation = evaluate(setup.bundle, read.snapshot, replace(criteria, problems=(*read.problems, *problems)))
    evaluation = evaluation.model_copy(update={"settings": _apply_settings(setup, options)})
    return RouteResponse(render(evaluation).encode(), setup, outcome=evaluation)


def _apply_settings(setup: EvaluationSetup, options: CheckDocument) -> AppliedSettings:
    """Return the settings of the server, without those that the request replaces."""
    replaced = {name for name in ("exemptions", *_CRITERIA) if getattr(options, name) is not None}
    changes = tuple(change for change in setup.applied.changes if change.setting not in replaced)
    return setup.applied.model_copy(update={"changes": changes}) if replaced else setup.applied


def _read_request(request: RouteRequest) -> tuple[bytes, CheckDocument]:
    """Read the document to evaluate, and its options."""
    if request.media_type in YAML:
        return request.content, CheckDocument(snapshot=None)
    document = json_of(request.content)
    if b'"snapshot"' not in request.content or not isinstance(document, dict) or "snapshot" not in document:
        return request.content, CheckDocument(snapshot=None)
    snapshot, document["snapshot"] = document["snapshot"], None
    options, faults = validated(CheckDocument, document, "")
    if options is None:
        raise refuse_body(faults[0].message, faults[0].place, faults[0].remedy)
    try:
        as_of = options.as_of and options.as_of.astimezone(UTC)
    except OverflowError:
        raise refuse_body("`asOf` is out of range", "/asOf", "write a time of the years 1 to 9999") from None
    return orjson.dumps(snapshot), options.model_copy(update={"as_of": as_of})


def _exemptions(options: CheckDocument, setup: EvaluationSetup) -> tuple[list[Exemption], list[Problem]]:
    """Those of the request, else the active ones; as in a file, a faulty one is a problem and hides no other."""
    if options.exemptions is None:
        return list(setup.exemptions), list(setup.problems)
    document = {"exemptions": options.exemptions}
    exemptions, problems = exemptions_of(document, BODY, max_days=setup.settings.max_exemption_days)
    return list(exemptions), list(problems)


CHECK = Endpoint(Route.CHECK, TokenScope.CHECK, openapi.check, report_on_document, takes=(JSON, *YAML))
ADMIT = Endpoint(Route.ADMIT, TokenScope.ADMIT, openapi.admit, decided)
