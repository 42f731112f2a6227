"""A bundle that is carried as bytes is the same bundle where it is opened."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate, load_snapshot
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.errors import BundleError
from tests.bundles import deny_when, rego, workspace, write
from tests.bundles import snapshot as snapshot_of
from tests.conftest import ROOT

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
PYTHON = """\
from policyeng import Denial, policy


@policy(id="T-B-1", title="it holds", severity="high", judges=["Microsoft.MachineLearningServices/workspaces"])
def deny(it):
    if it.resource["properties"].get("x") == 1:
        yield Denial("m", "/properties/x", actual=1)
"""


def require_same(bundle: Bundle, carried: Bundle) -> None:
    """All that a report shows of a bundle, and all that it evaluates with."""
    for name in ("name", "revision", "digest", "modules", "data", "rego_v0", "lent", "given"):
        assert getattr(carried, name) == getattr(bundle, name), name
    for policies, others in ((bundle.policies, carried.policies), (bundle.idle, carried.idle)):
        assert [(policy.id, policy.header, policy.rules) for policy in policies] == [
            (policy.id, policy.header, policy.rules) for policy in others
        ]


def test_the_built_in_policies_decide_the_same_when_they_were_carried(bundle: Bundle) -> None:
    """And the same bundle is the same bytes."""
    content = pack_bundle(bundle)
    carried = unpack_bundle(content)
    snapshot = load_snapshot(ROOT / "samples/workspaces/regulated.json")

    require_same(bundle, carried)
    assert evaluate(carried, snapshot, as_of=AS_OF) == evaluate(bundle, snapshot, as_of=AS_OF)
    assert pack_bundle(bundle) == content


def test_a_selection_is_carried(bundle: Bundle) -> None:
    """The others are idle there, too."""
    few = bundle.only(bundle.policies[3:5])

    require_same(few, unpack_bundle(pack_bundle(few)))


def test_policies_of_others_are_carried_with_the_data_that_is_given_to_them() -> None:
    """What `--data` names is not looked for where the bundle is opened."""
    samples = ROOT / "samples/conftest"
    bundle = load_bundle(samples / "policy", data=[f"a.b:{samples / 'teams.yaml'}", samples / "teams.yaml"])

    require_same(bundle, unpack_bundle(pack_bundle(bundle)))


def test_directories_that_no_archive_of_opa_could_join_are_carried(tmp_path: Path) -> None:
    """Two files of one name, one of them Python, and what the built-in bundle lends."""
    first = write(tmp_path / "a", {"area/x/x.rego": rego("x", deny_when("true")), "area/p/p.py": PYTHON})
    second = write(tmp_path / "b", {"area/x/x.rego": rego("y", deny_when("true"), identity="T-A-2")})
    bundle = load_bundle(first, second)
    carried = unpack_bundle(pack_bundle(bundle))
    snapshot = snapshot_of(workspace(x=1))

    require_same(bundle, carried)
    assert carried.lent == {"lib", "facts"}
    assert evaluate(carried, snapshot, as_of=AS_OF).findings == evaluate(bundle, snapshot, as_of=AS_OF).findings


def test_a_directory_that_is_lent_nothing_is_carried(bundle: Bundle) -> None:
    """The built-in one under its path is the same under another name."""
    named = load_bundle(ROOT / "policies")

    assert named.roots == (ROOT / "policies",)
    require_same(named, unpack_bundle(pack_bundle(named)))
    assert named.digest == bundle.digest


def test_an_archive_is_carried(tmp_path: Path, bundle: Bundle) -> None:
    """Read from one file, it has the same digest."""
    from policyeng.bundle.archive import archive_bytes, archive_files
    from policyeng.bundle.files import open_origins

    archive = tmp_path / "built.tar.gz"
    archive.write_bytes(archive_bytes(archive_files(bundle, open_origins([]), revision="7")))
    read = load_bundle(archive)

    assert read.revision == "7"
    require_same(read, unpack_bundle(pack_bundle(read)))


def test_what_was_loaded_is_carried_whatever_the_files_have_become(tmp_path: Path) -> None:
    """Nothing is evaluated with what was not loaded, verified or named."""
    bundle = load_bundle(write(tmp_path, {"area/x/x.rego": rego("x", deny_when("true"))}))
    write(tmp_path, {"area/x/x.rego": rego("x", deny_when("false"))})

    require_same(bundle, unpack_bundle(pack_bundle(bundle)))


def test_a_bundle_that_was_made_is_not_carried(bundle: Bundle) -> None:
    """Its policy is in no file, and would be another where it is opened."""
    made = bundle.rewritten(bundle.policies[0], bundle.modules, "0" * 64)

    with pytest.raises(BundleError, match="policyeng: the policies were not read from files; load them from files"):
        pack_bundle(made)


def test_bytes_that_open_as_another_bundle_are_refused(bundle: Bundle) -> None:
    """As when another version reads other policies in the same files."""
    content = pack_bundle(bundle).replace(bundle.digest.encode(), b"0" * 64)

    with pytest.raises(BundleError, match=r"`000000000000`.*; use the version of policyeng that they come from"):
        unpack_bundle(content)
