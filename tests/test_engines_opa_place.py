"""Bundles on servers that others use: pushed next to theirs, or loaded by the server, and never mixed up."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import OpaOptions
from policyeng.engines import opa as engine
from policyeng.engines.opa_bundles import bundle_files
from policyeng.errors import BundleError, EngineError
from policyeng.models import Evaluation, Snapshot
from policyeng.sources import load_snapshot
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.opa_servers import Server, free_port, running, until

pytestmark = pytest.mark.slow

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def empty(opa: Path) -> Iterator[Server]:
    """A server without anything."""
    with running(opa) as server:
        yield server
        engine.close()


def evaluated(bundle: Bundle, shot: Snapshot, options: OpaOptions) -> Evaluation:
    """By OPA, after it was compared with the embedded engine."""
    evaluation = evaluate(bundle, shot, as_of=AS_OF, engine="opa", opa=options)
    assert evaluation.findings == evaluate(bundle, shot, as_of=AS_OF).findings
    return evaluation


def small(folder: Path, condition: str) -> Bundle:
    """A bundle of one policy."""
    return load_bundle(write(folder, {"area/p.rego": rego("p", deny_when(condition))}))


def requested(url: str, method: str = "GET", body: str = "") -> object:
    """The response of the server to another client."""
    request = urllib.request.Request(url, body.encode() or None, method=method)  # noqa: S310  # our own server
    with urllib.request.urlopen(request) as response:  # noqa: S310  # the same
        return json.loads(response.read() or b"null")


def served(folder: Path, bundle: Bundle, *, digest: str = "", revision: str = "", **more: object) -> str:
    """The directory of a bundle as `policyeng bundle build` would write its archive."""
    files = bundle_files(bundle, "")
    manifest = {
        **json.loads(files.pop(next(path for path in files if path.name == ".manifest"))),
        "revision": revision or bundle.revision,
        "metadata": {"policyeng": {"digest": digest or bundle.digest}},
        **more,
    }
    data = json.loads(files.pop(next(path for path in files if path.name == "data.json")))
    del data["system"]
    manifest["roots"] = [root for root in manifest["roots"] if root != "system"]
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "data.json").write_bytes(orjson.dumps(data))
    (folder / ".manifest").write_bytes(orjson.dumps({**manifest, **more}))
    return str(folder)


@pytest.mark.slow
def test_a_pushed_bundle_decides_as_the_embedded_engine(bundle: Bundle, empty: Server, root: Path) -> None:
    """The built-in policies, whose modules call each other's functions."""
    shot = load_snapshot(root / "samples/workspaces/regulated.json")

    assert evaluated(bundle, shot, OpaOptions(url=empty.url)).exit_code == 1


def test_pushed_bundles_and_the_policies_of_others_do_not_touch(tmp_path: Path, empty: Server) -> None:
    """Two bundles with the same package, and an organisation's own policy of that name, at the same time."""
    theirs = 'package area.p\n\ndeny contains "theirs"\n'
    requested(f"{empty.url}/v1/policies/area", "PUT", theirs)
    one, two = small(tmp_path / "one", "true"), small(tmp_path / "two", "false")
    shot = snapshot(*(workspace(f"w{n}") for n in range(50)))

    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(evaluated, bundle, shot, OpaOptions(url=empty.url)) for bundle in (one, two) * 4]
        counts = {run.result().bundle.digest: run.result().summary.fail for run in runs}

    assert counts == {one.digest: 50, two.digest: 0}
    assert requested(f"{empty.url}/v1/data/area/p/deny") == {"result": ["theirs"]}


def test_what_stays_on_a_server_is_found_again_and_no_run_leaves_its_mark(tmp_path: Path, empty: Server) -> None:
    """Policies are known by their content; marks go with the run."""
    bundle, shot = small(tmp_path, "true"), snapshot(workspace())
    listed = []
    for _ in range(2):
        evaluated(bundle, shot, OpaOptions(url=empty.url))
        engine.close()
        found = requested(f"{empty.url}/v1/policies")["result"]  # type: ignore[index]  # OPA's list
        listed.append({entry["id"]: entry["raw"] for entry in found})

    assert listed[0] == listed[1]
    assert requested(f"{empty.url}/v1/data/policyeng/runs") == {"result": {}}


