"""What a wheel brings is what its files give, without compiling anything; whatever differs is worked out again."""

from __future__ import annotations

import io
import pickle
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import CodeType

import pytest

from policyeng import cache, evaluate, prebuilt, rego
from policyeng.bundle import Bundle, analysis, assembling, files, load_bundle, loader, rego_trees
from policyeng.engines import embedded
from policyeng.models import Evaluation
from policyeng.rego import linked, linking
from policyeng.sources import load_snapshot
from tests.bundles import deny_when, snapshot, workspace, write
from tests.bundles import rego as policy
from tests.conftest import ROOT
from tests.drawn import AS_OF

compile_policies = import_module("tools.compile_policies")

PYTHON = """
from policyeng import Denial, policy
@policy(id="T-A-3", title="A title", severity="low", judges="Microsoft.MachineLearningServices/workspaces",
        remediation="Correct it", source="https://x.y")
def rule(given):
    if given.facts is not None and given.resource["properties"].get("raises"):
        raise ZeroDivisionError
    yield Denial("seen", path="/properties/z", actual=1, expected=2)
"""
TWIN = """
from policyeng import policy
@policy()
def rule(given):
    return []
"""
HELPER = "package lib.helper\n\nis_bad(value) if value > data.facts.x.limit\n"
USED = "import data.lib.helper\n\n" + deny_when("helper.is_bad(input.resource.properties.x)")
#: Whether a snapshot has everything of the type is not known.
UNKNOWN = deny_when('count(input.snapshot.by_type["microsoft.storage/storageaccounts"]) == 0')
POLICIES = {
    ".manifest": '{"revision": "1", "roots": ["area", "lib", "facts"]}',
    "area/a/a.rego": policy("a", USED),
    "area/a/a.py": TWIN,
    "area/a/cases.yaml": "{}\n",
    "area/b/b.rego": policy("b", deny_when("to_number(input.resource.properties.y) > 1"), identity="T-A-2"),
    "area/c/c.py": PYTHON,
    "area/e/e.rego": policy("e", UNKNOWN, identity="T-A-5"),
    "lib/helper/helper.rego": HELPER,
    "facts/x/data.json": '{"limit": 3}',
}
SNAPSHOT = snapshot(
    workspace("w", x=4, y="2"),
    workspace("v", x=2, y="no number"),
    incomplete=["Microsoft.Storage/storageAccounts at /subscriptions/s: forbidden"],
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a wheel installs it: policies, and what is compiled of them."""
    folder = tmp_path_factory.mktemp("built")
    write(folder / "policies", POLICIES)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, folder)
        compile_policies.compile_policies(folder / "compiled", {"this": sys.executable})
    return folder


def use(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have the policies of a folder as the built-in ones, and what is compiled of them."""
    for module in (files, loader):
        patch.setattr(module, "built_in_root", lambda: folder / "policies")
    patch.setattr(prebuilt, "_FOLDER", str(folder / "compiled"))


@pytest.fixture(autouse=True)
def moved(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same in another place, with an empty cache, and nothing in memory."""
    folder = tmp_path / "moved"
    shutil.copytree(installed, folder)
    use(monkeypatch, folder)
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(analysis, "_kept", {})
    embedded._program.cache_clear()
    yield folder
    embedded._program.cache_clear()


def compiled_again() -> Bundle:
    """The bundle as if nothing came with it."""
    with pytest.MonkeyPatch.context() as patch, cache.switched_off():
        patch.setattr(prebuilt, "_FOLDER", "/nowhere")
        return load_bundle()


def evaluated(bundle: Bundle) -> Evaluation:
    """Findings of a bundle whose program is not in memory."""
    embedded._program.cache_clear()
    return evaluate(bundle, SNAPSHOT, as_of=AS_OF)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read or compiled, by name."""
    found: list[str] = []

    def count(module: object, name: str) -> None:
        function = getattr(module, name)

        def counted(*arguments: object, **named: object) -> object:
            found.append(name)
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, counted)

    count(assembling, "bundle_of")
    count(linking, "link")
    count(rego_trees, "tree_of")
    count(linked.Linked, "compile_handled")
    return found


def test_it_is_what_the_files_give(moved: Path, calls: list[str], tmp_path: Path) -> None:
    """The bundle and what is worked out of it, the findings of both forms, and nothing for the cache to keep."""
    bundle = load_bundle()
    evaluation = evaluated(bundle)
    known = analysis.analysis_of(bundle.modules[0][1], rego_v0=False, place="a")

    assert calls == []
    assert not (tmp_path / "cache").exists()
    again = compiled_again()
    assert bundle == again
    for name in ("reaches", "spellings", "places", "clocked", "data_bytes", "queried_types", "controls"):
        assert getattr(bundle, name) == getattr(again, name)
    assert bundle.origins[0].tree == again.origins[0].tree
    assert bundle.roots == (moved / "policies",)
    assert [one.cases for one in bundle.policies] == [one.cases for one in again.policies]
    assert known == analysis.analysis_of(again.modules[0][1], rego_v0=False, place="a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prebuilt, "_FOLDER", "/nowhere")
        assert evaluated(again).model_dump_json() == evaluation.model_dump_json()
    assert "link" in calls
    assert "compile_handled" in calls
    assert evaluation.summary.unknown
    assert evaluation.summary.fail


def edit(path: str, before: str, after: str) -> Callable[[Path], object]:
    """An edit that keeps the size of a file."""
    assert len(before) == len(after)
    assert before in POLICIES[path]
    return lambda root: write(root, {path: POLICIES[path].replace(before, after)})


@pytest.mark.parametrize(
    "change",
    [
        edit("area/a/a.rego", "/properties/x", "/properties/q"),
        edit("lib/helper/helper.rego", "value >", "value <"),
        edit("area/c/c.py", '"seen"', '"gone"'),
        edit("facts/x/data.json", "3", "9"),
        lambda root: write(root, {"area/d/d.rego": policy("d", deny_when("true"), identity="T-A-4")}),
        lambda root: (root / "area" / "b" / "b.rego").unlink(),
        lambda root: (root / "area" / "a" / "cases.yaml").unlink(),
    ],
)
def test_an_edited_policy_is_read_and_compiled(change: Callable[[Path], object], moved: Path, calls: list[str]) -> None:
    """With the findings of its files."""
    change(moved / "policies")
    bundle = load_bundle()

    assert calls.count("bundle_of") == 1
    found = evaluated(bundle).model_dump_json()
    with pytest.MonkeyPatch.context() as patch, cache.switched_off():
        patch.setattr(prebuilt, "_FOLDER", "/nowhere")
        assert evaluated(load_bundle()).model_dump_json() == found


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content[:-9],
        lambda content: content[:70],
        lambda content: content[:0],
        lambda content: b"0" * 64 + content[64:],
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ],
)
def test_a_harmed_file_is_not_used(harm: Callable[[bytes], bytes], moved: Path) -> None:
    """Of any form."""
    expected = evaluated(load_bundle()).model_dump_json()
    for form in (moved / "compiled").iterdir():
        form.write_bytes(harm(form.read_bytes()))

    assert evaluated(load_bundle()).model_dump_json() == expected


