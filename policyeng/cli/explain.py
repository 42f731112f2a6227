"""`policyeng explain` and `policyeng eval`: how a finding comes about, and the value of a Rego query."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli import options
from policyeng.cli.console import detect_terminal, print_line
from policyeng.cli.context import find_known, moment_of, require_text
from policyeng.cli.evaluation_options import InputOptions, SetupOptions, reading_lines, refuse_urls
from policyeng.cli.option_groups import with_options
from policyeng.context import EvaluationSetup
from policyeng.engines.explanation import Explainer
from policyeng.errors import InputError, PolicyengError, UsageError, suggest_nearest
from policyeng.evaluation.context import prepare
from policyeng.evaluation.explanation import explain_findings, prepare_queries
from policyeng.models import Finding, Outcome, Snapshot, Unknown, lowered
from policyeng.models.explanation import ExplanationNode, FindingExplanation
from policyeng.rego import UNDEFINED
from policyeng.report.escaping import compact
from policyeng.report.explanation import node_lines, nodes_as_json, render_html, render_json, render_text
from policyeng.report.phrases import shorten_id, unknown_sentence
from policyeng.sources import Inputs, read_inputs, read_report
from policyeng.sources.parsed import raise_errors

#: Findings that are explained if no resource is named.
_MOST_EXPLAINED = 5
_FORMATS: Mapping[str, Callable[..., str]] = {"text": render_text, "json": render_json, "html": render_html}

PolicyId = Annotated[str, typer.Argument(metavar="POLICY", help="The id of a policy, such as AML-NET-001.")]
ExplainedInputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Files or directories, as for `check`, or a JSON report of `check`."),
]
Resource = Annotated[
    str | None,
    typer.Option("--resource", metavar="ID", help="The ARM id or the name of the resource."),
]
Query = Annotated[str | None, typer.Argument(metavar="QUERY", help='A Rego query, such as `data.lib.words.trim("a")`.')]
QueryInputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="FILE", help="A file or directory, as for `check`, for `input`; repeatable."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Show what was true, false and not known, with values.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Also show what rules of other files evaluated, such as those of libraries.")
]
Interactive = Annotated[bool, typer.Option("--interactive", "-i", help="Read queries until the end of the input.")]
ExplanationFormat = Annotated[
    str, typer.Option("--format", "-f", metavar="FORMAT", help=f"Format: {', '.join(_FORMATS)}.")
]


@dataclass(kw_only=True, repr=False, eq=False)
class ExplainOptions(InputOptions, SetupOptions):
    """The options of `policyeng explain`."""

    resource: Resource = None
    verbose: Verbose = False
    format_: ExplanationFormat = "text"
    as_of: options.AsOf = None


@dataclass(kw_only=True, repr=False, eq=False)
class EvalOptions(InputOptions, SetupOptions):
    """The options of `policyeng eval`."""

    input_: QueryInputs = None
    resource: Resource = None
    explain: Explain = False
    interactive: Interactive = False
    format_: options.PlainFormat = "text"
    as_of: options.AsOf = None


@with_options(ExplainOptions)
def explain(policy_id: PolicyId, inputs: ExplainedInputs, args: ExplainOptions) -> int:
    """Explain findings: which conditions of a policy were true, false or not known, with the values that it read.

    Without --resource, the findings that do not pass are explained. The exit code is 0 if there is one.

    Examples:
      policyeng explain AML-NET-001 snapshot.json
      policyeng explain AML-NET-001 snapshot.json --resource ws-clinical --format html > why.html
      policyeng explain AML-NET-001 report.json
    """
    require_text([policy_id], inputs, [args.resource] if args.resource is not None else None)
    format_ = find_known(args.format_, _FORMATS, "format")
    files, reported = _files_of(inputs, policy_id)
    setup = _setup(args)
    chosen = [each for each in setup.bundle.policies if lowered(each.id) == lowered(policy_id)]
    if not chosen:
        meant = suggest_nearest(policy_id.upper(), [each.id for each in setup.bundle.policies])
        raise UsageError(f"there is no policy `{policy_id}`{meant}", remedy="`policyeng policies list` lists them")
    snapshot = _read(files, args, setup).snapshot
    parameters = {name: values for name, values in setup.parameters.items() if name == chosen[0].id}
    context = prepare(setup.bundle.only(chosen), snapshot, parameters)
    explained = partial(_is_explained, resource=args.resource, reported=reported)
    explanations = list(explain_findings(context, moment_of(args.as_of), explained))
    if not explanations:
        raise _refuse_nothing(chosen[0].id, args.resource, reported)
    for line in _notes(explanations, args.resource):
        print_line(f"policyeng: {line}", error=True)
    shown = explanations if args.resource is not None else explanations[:_MOST_EXPLAINED]
    width = detect_terminal()[1]
    rendered = render_text(shown, width, verbose=args.verbose) if format_ == "text" else _FORMATS[format_](shown)
    print_line(rendered.rstrip("\n"))
    return 0


def _files_of(inputs: Sequence[str], policy: str) -> tuple[list[str], frozenset[str] | None]:
    """Return the files to read, and the lower-case ids of resources with findings in the reports among the inputs.

    Raises:
        InputError: a report is not valid, or its findings have no files that still exist.
    """
    refuse_urls(inputs)
    files: list[str] = []
    reported: set[str] | None = None
    for name in inputs:
        if not _is_report(Path(name)):
            files.append(name)
            continue
        reported = reported or set()
        findings = [finding for finding in read_report(name).findings if lowered(finding.policy) == lowered(policy)]
        reported |= {lowered(finding.resource) for finding in findings}
        read = dict.fromkeys(finding.location.file for finding in findings if finding.location.file)
        if missing := [file for file in read if not Path(file).exists()]:
            message = f"the report is about `{missing[0]}`, which does not exist here"
            raise InputError(message, place=(name,), remedy="run it in the directory of that `check`")
        if not read:
            raise InputError(
                f"the report has no finding of `{policy}` in a file", place=(name,), remedy="give the inputs"
            )
        files += read
    return files, frozenset(reported) if reported is not None else None


def _is_report(path: Path) -> bool:
    """Check whether a file is a JSON report, of which the first member is its version."""
    try:
        with path.open("rb") as stream:
            return b'"reportVersion"' in stream.read(200)
    except OSError:
        return False


def _setup(args: SetupOptions) -> EvaluationSetup:
    return args.setup(args.settings())


def _read(files: Sequence[str], args: ExplainOptions | EvalOptions, setup: EvaluationSetup) -> Inputs:
    """Read the inputs of a command.

    Raises:
        InputError: something in them cannot be read.
    """
    stdin = sys.stdin.buffer.read() if "-" in files and sys.stdin is not None else None
    read = read_inputs(
        files,
        from_format=args.from_format(),
        stdin=stdin,
        context=args.context(),
        walk=args.walk(args.settings(exclude=args.exclude), [*args.policies, *args.given_data, args.config]),
        **setup.bundle.wanted,
    )
    for line in reading_lines(read.read, read.ledger, show_skipped=args.show_skipped):
        print_line(line, error=True)
    raise_errors(read.problems)
    return read


def _is_explained(finding: Finding, resource: str | None, reported: frozenset[str] | None) -> bool:
    if reported is not None and lowered(finding.resource) not in reported:
        return False
    return finding.outcome is not Outcome.PASS if resource is None else _is_named(finding.resource, resource)


def _is_named(arm_id: str, name: str) -> bool:
    """Check whether a text is the id of a resource, its last name, or its names from that of its workspace on."""
    whole, text = lowered(arm_id), lowered(name).rstrip("/")
    return text in (whole, whole.rpartition("/")[2], lowered(shorten_id(arm_id)))


def _refuse_nothing(policy: str, resource: str | None, reported: frozenset[str] | None) -> InputError:
    """Return the error where there is no finding to explain."""
    if resource is not None:
        message = f"`{policy}` has no finding for `{resource}`"
        return InputError(message, remedy="`policyeng check --verbose` lists the findings")
    where = " that the report names" if reported is not None else ""
    message = f"`{policy}` passes for each resource{where}, or applies to none"
    return InputError(message, remedy="name a resource with --resource to see why")


def _notes(explanations: Sequence[FindingExplanation], resource: str | None) -> Iterator[str]:
    if resource is None and len(explanations) > _MOST_EXPLAINED:
        yield f"explained the first {_MOST_EXPLAINED} of {len(explanations)} findings; --resource chooses another"


@with_options(EvalOptions)
def evaluate(args: EvalOptions, query: Query = None) -> int:
    """Evaluate a Rego query with the policies, their libraries and facts, and print its value.

    `input` is that of policies: `input.snapshot`, and `input.resource` if there is one resource or --resource names it.
    For policies on documents, `input` is the document. Exit codes: 0 a value, or none; 2 the value is not known.

    Examples:
      policyeng eval 'data.lib.words.normalize("  A ")'
      policyeng eval 'input.resource.properties' --input snapshot.json --resource ws-clinical
      policyeng eval 'data.lib.networks.is_project(input.resource)' --input snapshot.json --explain
      policyeng eval -i --input snapshot.json
    """
    require_text([query] if query is not None else None, args.input_, [args.resource] if args.resource else None)
    if (query is None) != args.interactive:
        raise UsageError("give either a query or --interactive", remedy="policyeng eval 'input.resource.type'")
    setup = _setup(args)
    session = _QuerySession(args, setup, _read(args.input_, args, setup).snapshot if args.input_ else Snapshot())
    if query is not None:
        return session.answer(query)
    session.run()
    return 0


class _QuerySession:
    """Queries on one input."""

    def __init__(self, args: EvalOptions, setup: EvaluationSetup, snapshot: Snapshot) -> None:
        """Prepare the snapshot.

        Raises:
            EngineError: the policies do not compile.
            UsageError: the snapshot does not have the resource.
        """
        self._args = args
        self._explainer = Explainer(setup.bundle)
        self._documents = snapshot.documents
        context = prepare(setup.bundle, snapshot, setup.parameters)
        self._subjects = [subject.reported_id for subject in context.estate.subjects]
        self._request = prepare_queries(context, moment_of(args.as_of))
        self.subject = self._find(args.resource) if args.resource else 0 if len(self._subjects) == 1 else None

    def _find(self, name: str) -> int:
        matching = [number for number, arm_id in enumerate(self._subjects) if _is_named(arm_id, name)]
        if len(matching) != 1:
            known = ", ".join(f"`{shorten_id(arm_id)}`" for arm_id in self._subjects[:5]) or "none"
            what = "several resources are" if matching else "no resource is"
            raise UsageError(f"{what} called `{name}`", remedy=f"give the ARM id; the first resources are {known}")
        return matching[0]

    def answer(self, query: str) -> int:
        """Print the value of a query, and return the exit code.

        Raises:
            UsageError: the query is not well formed, or ends in an error.
        """
        if self._documents:
            value, unknown, nodes = self._explainer.evaluate_document(query, self._documents[0].content)
        else:
            value, unknown, nodes = self._explainer.evaluate(query, self._request, self.subject)
        if self._args.format_ == "json":
            print_line(_as_json(value, unknown, nodes if self._args.explain else ()))
        else:
            for line in self._lines(query, value, unknown, nodes):
                print_line(line)
        return 2 if unknown else 0

    def _lines(
        self, query: str, value: object, unknown: Sequence[Unknown], nodes: Sequence[ExplanationNode]
    ) -> Iterator[str]:
        if unknown and value in (UNDEFINED, []):
            yield "unknown"
        elif value is UNDEFINED:
            yield "undefined"
        else:
            text = compact(value)
            is_long = isinstance(value, dict | list) and len(text) > detect_terminal()[1]
            yield from json.dumps(value, indent=2, ensure_ascii=False).splitlines() if is_long else [text]
        yield from (f"not known: {unknown_sentence(entry)}" for entry in unknown)
        if self.subject is None and "input.resource" in query and not self._documents:
            yield "`input.resource` is not set: name a resource of the input with --resource"
        if self._args.explain:
            yield ""
            yield from node_lines(nodes, detect_terminal()[1], verbose=True)

    def run(self) -> None:
        """Read queries from standard input until its end; a terminal has editing and a history."""
        if sys.stdin.isatty():
            import readline  # edits the lines of `input`

            readline.parse_and_bind("set editing-mode emacs")
            print_line(
                "Rego queries; `:explain` switches explanations, `:resource ID` chooses a resource, Ctrl-D ends."
            )
        while True:
            try:
                query = input("> " if sys.stdin.isatty() else "").strip()
            except EOFError:
                return
            try:
                self._obey(query)
            except PolicyengError as error:
                print_line(str(error), error=True)

    def _obey(self, query: str) -> None:
        command, _, argument = query.partition(" ")
        if command == ":explain":
            self._args = replace(self._args, explain=not self._args.explain)
        elif command == ":resource":
            self.subject = self._find(argument.strip())
        elif query:
            self.answer(query)


def _as_json(value: object, unknown: Sequence[Unknown], nodes: Sequence[ExplanationNode]) -> str:
    document: dict[str, object] = {} if value is UNDEFINED else {"value": value}
    if unknown:
        document["unknown"] = [{"msg": entry.msg, "path": entry.path} for entry in unknown]
    if nodes:
        document["evaluation"] = nodes_as_json(nodes)
    return json.dumps(document, indent=2, ensure_ascii=False)
