"""The header of a Python policy is read from its text, and nothing that only describes policies runs them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, PolicyHeader, load_bundle
from policyeng.bundle.python_headers import read_header
from policyeng.cli import run
from policyeng.errors import BundleError
from policyeng.facts.catalogue import built_in_root
from policyeng.facts.computes import MANAGED_KINDS
from tests.archives import keys, packed
from tests.bundles import snapshot, workspace, write
from tests.test_cli import file

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
FIELDS = 'id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"]'
MODULE = "from policyeng import policy\n{before}\n@policy({fields})\ndef rule(given):\n    return []\n{after}"


def module(*, fields: str = FIELDS, before: str = "", after: str = "") -> str:
    """Return the text of a policy."""
    return MODULE.format(fields=fields, before=before, after=after)


def value_of(expression: str, before: str = "") -> object:
    """Return what a field is read as."""
    return read_header(module(fields=f"x={expression}", before=before).encode(), "p.py").fields["x"]


@pytest.mark.parametrize(
    ("expression", "before"),
    [
        ("'text' 'joined'", ""),
        ("['a', 1, -1.5, True, None, ('b',)]", ""),
        ("{'a': 1, **{'b': [2]}, 'a': 3}", ""),
        ("X", "X = 'a'"),
        ("[*X, *Y]", "X, Y = ['a'], {'b': 1}"),
        ("{X: 1, **Y}", "X: str = 'a'\nY = {X: 2, 'b': 3}"),
        ("f'{X}/b{1}'", "X = f'a{True}'"),
        ("X + ['b'] + [*('c' + 'd',)]", "X = ['a']"),
        ("[{**each, 'n': f'{name}'} for each in X for name in ('b', 'c')]", "X = [{'a': 1}]"),
        ("[[inner for inner in outer] for outer in X]", "X = [[1, 2], [3]]"),
    ],
)
def test_an_expression_has_the_value_that_python_gives_it(expression: str, before: str) -> None:
    """Literals, constants of the module, f-strings, stars and list comprehensions."""
    names: dict[str, object] = {}
    exec(before, names)  # noqa: S102  # the text of this test

    expected = eval(expression, names)  # noqa: S307  # the same

    assert repr(value_of(expression, before)) == repr(expected)


def test_constants_of_the_library_are_read() -> None:
    """Only of the packages with no more than facts and models."""
    assert value_of("[M]", "from policyeng.facts.computes import MANAGED_KINDS as M") == [MANAGED_KINDS]


@pytest.mark.parametrize(
    ("expression", "before"),
    [
        ("print('ran')", ""),
        ("list(X)", "X = ['a']"),
        ("'a'.upper()", ""),
        ("X.y", "X = 'a'"),
        ("['a'][0]", ""),
        ("1 if X else 2", "X = 1"),
        ("X or 1", "X = 1"),
        ("lambda: 1", ""),
        ("'a' * 3", ""),
        ("'a' + 1", ""),
        ("-'a'", ""),
        ("+1", ""),
        ("b'a'", ""),
        ("{'a'}", ""),
        ("{X: 1}", "X = []"),
        ("{**X}", "X = 1"),
        ("[*X]", "X = 'ab'"),
        ("f'{X!r}'", "X = 'a'"),
        ("f'{X:>9999999999}'", "X = 'a'"),
        ("f'{X}'", "X = [1]"),
        ("[x for x in X if x]", "X = [1]"),
        ("[x for x, y in X]", "X = [(1, 2)]"),
        ("(x for x in X)", "X = [1]"),
        ("{x: 1 for x in X}", "X = [1]"),
        ("missing", ""),
        ("X", "X = 1\nX = 2"),
        ("X", "X = 1\nfor X in [2]: pass"),
        ("X", "X = 1\nX += 1"),
        ("X", "if True:\n    X = 1"),
        ("X", "def X(): pass"),
        ("X", "X, *Y = [1, 2]"),
        ("X", "from policyeng.facts.computes import managed as X"),
        ("X", "from policyeng.facts.computes import nothing_of_that_name as X"),
        ("X", "from policyeng.facts.no_such_module import Y as X"),
        ("X", "from os import environ as X"),
        ("X", "from policyeng import __version__ as X"),
        ("X", "from policyeng.facts.computes import MANAGED_KINDS as X\nX = 1"),
        ("X", "X = [X]"),
        ("**X", "X = {1: 2}"),
        ("**X", "X = {'applies': 1}"),
    ],
)
def test_any_other_expression_is_refused_with_its_place(expression: str, before: str) -> None:
    """The line, the expression and what to write instead; nothing is run to find out."""
    field = expression if expression.startswith("**") else f"x={expression}"
    text = module(fields=field, before=before)

    with pytest.raises(BundleError, match="cannot be read without running the module") as refusal:
        read_header(text.encode(), "p.py")

    line = refusal.value.place[0].removeprefix("p.py:")
    assert 1 < int(line) <= text.count("\n")
    assert "write it with literals" in refusal.value.remedy


@pytest.mark.parametrize(
    "before",
    [
        "A0 = ['x']\n" + "\n".join(f"A{n + 1} = [*A{n}, *A{n}]" for n in range(60)) + "\nX = A60",
        "A0 = 'x'\n" + "\n".join(f"A{n + 1} = A{n} + A{n}" for n in range(60)) + "\nX = A60",
        "A0 = 'x'\n" + "\n".join(f"A{n + 1} = [A{n}, A{n}]" for n in range(60)) + "\nX = A60",
        "A = [" + "1," * 200 + "]\nX = [1 for a in A for b in A for c in A for d in A]",
        "A = [" + "1," * 200 + "]\nX = [[[1 for c in A] for b in A] for a in A]",
        "A = ['" + "x" * 5000 + "']\nX = [each for each in A for n in [" + "1," * 500 + "]]",
    ],
)
def test_a_header_that_doubles_itself_ends_at_a_limit(before: str) -> None:
    """Neither time nor memory grows with what it would come to."""
    with pytest.raises(BundleError, match="the header is too large"):
        value_of("X", before)


@pytest.mark.parametrize("depth", [90, 900, 20_000])
def test_a_header_that_is_nested_deeply_is_read_or_refused(depth: int) -> None:
    """Whatever of Python ends at its depth, the user gets a message."""
    expression = " + ".join(["'x'"] * depth)
    if depth < 100:
        assert value_of(expression) == "x" * depth
    else:
        with pytest.raises(BundleError, match=r"the header cannot be read|the module cannot be loaded"):
            value_of(expression)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (module(), True),
        (module().replace("import policy", "import policy as rule").replace("@policy", "@rule"), True),
        (module().replace("from policyeng import policy", "import policyeng").replace("@", "@policyeng."), True),
        (module().replace("from policyeng import", "from policyeng.bundle import"), True),
        (module().replace("from policyeng import policy", "from policyeng import *"), True),
        (module(after="@policy()\ndef other(given): pass"), False),
        (module().replace("from policyeng", "from elsewhere"), False),
        (module().replace("@policy", "@other"), False),
        ("from policyeng import policy\nrule = policy()(print)", False),
    ],
)
def test_one_function_at_the_top_level_carries_the_decorator(text: str, *, expected: bool) -> None:
    """By whatever name it is imported."""
    if expected:
        assert read_header(text.encode(), "p.py").fields["id"] == "T-A-1"
    else:
        with pytest.raises(BundleError, match=r"[02] functions carry `@policy"):
            read_header(text.encode(), "p.py")


@pytest.mark.parametrize("text", ["def (", "x = 'a\0b'", "return 1", "f(a=1, a=2)", "# coding: no-such\n"])
def test_a_module_that_does_not_compile_is_refused(text: str) -> None:
    """Before anything is looked for in it."""
    with pytest.raises(BundleError, match="the module cannot be loaded"):
        read_header(text.encode(), "p.py")


@pytest.mark.parametrize(
    ("applies", "expected"), [("", False), (", applies=None", False), (", applies=lambda given: True", True)]
)
def test_that_it_may_not_apply_is_known_without_running_it(applies: str, *, expected: bool) -> None:
    """Pages mention it."""
    assert read_header(module(fields=FIELDS + applies).encode(), "p.py").has_applies is expected


def test_the_header_in_the_text_of_every_built_in_policy_is_the_one_that_it_declares(bundle: Bundle) -> None:
    """`functions` compares them once the module has run; policies that only evidence decides have no module."""
    python = [policy for policy in bundle.policies if policy.python is not None and policy.file.endswith(".py")]
    assert len(python) > 10
    for policy in python:
        assert policy.python is not None
        assert policy.python.functions.evaluate.__doc__


@pytest.mark.parametrize(
    "text",
    [
        module(fields=FIELDS.replace('"low"', "LEVEL"), before="LEVEL = 'low'\nglobals()['LEVEL'] = 'info'"),
        module(fields=FIELDS + ", controls=C", before="C = {}\nC['f'] = ['1']"),
        module(fields=FIELDS + ", applies=HOW", before="HOW = None"),
    ],
)
def test_a_header_that_changes_while_its_module_runs_is_an_error(tmp_path: Path, text: str) -> None:
    """What `bundle verify` shows is what is active."""
    bundle = load_bundle(write(tmp_path, {"p/p.py": text}))

    with pytest.raises(BundleError, match="the header is another one once the module has run"):
        bundle.run_python()


@pytest.mark.parametrize("fault", ["1/0", "raise SystemExit(0)", "import no_such_module"])
def test_a_module_that_fails_when_it_runs_ends_the_evaluation(tmp_path: Path, fault: str) -> None:
    """Not the reading: until then nothing of it has run."""
    bundle = load_bundle(write(tmp_path, {"p/p.py": module(before=fault)}))

    with pytest.raises(BundleError, match="the module cannot be loaded: ") as refusal:
        evaluate(bundle, snapshot(workspace("a")), as_of=AS_OF)

    assert refusal.value.place == (str(tmp_path / "p/p.py"),)


def test_a_fault_is_found_though_the_policy_evaluates_no_resource(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy that cannot run must not be taken for one that has nothing to report."""
    text = module(before="1/0", fields=FIELDS.replace("Microsoft.MachineLearningServices/workspaces", "a/b"))
    write(tmp_path / "policies", {"p/p.py": text})
    given = file(tmp_path, workspace("a"))

    assert run(["check", str(given), "--policy", str(tmp_path / "policies")]) == 2
    assert "p.py: the module cannot be loaded: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.attack
