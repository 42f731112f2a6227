"""The pages of policies: those in the repository are fresh, and they show the header and the cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from policyeng import frameworks
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import read_cases
from policyeng.bundle.manifest import bundle_yaml
from policyeng.cli.pages_directory import linked, write_pages
from policyeng.frameworks import frameworks_of
from policyeng.policy_docs import MARK, PolicyPage, cited, directory, index, markdown, terminal
from policyeng.policy_docs.page import type_words
from policyeng.testing.observed_reads import observe
from tests.bundles import deny_when, rego, write

GENERATED = Path("docs/policies")
COMMAND = "run `make docs`"
MORE = """\
inspects: [/properties/x, "workspace:/tags/y"]
when_absent: {/properties/x: fail, "workspace:/tags/y": not_judged}
remediation: {text: "Run `az x` & <b>be</b> done.", patch: [{op: add, path: /properties/x, value: "a|b"}]}
source: 'page "a|b"'
controls: {mcsb-v1: [NS-2, NS-3]}
parameters:
  most: {type: integer, minimum: 0, default: 3, description: "how many | at `most`"}
  names: {type: array, items: {type: string, pattern: "^[`|]"}, default: ["`", "|"]}
since: 0.1.0
exemptable: false
"""
CASES = """\
baseline: workspace
with: {virtual_network: {tags: {a: b}}}
pass:
  "a name: with a colon": {patch: {properties: {number: 1}}}
  as it is: {}
fail:
  in July: {patch: {properties: {number: 2}}, path: /properties/x, as_of: "2026-07-01T00:00:00Z", parameters: {most: 4}}
not_judged:
  "a fence ``` in a name": {remove: [workspace]}
"""


@pytest.fixture
def page(tmp_path: Path) -> PolicyPage:
    """The page of a policy with every field, full of what Markdown could obey."""
    policy = rego("a", deny_when("input.resource.properties.number > 1"), more=MORE, severity="critical")
    policy = policy.replace("# custom:", '# description: "One *a* @b.\\n\\nTwo `c|d` <i>e</i>."\n# custom:')
    policy = policy.replace("title: a holds", "title: A | holds")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": policy, "area/a/cases.yaml": CASES}))
    return PolicyPage(bundle.policies[0], read_cases(bundle.policies[0]), given=("--policy", "my policies"))


def pages_of(bundle: Bundle) -> list[PolicyPage]:
    """The pages of a bundle, as the command makes them."""
    tested = frameworks.tested_controls(frameworks_of(bundle))
    return [
        PolicyPage(
            policy,
            read_cases(policy),
            cited=cited(policy, bundle),
            observed=observe(bundle, policy),
            controls=tested.get(policy.id, {}),
        )
        for policy in bundle.policies
    ]


def test_the_pages_of_the_repository_are_fresh(bundle: Bundle, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is missing, stale or left over."""
    monkeypatch.chdir(root)
    wanted = directory(linked(pages_of(bundle), bundle.roots, GENERATED), bundle.name, bundle.revision)
    present = {path.name: path.read_text(encoding="utf-8") for path in GENERATED.glob("*")}

    assert sorted(wanted.keys() - present.keys()) == [], f"pages are missing: {COMMAND}"
    assert sorted(present.keys() - wanted.keys()) == [], f"pages are left over: {COMMAND}"
    assert [name for name, text in wanted.items() if present[name] != text] == [], f"pages are stale: {COMMAND}"


def test_the_blocks_of_the_pages_can_be_read(root: Path) -> None:
    """YAML by our strict reader, JSON as JSON; the commands name the page's own policy, and nothing else is there."""
    for path in (root / GENERATED).glob("*.md"):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for language, text in blocks:
            if language == "yaml":
                assert bundle_yaml(text, str(path))
            elif language == "json":
                assert json.loads(text)
            else:
                assert language == "sh"
                assert all(line.endswith(f" --select {path.stem}") for line in text.splitlines())
        assert blocks or path.name == "README.md"