def test_a_snapshot_that_is_evaluated_in_parts_is_removed(tmp_path: Path, empty: Server) -> None:
    """It is on the server only while a failing policy is looked for."""
    bundle = small(tmp_path, "1 / input.resource.properties.n > 0")
    shot = snapshot(*(workspace(f"w{n}", n=n) for n in range(3)))

    assert evaluated(bundle, shot, OpaOptions(url=empty.url)).summary.error == 1
    assert requested(f"{empty.url}/v1/data/policyeng/snapshots") == {"result": {}}


def test_a_module_of_the_same_name_with_another_text_is_put_right(tmp_path: Path, empty: Server) -> None:
    """Whoever wrote to our path before us: the run evaluates with its own policies."""
    bundle, shot = small(tmp_path, "true"), snapshot(workspace())
    evaluated(bundle, shot, OpaOptions(url=empty.url))
    engine.close()
    [identity] = [
        entry["id"]
        for entry in requested(f"{empty.url}/v1/policies")["result"]  # type: ignore[index]  # OPA's list
        if entry["id"].endswith("area/p.rego")
    ]
    package = f"package policyeng.bundle_{bundle.digest[:32]}.area.p\n\ndeny := set()\n"
    requested(f"{empty.url}/v1/policies/{identity}", "PUT", package)

    assert evaluated(bundle, shot, OpaOptions(url=empty.url)).summary.fail == 1


def test_a_server_that_was_restarted_has_lost_the_bundle(tmp_path: Path, opa: Path) -> None:
    """The snapshot that meets it cannot be decided; the next run pushes again."""
    bundle, shot, port = small(tmp_path, "true"), snapshot(workspace()), free_port()
    options = OpaOptions(url=f"http://127.0.0.1:{port}")
    with running(opa, port=port) as first:
        evaluated(bundle, shot, options)
        first.kill()
    with running(opa, port=port):
        with pytest.raises(EngineError, match="could not decide: the OPA server does not have the bundle"):
            evaluated(bundle, shot, options)
        evaluated(bundle, shot, options)
        engine.close()


def test_a_server_that_lost_the_mark_gives_no_verdict(tmp_path: Path, empty: Server) -> None:
    """Its store is not the one that we wrote to, though the modules may exist."""
    bundle, shot = small(tmp_path, "true"), snapshot(workspace())
    evaluated(bundle, shot, OpaOptions(url=empty.url))
    requested(f"{empty.url}/v1/data/policyeng/runs", "PUT", "{}")

    with pytest.raises(EngineError, match="could not decide: the OPA server does not have the bundle"):
        evaluated(bundle, shot, OpaOptions(url=empty.url))


def test_a_served_bundle_is_used_and_nothing_is_pushed(bundle: Bundle, opa: Path, tmp_path: Path, root: Path) -> None:
    """All that is put next to it is the module for queries."""
    shot = load_snapshot(root / "samples/workspaces/regulated.json")
    with running(opa, "--bundle", served(tmp_path / "b", bundle)) as server:
        for options in (OpaOptions(url=server.url), OpaOptions(url=server.url, push=False)):
            assert evaluated(bundle, shot, options).exit_code == 1
        policies = requested(f"{server.url}/v1/policies")
        engine.close()

    ours = [entry["id"] for entry in policies["result"] if entry["id"].startswith("policyeng/")]  # type: ignore[index]  # OPA's list
    assert len(ours) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"revision": "r9"}, r"the server has revision `r9` \([0-9a-f]{12}\) of the bundle, but this run uses `` \("),
        ({"digest": "0" * 64}, r"the server has revision `` \(000000000000\) of the bundle, but this run uses `` \("),
    ],
)
def test_another_revision_or_digest_is_refused(tmp_path: Path, opa: Path, more: dict[str, str], message: str) -> None:
    """Before anything is evaluated, and both are named."""
    bundle = small(tmp_path / "p", "true")
    with (
        running(opa, "--bundle", served(tmp_path / "b", bundle, **more)) as server,
        pytest.raises(EngineError, match=message),
    ):
        evaluated(bundle, snapshot(workspace()), OpaOptions(url=server.url))


