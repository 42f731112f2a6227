"""Reading a directory as a bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.files import open_origins
from policyeng.errors import BundleError
from tests.bundles import deny_when, rego, write
from tests.test_bundle_building import PYTHON


def test_the_built_in_bundle_is_read_with_its_revision(bundle: Bundle) -> None:
    """The policies of the repository, sorted by id, with a digest and the manifest's revision."""
    ids = [policy.id for policy in bundle.policies]

    assert ids == sorted(ids)
    assert bundle.revision == "0.1.0"
    assert len(bundle.digest) == 64
    assert "AML-NET-001" in ids


def test_rego_and_python_policies_lie_side_by_side(tmp_path: Path) -> None:
    """A folder per policy, whatever its language."""
    write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true")), "area/p/p.py": PYTHON})

    read = load_bundle(tmp_path)

    assert [(policy.id, policy.language, policy.area) for policy in read.policies] == [
        ("T-A-1", "rego", "area"),
        ("T-P-1", "python", "area"),
    ]


def test_a_twin_takes_the_header_of_the_rego_policy(tmp_path: Path) -> None:
    """The header is written once; the Rego form is active."""
    twin = PYTHON.replace(PYTHON[PYTHON.index("(id=") : PYTHON.index(")\ndef") + 1], "()")
    write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true")), "area/a/a.py": twin})

    (policy,) = load_bundle(tmp_path).policies

    assert policy.language == "rego"
    assert policy.python is not None


def test_a_directory_is_lent_our_library_and_facts(tmp_path: Path) -> None:
    """A bundle without `lib` and `facts` can use the built-in ones; one that brings its own keeps them."""
    write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true"))})
    assert load_bundle(tmp_path).facts.size("Standard_M128ms") is not None

    write(tmp_path, {"facts/vm_sizes/data.json": "{}"})
    assert load_bundle(tmp_path).facts.size("Standard_M128ms") is None


@pytest.mark.parametrize(
    ("files", "lent"),
    [
        ({}, {"lib", "facts"}),
        ({"lib/x.rego": "package other"}, {"facts"}),
        ({"area/x.rego": "# mine\npackage lib.x"}, {"facts"}),
        ({"facts/data.json": "{}"}, {"lib"}),
        ({"data.json": '{"facts": {}}'}, {"lib"}),
        ({"data.yaml": "lib: {}\nfacts: {}"}, set()),
        ({"area/data.json": '{"facts": {}}', "lib.rego": "package other"}, {"lib", "facts"}),
    ],
)
def test_a_directory_is_lent_only_what_it_lacks(tmp_path: Path, files: dict[str, str], lent: set[str]) -> None:
    """By folders, packages and the keys of data at the top."""
    root = write(tmp_path / "mine", {"area/a/a.rego": rego("a", deny_when("true")), **files})
    mine, *others = open_origins([root])

    assert (mine.name, mine.root, mine.lent) == ("mine", root, False)
    assert {path.parts[0] for origin in others for path in origin.tree} == lent
    assert [(origin.name, origin.lent) for origin in others] == [("policyeng", True)] * bool(lent)


def test_only_policies_of_ours_are_lent_anything(tmp_path: Path) -> None:
    """One among those of others is enough; without directories there is the built-in bundle alone."""
    files = {"main.rego": '# METADATA\n# title: t\npackage main\n\ndeny contains "no"\n', "data.json": '{"a": 1}'}
    foreign = write(tmp_path / "foreign", files)
    (built_in,) = open_origins([])

    assert [origin.name for origin in open_origins([foreign])] == ["foreign"]
    write(foreign, {"area/p/p.py": PYTHON})
    assert [origin.name for origin in open_origins([foreign])] == ["foreign", "policyeng"]
    assert (built_in.name, built_in.lent, built_in.signed) == ("policyeng", False, False)


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    """The same files give the same digest wherever they lie; one changed byte gives another."""
    first = write(tmp_path / "one", {"area/a/a.rego": rego("a", deny_when("true"))})
    second = write(tmp_path / "two", {"area/a/a.rego": rego("a", deny_when("true"))})
    assert load_bundle(first).digest == load_bundle(second).digest

    write(second, {"area/a/a.rego": rego("a", deny_when("1 == 1"))})
    assert load_bundle(first).digest != load_bundle(second).digest


