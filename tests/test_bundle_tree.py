"""The files of a directory of policies, and links in it that lead elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from policyeng.bundle.files import every_file_of, files_of
from policyeng.errors import BundleError
from tests.bundles import write


@pytest.mark.parametrize("read", [files_of, every_file_of])
@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("p/l.rego", "../../outside/secret.rego"),
        ("p/l.rego", "/etc/passwd"),
        ("data.json", "../outside/missing.json"),
        ("p/l.rego", "../../policies-too/near.rego"),
        ("p/folder", "../../outside"),
        ("p/folder", "/"),
    ],
)
def test_a_link_that_leads_out_is_refused(
    tmp_path: Path, read: Callable[[Path], object], link: str, target: str
) -> None:
    """Files, folders, what is not there, and a directory whose name begins as ours does."""
    write(tmp_path, {"policies/p/a.rego": "package a", "outside/secret.rego": "x", "policies-too/near.rego": "x"})
    (tmp_path / "policies" / link).symlink_to(target)

    with pytest.raises(BundleError, match="the link leads out of the directory of the policies") as refusal:
        read(tmp_path / "policies")
    assert refusal.value.place == (str(tmp_path / "policies" / link),)


def test_a_link_by_way_of_another_is_refused(tmp_path: Path) -> None:
    """Where it ends is what counts."""
    write(tmp_path, {"policies/a.rego": "package a", "secret": "x"})
    (tmp_path / "policies" / "step").symlink_to("../secret")
    (tmp_path / "policies" / "l.rego").symlink_to("step")

    with pytest.raises(BundleError, match=r"l\.rego: the link leads out"):
        files_of(tmp_path / "policies")


def test_links_within_stay(tmp_path: Path) -> None:
    """As volumes of Kubernetes have them; the directory itself may be a link too."""
    write(tmp_path, {"policies/..7/a.rego": "package a", "policies/b.rego": "package b"})
    (tmp_path / "policies" / "..data").symlink_to("..7")
    (tmp_path / "policies" / "a.rego").symlink_to("..data/a.rego")
    (tmp_path / "linked").symlink_to("policies")

    for root in (tmp_path / "policies", tmp_path / "linked"):
        assert files_of(root) == {PurePosixPath("a.rego"): b"package a", PurePosixPath("b.rego"): b"package b"}


def test_links_of_what_does_not_count_are_left_alone(tmp_path: Path) -> None:
    """A virtual environment links to the interpreter of the machine; nothing of it is read."""
    write(tmp_path, {"p/a.rego": "package a", "p/.venv/x": "", "elsewhere/README.md": "x"})
    (tmp_path / "p" / ".venv" / "lib64").symlink_to("/")
    (tmp_path / "p" / ".venv" / "python").symlink_to("/bin/sh")
    (tmp_path / "p" / "README.md").symlink_to("../elsewhere/README.md")

    assert set(files_of(tmp_path / "p")) == {PurePosixPath("a.rego")}