def test_a_page_has_all_of_the_header(page: PolicyPage) -> None:
    """Words for absence, types and outcomes; a fail case shows what it changes."""
    text = markdown.render(page)

    for part in (
        "| critical | Rego | `area` | 0.1.0 | `area/a/a.rego` |",
        "| `/properties/x` | fails |",
        "| `/tags/y` of the workspace | has no finding |",
        "| `most` | integer, at least 0 | `3` | how many &#124; at `most` |",
        "array of (string, pattern",
        "- Controls: mcsb-v1 NS-2, NS-3",
        'Set them in `policyeng.toml`, below `[parameters."T-A-1"]`.',
        "4 cases, and 2 tests of missing fields",
        "with: {virtual_network: {tags: {a: b}}}",
        '"a name: with a colon": {patch: {properties: {number: 1}}}',
        "as it is: {}",
        "in July:\n  patch: {properties: {number: 2}}\n  parameters: {most: 4}\n  as_of: 2026-07-01T00:00:00Z\n",
        '  {"op": "add", "path": "/properties/x", "value": "a|b"}',
        "Exemptions are not allowed.",
        "policyeng check snapshot.json --policy 'my policies' --select T-A-1\n",
        "policyeng test --policy 'my policies' --select T-A-1\n",
    ):
        assert part in text, part
    assert "### Unknown" not in text