def test_tests_and_compiled_files_are_no_part_of_a_bundle(tmp_path: Path) -> None:
    """Rego tests, pytest files and hidden folders are left out, and reading leaves nothing behind."""
    files = {"area/a/a.rego": rego("a", deny_when("true")), "area/p/p.py": PYTHON}
    before = load_bundle(write(tmp_path, files)).digest
    write(tmp_path, {"area/a/a_test.rego": "package x\n", "area/a/test_a.py": "raise SystemExit", ".git/x.rego": "?"})

    assert load_bundle(tmp_path).digest == before
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a/a.rego": rego("a", "x := 1")}, "defines no `deny` rule"),
        ({"a/a.rego": rego("a", deny_when("true")), "b/b.rego": rego("b", deny_when("true"))}, "duplicate policy id"),
        (
            {"a/a.rego": rego("a", deny_when("true")), "b/b.rego": rego("a", deny_when("true"), identity="T-B-1")},
            "share the package `area.a`, in `a/a.rego` and `b/b.rego`",
        ),
        ({"a/a.rego": rego("a", deny_when("true"), more="colour: red")}, "unknown field `colour`"),
        ({"a/a.rego": "# METADATA\n# title: [\n# custom: {id: X-1}\npackage a\n"}, "not valid YAML"),
        ({"x/data.json": '{"a": 1, "a": 2}'}, "duplicate key"),
        ({"x/data.json": '{"y": 1}', "x/y/data.json": '{"z": 1}'}, "not an object"),
        ({"p/p.py": PYTHON + PYTHON.replace("always", "again")}, "2 functions carry"),
        ({"p/p.py": "from policyeng import policy\n1/"}, "the module cannot be loaded: SyntaxError"),
        ({"p/p.py": "from policyeng import policy as rule"}, "0 functions carry"),
        ({"a/a.rego": "package a\ndeny contains {} if input.resource.properties.x\n"}, "carries no policy header"),
        ({"a/a.rego": rego("a", deny_when("true")).replace("id: T", "Id: T")}, "carries no policy header"),
        ({"p/p.py": PYTHON.replace('severity="low"', 'severity="dire"')}, "severity"),
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_place(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """A bundle is read whole or not at all, and the message names the file."""
    write(tmp_path, files)

    with pytest.raises(Exception, match=message) as refusal:
        load_bundle(tmp_path)

    assert refusal.value.__class__.__module__ == "policyeng.errors"


def test_a_package_in_brackets_is_the_same_package(tmp_path: Path) -> None:
    """Two spellings of one name would share their denials just as well."""
    other = rego("a", deny_when("true"), identity="T-B-1").replace("package area.a", 'package area["a"]')

    with pytest.raises(BundleError, match="share the package"):
        load_bundle(write(tmp_path, {"a/a.rego": rego("a", deny_when("true")), "b/b.rego": other}))


def test_a_policy_and_its_helpers_may_share_a_package(tmp_path: Path) -> None:
    """A module without a header and without `deny` is a part of the policy."""
    files = {"a/a.rego": rego("a", deny_when("ready")), "a/more.rego": "package area.a\n\nready if true\n"}

    assert [policy.id for policy in load_bundle(write(tmp_path, files)).policies] == ["T-A-1"]


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    """A misspelt `--policy` never means no policies."""
    with pytest.raises(BundleError, match="is not a directory"):
        load_bundle(tmp_path / "nowhere")


def test_line_ends_of_windows_make_no_difference(tmp_path: Path) -> None:
    """A policy written with CRLF is the same policy."""
    path = write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true"))}) / "area/a/a.rego"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert [policy.id for policy in load_bundle(tmp_path).policies] == ["T-A-1"]


def test_indented_rules_are_rules_and_lines_of_bodies_are_none(tmp_path: Path) -> None:
    """An `unknown` that was overlooked would make a pass of what cannot be decided."""
    unknown = '\tunknown contains {"msg": "u"} if {\n\t\tapplies := 1\n\t\tapplies == 1\n\t}'
    body = f"  {deny_when('1 == 2')}\n\n{unknown}"

    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", body)}))

    assert [role for role, _ in bundle.policies[0].rules] == ["deny", "unknown"]