def test_a_bundle_that_changes_between_two_snapshots_is_refused(tmp_path: Path, opa: Path) -> None:
    """The manifest is read in the same transaction as the verdicts, so a reload half-way cannot pass."""
    bundle, shot = small(tmp_path / "p", "true"), snapshot(workspace())
    folder, port = tmp_path / "b", free_port()
    options = OpaOptions(url=f"http://127.0.0.1:{port}")
    served(folder, bundle)
    with running(opa, "--bundle", "--watch", str(folder), port=port) as server:
        evaluated(bundle, shot, options)
        served(folder, bundle, revision="r2")
        manifests = f"{server.url}/v1/data/system/bundles"
        until(lambda: '"r2"' in json.dumps(requested(manifests)))
        with pytest.raises(EngineError, match="the server has revision `r2`"):
            evaluated(bundle, shot, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"push": False}, "has not loaded a policyeng bundle; serve it, or push it with `--opa-push`"),
        ({"bundle": "nope"}, "has not loaded a bundle `nope`; it has loaded none"),
    ],
)
def test_a_bundle_that_should_be_there_is_missed(
    tmp_path: Path, empty: Server, options: dict[str, object], message: str
) -> None:
    """Nothing is pushed instead."""
    with pytest.raises(EngineError, match=message):
        evaluated(small(tmp_path, "true"), snapshot(workspace()), OpaOptions(url=empty.url, **options))  # type: ignore[arg-type]  # one of the options

    assert requested(f"{empty.url}/v1/policies") == {"result": []}


def test_a_named_bundle_without_our_digest_is_no_proof(tmp_path: Path, opa: Path) -> None:
    """The revision alone proves nothing about the content."""
    bundle = small(tmp_path / "p", "true")
    folder = Path(served(tmp_path / "b", bundle, metadata={}))
    with (
        running(opa, "--bundle", str(folder)) as server,
        pytest.raises(EngineError, match="has no policyeng digest; serve a bundle that `policyeng bundle build` wrote"),
    ):
        evaluated(bundle, snapshot(workspace()), OpaOptions(url=server.url, bundle=str(folder)))


def test_a_bundle_that_owns_every_path_is_named_as_the_reason(tmp_path: Path, opa: Path) -> None:
    """OPA lets no one write where a bundle is at home."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.rego").write_text("package theirs\n\nx := 1\n", encoding="utf-8")
    with (
        running(opa, "--bundle", str(tmp_path / "theirs")) as server,
        pytest.raises(EngineError, match=r"owned by bundle.*`roots` of the bundles"),
    ):
        evaluated(small(tmp_path / "p", "true"), snapshot(workspace()), OpaOptions(url=server.url))


def test_a_module_that_opa_does_not_take_is_explained(tmp_path: Path, empty: Server) -> None:
    """With the place in the module, and nothing is evaluated."""
    files = {"area/p.rego": rego("p", deny_when("lib_missing(1)"))}
    bundle = load_bundle(write(tmp_path, files))

    with pytest.raises(EngineError, match=r"area/p\.rego:10.*lib_missing"):
        evaluate(bundle, snapshot(workspace()), as_of=AS_OF, engine="opa", opa=OpaOptions(url=empty.url))


@pytest.mark.parametrize("key", ["policyeng", "system"])
def test_data_of_a_bundle_where_a_server_keeps_its_own_is_refused(tmp_path: Path, opa: Path, key: str) -> None:
    """The embedded engine reads it; OPA would read something else in its place."""
    bundle = load_bundle(write(tmp_path, {"area/p.rego": rego("p", deny_when("true")), f"{key}/data.json": '{"a": 1}'}))

    with pytest.raises(BundleError, match=f"the key `{key}` of `data` is not free"):
        evaluate(bundle, snapshot(workspace()), as_of=AS_OF, engine="opa", opa=OpaOptions(binary=opa))