def test_text_of_a_policy_is_no_markup(page: PolicyPage) -> None:
    """Tables keep their columns, a fence its content, and a reader sees the text as it was written."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown.render(page))
    inline = [token for token in tokens if token.type == "inline"]
    shown = " ".join(child.content for token in inline for child in token.children or ())
    html = [child.content for token in inline for child in token.children or () if child.type == "html_inline"]

    assert not {child.type for token in inline for child in token.children or ()} & {"em_open", "link_open", "image"}
    assert set(html) <= {"<code>", "</code>"}
    assert "A | holds" in shown
    assert "Run  az x  & <b>be</b> done." in shown
    assert any("a fence ``` in a name" in token.content for token in tokens if token.type == "fence")
    assert sum(token.type == "th_open" for token in tokens) == 5 + 2 + 4
    assert sum(token.type == "td_open" for token in tokens) == 5 + 2 * 2 + 2 * 4


def test_many_cases_fold_away(page: PolicyPage) -> None:
    """A block of more than forty lines is unfolded by whoever wants it, and is still a block."""
    assert page.cases is not None
    case = page.cases.pass_["as it is"]
    many = page.cases.model_copy(update={"fail": {f"case {number}": case for number in range(41)}})
    text = markdown.render(PolicyPage(page.policy, many))

    assert "<details><summary><b>Fail</b>: 41 cases</summary>\n\n```yaml\ncase 0: {}\n" in text
    assert "### Pass" in text


@pytest.mark.parametrize("width", [40, 80, 100, 300])
def test_a_page_for_a_terminal_keeps_to_its_width(page: PolicyPage, width: int, bundle: Bundle) -> None:
    """Lines are no longer than requested, text than 100 columns, unless a word is; colour changes no character."""
    for shown in (page, *pages_of(bundle)):
        text = terminal.render(shown, width=width)
        colored = terminal.render(shown, width=width, color=True)

        assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text
        if width >= 80:
            prose, _, cases = text.partition("\nCases (")
            long = [line for line in prose.splitlines() if len(line) > min(width, 100)]
            long += [line for line in cases.splitlines() if len(line) > width]
            assert all(len(max(line.split(), key=len)) > 40 or "policyeng " in line for line in long), long


def test_a_case_is_cut_only_where_the_terminal_ends(page: PolicyPage) -> None:
    """And the description of the policy is before its cases, however many these are."""
    assert page.cases is not None
    edit = {"patch": {"properties": {"name": "x" * 70}}, "as_of": "2026-07-01T00:00:00Z"}
    case = type(page.cases.pass_["as it is"]).model_validate(edit)
    long = PolicyPage(page.policy, page.cases.model_copy(update={"pass_": {"long": case}}))

    assert [" …" in terminal.render(long, width=width) for width in (80, 100, 120, 160)] == [True, True, False, False]
    assert [max(map(len, terminal.render(long, width=width).splitlines())) > 100 for width in (100, 160)] == [
        False,
        True,
    ]
    for text, mark in ((terminal.render(page), "\n\n"), (markdown.render(page), "\n## ")):
        titles = ("Fix", "Exemptions", "Run only this policy", "Cases")
        places = [text.index(f"{mark}{title}") for title in titles]
        assert places == sorted(places)


def test_a_page_for_a_terminal_has_the_same_content(page: PolicyPage) -> None:
    """Aligned columns for absence, a line for every change that fits, ids without what is alike in all of them."""
    text = terminal.render(page, width=90)

    for part in (
        "T-A-1  A | holds\n================\ncritical · Rego\n",
        "  /properties/x             absent: fails\n  /tags/y of the workspace  absent: has no finding\n",
        "  One *a* @b.\n",
        "  most\n    type      integer, at least 0\n    default   3\n    meaning   how many | at `most`\n",
        "  Fail (1)\n    in July\n",
        "      path: /properties/x\n",
        "  Exemptions are not allowed.\n",
        "  policyeng test --policy 'my policies' --select T-A-1\n",
    ):
        assert part in text, part


def test_what_a_terminal_obeys_is_written_out(tmp_path: Path) -> None:
    """A policy cannot colour or move the cursor of whoever reads its page, nor command a build agent."""
    policy = rego("a", deny_when("true")).replace("title: a holds", 'title: "a\\e[31m ##vso[x]y"')
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": policy}))
    page = PolicyPage(bundle.policies[0])

    for text in (terminal.render(page), markdown.render(page), index([page], "x\x1b", "")):
        assert "\x1b" not in text
        assert "##vso[" not in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": {"type": "string"}, "default": []}, "array of string"),
        ({"type": "string", "enum": ["a", "b"]}, 'string, one of "a", "b"'),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "number, above 0, at most 1"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object, each integer"),
        (
            {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}},
            "object, each (array, minItems 1)",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"type": "string"}}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "object of a (boolean), b (array of string, optional)",
        ),
        ({"type": "array", "items": {"type": "string", "pattern": r"\S"}}, "array of (string, not blank)"),
        ({"type": "object", "properties": {"a": {}}}, "object of a (any, optional) and others"),
        ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, 'object, named (one of "a", "b")'),
        ({"type": ["string", "null"]}, 'type ["string", "null"]'),
        ({"default": 1}, "any"),
    ],
)
def test_types_of_parameters_in_words(schema: dict[str, object], words: str) -> None:
    """The keywords that parameters use have words; any other is shown with its value."""
    assert type_words(schema) == words


def test_the_index_counts_and_links(bundle: Bundle) -> None:
    """By area with a page each; without pages there are no links."""
    pages = pages_of(bundle)
    text = directory(pages, bundle.name, bundle.revision)["README.md"]
    number = len(bundle.policies)

    assert text.startswith(f"{MARK}\n\n# Policies of policyeng ")
    assert f"\n\n{number} policies with " in text
    assert text.count("](AML-") == number
    assert "](AML-" not in index(pages, bundle.name, bundle.revision)
    assert re.search(rf"^\| all \|.*\| {number} \|$", text, re.MULTILINE)


def test_the_pages_state_the_sources(bundle: Bundle) -> None:
    """Each document once below the index and on the page of every policy that cites it; `001` in a quote is none."""
    pages = pages_of(bundle)
    files = directory(pages, bundle.name, bundle.revision)
    title = "What are compute targets in Azure Machine Learning?"

    assert files["README.md"].count(title) == 1
    assert f"- 001: {title}\n" in files["AML-INF-101.md"]
    assert f"            001: {title}\n" in terminal.render(
        next(page for page in pages if page.policy.id == "AML-INF-101")
    )
    assert all(page.cited for page in pages)


@pytest.mark.parametrize(
    ("facts", "rows"),
    [
        (None, []),
        ("{}", []),
        ('{"001": "a text"}', []),
        ('{"001": {"title": "The | rules"}, "002": {"title": "no"}}', ["| 001 | The &#124; rules |  |"]),
    ],
)
def test_a_bundle_explains_its_own_sources_alone(tmp_path: Path, facts: str | None, rows: list[str]) -> None:
    """The facts that it is lent are about other documents than the `001` that it cites; a name in quotes is none."""
    policy = rego("a", deny_when("true"), more="source: '001 \"002\"'\n")
    files = {"area/a/a.rego": policy} | ({"facts/sources/data.json": facts} if facts else {})
    text = index(pages_of(load_bundle(write(tmp_path, files))), "b", "")

    assert text.partition("Sources:")[2].split("\n")[4:-3] == rows


def test_ids_that_cannot_name_a_file_get_one_of_their_own(tmp_path: Path) -> None:
    """Also where two of them differ in case alone, or in what a file name may not have."""
    write(
        tmp_path,
        {
            "a/a.rego": 'package a\n\ndeny contains "x" if input.a',
            "b.rego": 'package A\n\ndeny contains "x" if input.b',
        },
    )
    names = directory(pages_of(load_bundle(tmp_path)), "b", "")

    assert sorted(names) == ["A.deny.md", "README.md", "a.deny-2.md"]
    assert "](a.deny-2.md)" in names["README.md"]


def test_a_directory_of_pages_keeps_what_is_not_ours(tmp_path: Path) -> None:
    """Pages of policies that are gone are removed, unchanged ones left alone, and files of anybody else too."""
    folder = tmp_path / "new" / "pages"
    ours = f"{MARK}\n\n# x\n"

    assert write_pages(folder, {"README.md": ours, "a.md": ours, "b.md": ours}).endswith(
        "3 written, 0 unchanged, 0 removed"
    )
    (folder / "mine.md").write_text("# mine\n", encoding="utf-8")
    (folder / "quoted.md").write_text(f"see\n{MARK}\n", encoding="utf-8")
    (folder / "a.txt").write_text(ours, encoding="utf-8")
    message = write_pages(folder, {"README.md": ours, "b.md": f"{ours}more\n"})

    assert message == f"{folder}: 2 pages: 1 written, 1 unchanged, 1 removed"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "a.txt", "b.md", "mine.md", "quoted.md"]
    with pytest.raises(Exception, match="was not generated by this command") as refused:
        write_pages(folder, {"README.md": f"{ours}changed", "mine.md": ours})
    assert refused.value.__class__.__name__ == "UsageError"
    assert (folder / "README.md").read_text(encoding="utf-8") == ours


@pytest.mark.parametrize(
    ("root", "output", "link"),
    [
        ("here/rules", "docs/pages", "../../rules/area/a/a.rego"),
        ("here/rules", "../docs", ""),
        ("here/.venv/rules", "docs/pages", ""),
        ("here/venv/site-packages/rules", "docs/pages", ""),
        ("elsewhere", "docs/pages", ""),
    ],
)
def test_only_files_that_other_readers_have_are_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, output: str, link: str
) -> None:
    """Below the current directory, and in no environment there."""
    bundle = load_bundle(write(tmp_path / root, {"area/a/a.rego": rego("a", deny_when("true"))}))
    (tmp_path / "here").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "here")

    assert [page.link for page in linked(pages_of(bundle), bundle.roots, Path(output))] == [link]
