"""Pages about frameworks: the controls, the policies that test them, and what no policy checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from policyeng.frameworks import Control, Framework
from policyeng.models import ControlMapping
from policyeng.report.escaping import fold, markdown_text, prose, table
from policyeng.report.phrases import count

#: The first line of every page of frameworks: a file that begins otherwise is not ours.
FRAMEWORK_MARK = "<!-- Written by `policyeng frameworks list --format markdown --output`: edits are lost. -->"
_INDEX = "README.md"
_BASES = {
    "published": "Microsoft's initiative maps the definition of Azure Policy that the policy implements",
    "analogue": "an initiative, or prowler, maps the same setting of another service",
    "derived": "derived from Microsoft's tables between frameworks",
    "own": "our reasoning",
}


def framework_directory(frameworks: Sequence[Framework], known: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a directory: an index as `README.md`, and a page for each framework, under its id.

    Args:
        frameworks: with the mappings of headers.
        known: the titles of the policies of the bundle, by id.
    """
    files = {_INDEX: framework_index(frameworks, known)}
    files |= {f"{framework.id}.md": framework_page(framework, known) for framework in frameworks}
    return {name: f"{FRAMEWORK_MARK}\n\n{text}" for name, text in files.items()}


def framework_index(frameworks: Sequence[Framework], known: Mapping[str, str]) -> str:
    """Return the frameworks with the number of their controls."""
    rows = [
        (
            f"[{markdown_text(one.id)}]({one.id}.md)",
            markdown_text(one.title),
            markdown_text(one.version),
            *_counts(one, known),
        )
        for one in frameworks
    ]
    titles = ("Framework", "Title", "Version", "Controls", "Technical", "Tested by policies", "Mappings")
    words = (
        "A control is tested if a policy maps to it directly. No number here means that a control is met. "
        "See [how to use frameworks](../frameworks.md)."
    )
    return "\n\n".join(["# Frameworks", words, table(titles, rows)]) + "\n"


def _counts(framework: Framework, known: Mapping[str, str]) -> tuple[str, ...]:
    controls = framework.controls
    mappings = sum(mapping.id in known for control in controls for mapping in control.policies)
    technical = sum(control.kind == "technical" for control in controls)
    return str(len(controls)), str(technical), str(sum(bool(direct(one, known)) for one in controls)), str(mappings)


def direct(control: Control, known: Mapping[str, str]) -> list[ControlMapping]:
    """Return the direct mappings of a control to policies of the bundle."""
    return [mapping for mapping in control.policies if mapping.is_direct and mapping.id in known]


def framework_page(framework: Framework, known: Mapping[str, str]) -> str:
    """Return the page of a framework as Markdown; it ends with a newline."""
    dated = f", {framework.date}" if framework.date else ""
    preview = " (preview)" if framework.preview else ""
    tested = [control for control in framework.controls if direct(control, known)]
    rest = [control for control in framework.controls if not direct(control, known)]
    by_hand = [control for control in rest if control.kind == "process" or _related(control, known)]
    parts = [
        f"# {markdown_text(framework.title)}",
        f"`{framework.id}`, version {markdown_text(framework.version)}{dated}{preview}. Source: <{framework.source}>.",
        markdown_text(framework.disclaimer),
        f"{count(len(framework.controls), 'control')}, {len(tested)} of them tested by policies.",
        "Basis of a mapping: " + "; ".join(f"*{name}*: {words}" for name, words in _BASES.items()) + ".",
    ]
    domains: dict[str, list[Control]] = {}
    for control in tested:
        domains.setdefault(control.domain, []).append(control)
    parts.append("## Tested by policies")
    for domain, controls in domains.items():
        parts += [f"### {markdown_text(domain)}"] if domain else []
        parts.append(table(("Control", "Policies", "Related, not counted"), (_row(one, known) for one in controls)))
    parts += _list("By hand", by_hand)
    parts += _list("Not covered", [control for control in rest if control not in by_hand])
    return "\n\n".join(parts) + "\n"


def _related(control: Control, known: Mapping[str, str]) -> list[str]:
    return [mapping.id for mapping in control.policies if not mapping.is_direct and mapping.id in known]


def _row(control: Control, known: Mapping[str, str]) -> tuple[str, ...]:
    policies = ", ".join(
        f"[{mapping.id}](../policies/{mapping.id}.md) ({mapping.basis})" for mapping in direct(control, known)
    )
    return f"{markdown_text(control.id)} {markdown_text(control.title)}", policies, ", ".join(_related(control, known))


def _list(title: str, controls: Sequence[Control]) -> Iterator[str]:
    """Yield the controls of a section by their guidance, which those of a domain often share."""
    if not controls:
        return
    yield f"## {title}"
    yield f"{count(len(controls), 'control')} that no policy tests."
    by_guidance: dict[tuple[str, str], list[Control]] = {}
    for control in controls:
        by_guidance.setdefault((control.domain, control.guidance), []).append(control)
    for (domain, guidance), members in by_guidance.items():
        lines = "\n".join(f"- {markdown_text(one.id)} {markdown_text(one.title)}" for one in members)
        body = f"{prose(guidance)}\n\n{lines}" if guidance else lines
        yield fold(f"{markdown_text(domain) or 'Controls'} ({len(members)})", body)
