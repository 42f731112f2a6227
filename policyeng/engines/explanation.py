"""Explain evaluations: Rego expression by expression, Python by what a policy reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import lru_cache

import orjson

from policyeng import rego
from policyeng.bundle import Bundle
from policyeng.engines.embedded import LIMITS, ProgramKey, RegoEvaluator, documents_of, json_value, link_bundle
from policyeng.engines.python import input_of
from policyeng.engines.request import EvaluationRequest, Judgement, Pair
from policyeng.engines.tracing import trace
from policyeng.errors import EngineError, UsageError
from policyeng.frozen import replace
from policyeng.models import JsonObject, Unknown
from policyeng.models.explanation import ExplanationNode
from policyeng.parsing.json_pointer import keys_of
from policyeng.redaction import masked, masked_message
from policyeng.rego.explanation import ExplainedProgram, ExpressionEvaluation, RuleEvaluation
from policyeng.rego.markers import Undecided, show
from policyeng.rego.paths import write_path
from policyeng.rego.values import UNDEFINED, Value


class Explainer:
    """Explains the pairs of requests with one bundle, and queries."""

    def __init__(self, bundle: Bundle) -> None:
        """Compile the Rego of a bundle in the form that explains.

        Raises:
            EngineError: the bundle does not compile.
        """
        self._files = {place: path for path, place in bundle.places.items()}
        self._program = _compile_explained(ProgramKey(bundle))

    def explain_pair(
        self, request: EvaluationRequest, pair: Pair
    ) -> tuple[Judgement, tuple[ExplanationNode, ...], bool]:
        """Evaluate a pair of the request; return the result, how it came about, and whether that is all of it."""
        request = next(part for part in request.parts() if pair.policy in part.positions)
        if not request.bundle.policies[pair.policy].rules:
            return *_explain_python(request, pair), True
        thread = self._program.new_thread()
        judgement = RegoEvaluator(request).explain(pair, thread)
        return judgement, tuple(map(self._convert, thread.evaluation.parts)), thread.is_whole

    def evaluate(
        self, query: str, request: EvaluationRequest, subject: int | None = None
    ) -> tuple[Value, tuple[Unknown, ...], tuple[ExplanationNode, ...]]:
        """Evaluate a Rego query.

        Args:
            query: Rego, whose `input` is that of policies, without parameters.
            request: the snapshot.
            subject: the position of `input.resource`; None for no resource.

        Returns:
            the value as JSON, `UNDEFINED` if there is none; what is not known; and how the value came about.

        Raises:
            UsageError: the query is not well formed, or ends in an error.
        """
        documents = documents_of(request)
        as_of = request.as_of.astimezone(UTC).isoformat().replace("+00:00", "Z")
        input_: dict[str, Value] = {"snapshot": documents.snapshot, "parameters": {}, "as_of": as_of}
        if subject is not None:
            input_["resource"] = documents.subjects[subject]
        return self._evaluate(query, input_)

    def evaluate_document(
        self, query: str, document: Value
    ) -> tuple[Value, tuple[Unknown, ...], tuple[ExplanationNode, ...]]:
        """Evaluate a Rego query whose `input` is a document; see `evaluate`."""
        return self._evaluate(query, document)

    def _evaluate(self, query: str, input_: Value) -> tuple[Value, tuple[Unknown, ...], tuple[ExplanationNode, ...]]:
        try:
            (value, causes), thread = self._program.evaluate(query, input_, LIMITS)
        except (rego.RegoError, rego.EvaluationError, NotImplementedError) as error:
            raise UsageError(f"the query cannot be evaluated: {error}") from None
        shown = UNDEFINED if value is UNDEFINED else masked(_plain(value))
        nodes = tuple(map(self._convert, thread.evaluation.parts))
        return shown, tuple(Unknown(masked_message(reason), pointer) for pointer, reason in causes), nodes

    def _convert(self, part: ExpressionEvaluation | RuleEvaluation) -> ExplanationNode:
        parts = tuple(map(self._convert, part.parts))
        unknown = tuple(Unknown(masked_message(reason), pointer) for pointer, reason in part.causes)
        if isinstance(part, RuleEvaluation):
            values = {f"argument {number}": _show(value) for number, value in enumerate(part.arguments, 1)}
            if part.value is not UNDEFINED:
                values["result"] = _show(part.value)
            return ExplanationNode(
                kind="rule",
                outcome=str(part.outcome),
                text=write_path(part.path),
                file=self._files.get(part.file, part.file),
                line=part.line,
                values=values,
                unknown=unknown,
                parts=parts,
            )
        return ExplanationNode(
            kind="expression",
            outcome=str(part.outcome),
            text=masked_message(part.step.text),
            file=self._files.get(part.step.file, part.step.file),
            line=part.step.line,
            values={text: _show(value, text) for text, value in part.values.items()},
            missing=part.missing,
            unknown=unknown,
            solutions=part.solutions,
            parts=parts,
        )


@lru_cache(maxsize=2)
def _compile_explained(key: ProgramKey) -> ExplainedProgram:
    bundle = key.bundle
    try:
        return ExplainedProgram(link_bundle(bundle, orjson.loads(bundle.data_bytes)).program)
    except rego.RegoError as error:
        raise EngineError(f"the bundle does not compile:\n{error}", place=(bundle.name,)) from error


def _show(value: Value, text: str = "") -> object:
    """Return a value as JSON, with secrets masked; the name of what is in `text` tells whether it is one."""
    return masked(_plain(value), "/" + text.replace(".", "/"))


def _plain(value: Value) -> Value:
    shown = show(value)
    return json_value(shown if not isinstance(shown, list) else list(shown))


def _explain_python(request: EvaluationRequest, pair: Pair) -> tuple[Judgement, tuple[ExplanationNode, ...]]:
    """Return the result of a Python policy, and the values that it read."""
    subjects = input_of(request)[1]
    documents = {str(number): document for number, document in enumerate(subjects)}
    documents["input"] = {"parameters": request.parameters[pair.policy]}
    [(_, traced)] = trace(
        replace(request, positions={pair.policy: [pair.subject]}), lambda: [*map(str, range(len(subjects)))]
    )
    reads = [
        read
        for read in traced.reads or ()
        if read.kind == "value" and (read.document != "input" or read.pointer.startswith("/parameters/"))
    ]
    # Of an object only what was read of it is shown.
    holders = {(read.document, read.pointer.rpartition("/")[0]) for read in reads}
    nodes = tuple(
        _read(documents[read.document], read.pointer, _name(read.document, subjects, pair))
        for read in reads
        if (read.document, read.pointer) not in holders
    )
    return traced.judgement, nodes


def _name(document: str, subjects: Sequence[JsonObject], pair: Pair) -> str:
    """Return what the pointer of a read begins with, unless it is of the evaluated resource."""
    if document == "input" or int(document) == pair.subject:
        return ""
    return "workspace:" if int(document) == pair.workspace else f"{subjects[int(document)].get('id', '')}:"


def _read(document: Value, pointer: str, name: str) -> ExplanationNode:
    text = f"{name}{pointer}"
    try:
        value: Value = document
        for key in keys_of(pointer):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return ExplanationNode(kind="read", outcome="value", text=text, values={"result": _show(value, pointer)})
    except Undecided as error:
        unknown = tuple(Unknown(masked_message(reason), where) for where, reason in error.causes)
        return ExplanationNode(kind="read", outcome="unknown", text=text, unknown=unknown)
    except (KeyError, IndexError, TypeError, ValueError):
        return ExplanationNode(kind="read", outcome="undefined", text=text)
