"""`--data`: joined into `data` as Conftest joins it, part of the digest, and never in conflict."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import BundleError, PolicyengError
from tests.bundles import write
from tests.conftest_binary import require_conftest

KEYS = ("a", "deep", "limits", "list", "sub", "x")
#: A rule cannot read the whole of `data`, which contains the rule itself.
_SHOWN = "".join(f'shown contains ["{key}", data.{key}]\n' for key in KEYS)
POLICY = {"p/a.rego": f"package main\n{_SHOWN}deny contains json.marshal([pair | some pair in shown]) if input\n"}


def in_conftest(folder: Path, *data: str) -> object:
    """What Conftest has as `data`, its own additions aside; None when it refuses."""
    given = [argument for path in data for argument in ("--data", path)]
    ran = subprocess.run(
        [str(require_conftest()), "test", "--no-fail", "--output=json", "--policy=p", *given, "in.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(json.loads(json.loads(ran.stdout)[0]["failures"][0]["msg"])) if ran.returncode == 0 else None


@pytest.mark.parametrize(
    "data",
    [
        ["d"],
        ["d/one.yaml", "d/sub/two.json"],
        ["d/sub", "d/one.yaml"],
        ["a.b:d/one.yaml"],
        ["x:d"],
        ["d", "x:d/sub/two.json"],
    ],
)
def test_data_is_what_conftest_has(tmp_path: Path, data: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Files by their content, directories by the folders below them, prefixes, objects joined at any depth."""
    files = {
        "d/one.yaml": "limits: {cpu: 1}\nsub: {given: true}\n",
        "d/sub/two.json": '{"limits": {"memory": 2}}',
        "d/sub/deep/three.yml": "list: [1, 2]\n",
        "d/ignored.txt": "x",
        "in.json": "{}",
    }
    write(tmp_path, {**POLICY, **files})
    monkeypatch.chdir(tmp_path)
    theirs = in_conftest(tmp_path, *data)

    assert theirs is not None
    assert load_bundle("p", data=data).data == theirs


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"d/a.yaml": "x: 1", "d/b.yaml": "x: 1"}, "`data.x` is in two"),
        ({"d/a.yaml": "x: {y: 1}", "d/x/b.json": '{"y": 2}'}, "`data.x.y` is in two"),
        ({"d/a.yaml": "[1]"}, "no object"),
        ({"d/a.txt": "x"}, "holds no data"),
        ({"d/a.json": '{"x": 1, "x": 2}'}, "duplicate key"),
    ],
)
def test_a_clash_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """With the file that repeats it."""
    write(tmp_path, {**POLICY, **files})
    with pytest.raises(BundleError, match=message):
        load_bundle(tmp_path / "p", data=[tmp_path / "d"])


@pytest.mark.parametrize("name", ["missing.json", "d.txt", "missing"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """A file that is not there, or of another kind."""
    write(tmp_path, {**POLICY, "d.txt": "x"})
    with pytest.raises(PolicyengError, match=name):
        load_bundle(tmp_path / "p", data=[tmp_path / name])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "missing: the data does not exist; name a file"),
        ("missing.json", "the data does not exist"),
        ("d.txt", "no JSON or YAML file; name"),
    ],
)
def test_what_is_missing_is_distinguished_from_what_is_of_another_kind(tmp_path: Path, name: str, message: str) -> None:
    """The remedies differ."""
    write(tmp_path, {**POLICY, "d.txt": "x"})
    with pytest.raises(PolicyengError, match=message):
        load_bundle(tmp_path / "p", data=[tmp_path / name])


@pytest.mark.parametrize("key", ["policyeng", "system"])
def test_keys_that_opa_or_we_use_are_refused(tmp_path: Path, key: str) -> None:
    """In a file, by its folder and by a prefix; deeper they are free."""
    file = tmp_path / "x.json"
    write(tmp_path, {**POLICY, "f.json": f'{{"a": 1, "{key}": 2}}', f"d/{key}/x.json": "{}", "x.json": '{"a": 1}'})
    for given in (tmp_path / "f.json", tmp_path / "d", f"{key}.below:{file}"):
        with pytest.raises(BundleError, match=f"the key `{key}` of `data` is not free: OPA and policyeng use it; call"):
            load_bundle(tmp_path / "p", data=[given])

    assert load_bundle(tmp_path / "p", data=[f"a.{key}:{file}"]).data == {"a": {key: {"a": 1}}}


def test_a_key_of_the_bundle_is_not_overwritten(tmp_path: Path) -> None:
    """Data of the directory and data of `--data` are one."""
    write(tmp_path, {**POLICY, "p/data.json": '{"x": {"a": 1}}', "ok.json": '{"x": {"b": 2}}', "no.json": '{"x": 2}'})
    assert load_bundle(tmp_path / "p", data=[tmp_path / "ok.json"]).data == {"x": {"a": 1, "b": 2}}
    with pytest.raises(BundleError, match=r"`data\.x` is in two"):
        load_bundle(tmp_path / "p", data=[tmp_path / "no.json"])


def test_data_is_part_of_the_digest(tmp_path: Path) -> None:
    """Other data, other policies; where the data lies is no part of them."""
    write(tmp_path, {**POLICY, "a/d.json": '{"x": 1}', "b/d.json": '{"x": 1}', "c/d.json": '{"x": 2}'})
    digests = [load_bundle(tmp_path / "p", data=[tmp_path / name]).digest for name in "abc"]
    assert digests[0] == digests[1]
    assert len({*digests, load_bundle(tmp_path / "p").digest}) == 3