def test_what_only_describes_policies_runs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives and directories alike; what evaluates runs them, which shows that the trap works."""
    trap = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).write_text('x')"
    files = {"area/p/p.py": module(before=trap), "area/p/cases.yaml": "baseline: workspace\npass: {a: {}}\n"}
    folder = write(tmp_path / "policies", files)
    archive = packed(tmp_path / "b.tar.gz", dict(files))
    pair = keys(tmp_path, "p256")
    given = file(tmp_path, workspace("a"))
    monkeypatch.chdir(tmp_path)
    for path in (folder, archive):
        named = ("--policy", str(path))
        for command in (
            ("bundle", "verify", str(path)),
            ("bundle", "build", *named, "--output", "again.tar.gz", "--signing-key", str(pair.private)),
            ("policies", "list", *named),
            ("policies", "list", *named, "--profiles"),
            ("policies", "list", *named, "--format", "markdown", "--output", "pages"),
            ("policies", "show", "T-A-1", *named),
            ("policies", "show", "T-A-1", *named, "--format", "json"),
        ):
            assert run(command) == 0, command
    assert run(["bundle", "sign", str(folder), "--signing-key", str(pair.private)]) == 0
    assert run(["policies", "new", "area/q", "--language", "python", "--policy", str(folder)]) == 0
    assert not (tmp_path / "ran").exists()

    assert run(["check", str(given), "--policy", str(archive)]) == 0
    assert (tmp_path / "ran").read_text() == "x"


def test_twins_run_only_where_they_are_compared(tmp_path: Path) -> None:
    """They are never active."""
    trap = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).write_text('x')"
    files = {"p/p.rego": (built_in_root() / "rbac/known_principals/known_principals.rego").read_text()}
    bundle = load_bundle(write(tmp_path / "policies", {**files, "p/p.py": module(before=trap, fields="")}))

    bundle.run_python()
    assert not (tmp_path / "ran").exists()
    bundle.run_python(twins=True)
    assert (tmp_path / "ran").exists()


def test_the_header_is_that_of_the_cache_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the text of the module, so an edited one is read at once."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    folder = write(tmp_path / "policies", {"p/p.py": module()})

    def header() -> PolicyHeader:
        bundle = load_bundle(folder)
        bundle.run_python()
        return bundle.policies[0].header

    first = header()
    with monkeypatch.context() as patched:
        patched.setattr("policyeng.bundle.python_headers.read_header", None)
        assert header() == first
    write(folder, {"p/p.py": module(fields=FIELDS.replace("low", "high"))})
    assert header().severity == "high"