def test_other_code_or_another_python_is_compiled(monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    """A version of Python with no code in the wheel still has the headers; other code of this package has nothing."""
    monkeypatch.setattr(prebuilt, "MAGIC_NUMBER", b"another")
    evaluated(load_bundle())
    assert calls.count("bundle_of") == 0
    assert calls.count("link") == 1

    monkeypatch.setenv("POLICYENG_NO_CACHE", "1")
    monkeypatch.setattr(cache, "digest_of_code", lambda *_: "another")
    evaluated(load_bundle())
    assert calls.count("bundle_of") == 1


def test_a_copy_and_a_selection_use_the_same_code(moved: Path, calls: list[str], tmp_path: Path) -> None:
    """The code names the files of the copy; a bundle with one policy more is compiled."""
    copy = shutil.copytree(moved / "policies", tmp_path / "copy")
    bundle = load_bundle(copy)
    program = embedded.compile_bundle(bundle).program

    assert calls.count("link") == 0
    assert {code.co_filename for code in program.compiled.code} == {str(copy / path) for path, _ in bundle.modules} | {
        code.co_filename for code in program.compiled.code if not code.co_filename.endswith(".rego")
    }
    write(copy, {"area/d/d.rego": policy("d", deny_when("true"), identity="T-A-4")})
    embedded.compile_bundle(load_bundle(copy))
    assert calls.count("link") == 1


def test_under_a_debugger_or_coverage_it_is_compiled(calls: list[str]) -> None:
    """As they expect it: small functions are not written in the place of their calls."""
    sys.settrace(lambda *_: None)
    try:
        evaluated(load_bundle())
    finally:
        sys.settrace(None)
    assert calls.count("link") == 1


def test_tracebacks_show_the_files_that_are_here(moved: Path) -> None:
    """Lines of Rego and of Python, which the code of the wheel was not compiled with."""
    bundle = load_bundle()
    thread = embedded.compile_bundle(bundle).program.thread()
    thread.begin({"resource": {"properties": {"y": "no number"}}})
    with pytest.raises(rego.EvaluationError) as raised:
        thread.call(thread.function("data.area.b.deny"))
    shown = "".join(traceback.format_exception(raised.value))
    file = moved / "policies" / "area" / "b" / "b.rego"
    number, line = next(
        (number, line) for number, line in enumerate(file.read_text().splitlines(), 1) if "to_number" in line
    )
    assert f'File "{file}", line {number}' in shown
    assert line in shown
    assert raised.value.file == "area/b/b.rego"

    python = next(policy.python for policy in bundle.policies if policy.id == "T-A-3")
    assert python is not None
    assert python.functions.evaluate.__code__.co_filename == str(moved / "policies" / "area" / "c" / "c.py")


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def test_the_code_is_that_of_the_compiler() -> None:
    """Function by function, in both forms."""
    bundle = load_bundle()
    compiled = [rego.Compiled.load(program.dump()) for program in embedded.generate(bundle)]
    for form, expected in zip(("program", "handled"), compiled, strict=True):
        loaded = embedded._load_prebuilt(bundle, form)
        assert loaded is not None
        assert loaded[1:] == expected[1:]
        for here, there in zip(loaded.code, expected.code, strict=True):
            for one, other in zip(codes(here), codes(there), strict=True):
                assert one.co_filename == bundle.places.get(other.co_filename, other.co_filename)
                assert one.replace(co_filename="", co_consts=()) == other.replace(co_filename="", co_consts=())


class Classes(pickle.Unpickler):
    """Reads a pickle for the classes in it."""

    def __init__(self, text: bytes) -> None:
        super().__init__(io.BytesIO(text))
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> object:
        """Note the module."""
        self.names.add(module)
        return super().find_class(module, name)

    def persistent_load(self, reference: tuple[str, str]) -> object:
        """Have any text in the place of a file."""
        return PurePosixPath(reference[1]) if reference[0] in {"path", "relative"} else reference[1]


def test_what_every_python_reads_names_no_class_of_one_version(moved: Path) -> None:
    """For example, paths are pickled under another name in Python 3.13."""
    parts = (prebuilt.digest_of(files.contents_of(moved / "policies") or {}),)
    program = embedded.compile_bundle(load_bundle()).program.compiled
    for text in (prebuilt.load("bundle", parts), prebuilt.load("analyses", parts), program.dump_rest()):
        assert text is not None
        classes = Classes(text)
        classes.load()
        other = {name for name in classes.names if not name.startswith("policyeng.")}
        assert other <= {"builtins", "collections", "datetime", "decimal", "functools", "msgspec._utils", "types"}


@pytest.mark.slow
def test_the_built_in_policies_evaluate_alike(tmp_path: Path, calls: list[str]) -> None:
    """On the samples, byte for byte, without a call of the compiler."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (files, loader):
            patch.setattr(module, "built_in_root", lambda: ROOT / "policies")
        patch.setattr(prebuilt, "_FOLDER", "/nowhere")
        samples = [load_snapshot(path) for path in sorted((ROOT / "samples" / "workspaces").iterdir())]
        bundle = load_bundle()
        expected = [evaluate(bundle, sample, as_of=AS_OF).model_dump_json() for sample in samples]
        compile_policies.compile_policies(tmp_path / "all", {"this": sys.executable})
        patch.setattr(prebuilt, "_FOLDER", str(tmp_path / "all"))
        embedded._program.cache_clear()
        calls.clear()
        bundle = load_bundle()
        assert [evaluate(bundle, sample, as_of=AS_OF).model_dump_json() for sample in samples] == expected
        assert calls == []


def test_a_release_refuses_a_version_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written; each version that the project supports is asked for."""
    asked: list[str] = []

    def find(version: str) -> str | None:
        asked.append(version)
        return None if version == "3.12" else sys.executable

    monkeypatch.setattr(compile_policies, "find_python", find)
    monkeypatch.setattr(sys, "argv", ["compile_policies", str(tmp_path / "compiled")])
    monkeypatch.setenv("POLICYENG_COMPILE_FOR", "every")

    assert compile_policies.main() == 1
    assert "asks for Python 3.12, which is not installed" in capsys.readouterr().err
    assert not (tmp_path / "compiled").exists()
    assert asked == ["3.11", "3.12", "3.13", "3.14"]


def test_a_version_is_found_only_if_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This version is; one whose program does not start, as where a switch of versions has none to offer, is not."""
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert compile_policies.find_python("3.99") is None
    assert compile_policies.find_python(f"{sys.version_info[0]}.{sys.version_info[1]}") == sys.executable
