"""`policyeng bundle`, and archives wherever a command takes policies."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
import typer

from policyeng.cli import run
from policyeng.cli.app import app
from tests.archives import POLICY, Keys, archive, keys, member, packed, unpacked
from tests.bundles import deny_when, rego, workspace, write
from tests.test_cli import file


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Policyeng(Protocol):
    """The command line in a folder, with an environment."""

    def __call__(self, *arguments: str, folder: Path, **environ: str) -> Ran:
        """Run it."""


@pytest.fixture
def policyeng(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Policyeng:
    """The command line in this process: there are many runs here, and a process each would cost most of the time."""

    def command(*arguments: str, folder: Path, **environ: str) -> Ran:
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for name, value in environ.items():
                patch.setenv(name, value)
            capsys.readouterr()
            return Ran(run(arguments), *capsys.readouterr())

    return command


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A pair of keys on P-256."""
    return keys(tmp_path_factory.mktemp("keys"), "p256")


@pytest.fixture
def folder(tmp_path: Path, pair: Keys, policyeng: Policyeng) -> Path:
    """A folder with policies, a signed and an unsigned archive of them, an altered one, and a snapshot."""
    write(tmp_path / "policies", {**POLICY, ".manifest": '{"revision": "7", "roots": ["area"]}'})
    file(tmp_path, workspace("a"))
    build = ("bundle", "build", "--policy", "policies", "--output")
    assert policyeng(*build, "unsigned.tar.gz", folder=tmp_path).returncode == 0
    signing = ("--signing-key", str(pair.private), "--signing-key-id", "k1")
    assert policyeng(*build, "signed.tar.gz", *signing, folder=tmp_path).returncode == 0
    files = dict(unpacked(tmp_path / "signed.tar.gz"))
    packed(tmp_path / "altered.tar.gz", {**files, "area/a/a.rego": files["area/a/a.rego"].replace(b"high", b"info")})
    return tmp_path


COMMANDS = [
    ("check", "snapshot.json", "--policy"),
    ("policies", "list", "--policy"),
    ("policies", "show", "T-A-1", "--policy"),
    ("test", "--policy"),
    ("bundle", "build", "--output", "again.tar.gz", "--policy"),
    ("bundle", "verify"),
    ("verify", "--engines", "--pairs", "1", "--policy"),
]


@pytest.mark.attack
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_what_is_not_signed_as_configured(
    folder: Path, pair: Keys, command: tuple[str, ...], policyeng: Policyeng
) -> None:
    """By flag, by environment and by configuration file; nothing is evaluated and nothing is written."""
    key = ("--verification-key", str(pair.public))
    configured = {"POLICYENG_VERIFICATION_KEY": str(pair.public)}
    write(folder, {"strict.toml": f'verification_key = "{pair.public}"\nrequire_signature = true\n'})
    for bundle, options, environ, message in (
        ("altered.tar.gz", key, {}, "area/a/a.rego: the file was altered after signing"),
        ("unsigned.tar.gz", key, {}, "unsigned.tar.gz: the bundle is not signed"),
        ("unsigned.tar.gz", (), configured, "unsigned.tar.gz: the bundle is not signed"),
        ("policies", ("--config", "strict.toml"), {}, "policies: the bundle is not signed"),
        ("policies", key, {}, "policies: the bundle is not signed"),
        ("signed.tar.gz", (*key, "--verification-key-id", "k2"), {}, "has the key `k1`, but `k2` is configured"),
        ("signed.tar.gz", (*key, "--verification-scope", "w"), {}, "has no scope, but `w` is configured"),
    ):
        ran = policyeng(*command, bundle, *options, folder=folder, **environ)

        assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
        assert message in ran.stderr
    assert not (folder / "again.tar.gz").exists()


def test_a_directory_is_signed_in_its_place(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """Every file of it; signing it again replaces the signature."""
    key = ("--verification-key", str(pair.public))
    sign = ("bundle", "sign", "policies", "--signing-key", str(pair.private), "--signing-key-id", "k1")
    for expected in ("", "more"):
        write(folder / "policies", {"area/notes.md": expected})
        ran = policyeng(*sign, folder=folder)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout == "policies: 3 files signed with ES256\n"
        verified = policyeng("bundle", "verify", "policies", *key, folder=folder)
        assert "signature  valid, ES256, key k1" in verified.stdout

    write(folder / "policies", {"area/notes.md": "altered"})
    refused = policyeng("bundle", "verify", "policies", *key, folder=folder)
    assert refused.returncode == 2
    assert "notes.md: the file was altered after signing" in refused.stderr


def test_what_cannot_be_signed_as_a_directory_is_refused(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """An archive, a directory without policies, and a signature that is a link to somewhere else."""
    write(folder, {"empty/notes.md": "none", "elsewhere": "kept"})
    write(folder / "linked", POLICY)
    (folder / "linked" / ".signatures.json").symlink_to(folder / "elsewhere")
    for directory, code, message in (
        ("unsigned.tar.gz", 3, "unsigned.tar.gz: not a directory"),
        ("empty", 2, "no policies found"),
        ("linked", 2, "linked/.signatures.json: the signature is not a regular file"),
    ):
        ran = policyeng("bundle", "sign", directory, "--signing-key", str(pair.private), folder=folder)
        assert (ran.returncode, ran.stdout) == (code, "")
        assert message in ran.stderr
    assert (folder / "elsewhere").read_text() == "kept"


def test_an_unsigned_directory_is_read_where_that_is_allowed(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """By flag and by variable; an archive has to be signed all the same."""
    key = ("check", "snapshot.json", "--verification-key", str(pair.public), "--policy")
    allowed = {"POLICYENG_ALLOW_UNSIGNED_DIRECTORY": "true"}
    assert policyeng(*key, "policies", "--allow-unsigned-directory", folder=folder).returncode == 1
    assert policyeng(*key, "policies", folder=folder, **allowed).returncode == 1
    assert policyeng(*key, "policies", folder=folder).returncode == 2
    assert policyeng(*key, "unsigned.tar.gz", folder=folder, **allowed).returncode == 2


def test_no_command_takes_policies_and_no_key() -> None:
    """A command that loads policies and knows nothing of signatures would be the way around them."""
    wanted = {"verification_key", "verification_algorithm", "verification_key_id", "verification_scope"}
    found = []
    groups = [typer.main.get_command(app)]
    for group in groups:
        for command in getattr(group, "commands", {}).values():
            groups.append(command)
            names = {parameter.name for parameter in command.params}
            if names & {"policy", "archive"}:
                found.append(command.name)
                assert names >= wanted | {"require_signature", "allow_unsigned_directory"}, command.name

    assert {"check", "list", "show", "test", "build", "verify"} <= set(found)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] not in {"test", "verify"}])
def test_every_command_takes_what_is_signed_as_configured(
    folder: Path, pair: Keys, command: tuple[str, ...], policyeng: Policyeng
) -> None:
    """With the key, and without one configured."""
    for options in (("--verification-key", str(pair.public), "--require-signature"), ()):
        ran = policyeng(*command, "signed.tar.gz", *options, folder=folder)

        assert (ran.returncode, ran.stderr) == (int(command[0] == "check"), "")


def test_the_findings_of_an_archive_are_those_of_its_directory(folder: Path, policyeng: Policyeng) -> None:
    """The whole report but the name of the bundle."""
    reports = []
    for bundle in ("policies", "unsigned.tar.gz"):
        at = ("--as-of", "2026-06-01T00:00:00Z", "--format", "json")
        reports.append(json.loads(policyeng("check", "snapshot.json", "--policy", bundle, *at, folder=folder).stdout))
        assert reports[-1]["bundle"].pop("name") == bundle.removesuffix(".tar.gz")

    assert reports[0] == reports[1]
    assert reports[0]["bundle"]["revision"] == "7"


def test_an_archive_carries_no_cases_and_test_reports_that(folder: Path, policyeng: Policyeng) -> None:
    """Passing with no case would be a lie."""
    ran = policyeng("test", "--policy", "unsigned.tar.gz", folder=folder)

    assert ran.returncode == 2
    assert "unsigned.tar.gz: an archive contains no test cases; pass the directory it was built from" in ran.stderr


def test_build_prints_what_it_built(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """As text and as JSON, which has the same facts."""
    build = ("bundle", "build", "--policy", "policies", "--output", "b.tar.gz", "--revision", "8")
    text = policyeng(*build, folder=folder)
    report = json.loads(policyeng(*build, "--signing-key", str(pair.private), "--format", "json", folder=folder).stdout)
    manifest = json.loads(unpacked(folder / "b.tar.gz")[".manifest"])

    assert "revision   8" in text.stdout
    assert f"digest     {report['digest']}" in text.stdout
    assert "signature  not signed" in text.stdout
    assert "  area/a/a.rego" in text.stdout
    assert report["revision"] == manifest["revision"] == "8"
    assert report["digest"] == manifest["metadata"]["policyeng"]["digest"]
    assert report["members"] == sorted(unpacked(folder / "b.tar.gz"))
    assert report["bytes"] == (folder / "b.tar.gz").stat().st_size
    assert report["signature"] == {"algorithm": "ES256", "keyId": ""}


def test_building_twice_gives_the_same_file(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """Signed or not."""
    build = ("bundle", "build", "--policy", "policies", "--output", "b.tar.gz")
    assert policyeng(*build, folder=folder).returncode == 0
    assert (folder / "b.tar.gz").read_bytes() == (folder / "unsigned.tar.gz").read_bytes()

    signing = ("--signing-key", str(pair.private), "--signing-key-id", "k1")
    assert policyeng(*build, *signing, folder=folder).returncode == 0
    assert (folder / "b.tar.gz").read_bytes() == (folder / "signed.tar.gz").read_bytes()


def test_verify_prints_what_an_archive_contains(folder: Path, pair: Keys, policyeng: Policyeng) -> None:
    """Whether its signature is valid or was not verified is never left open."""
    verify = ("bundle", "verify", "signed.tar.gz")
    verified = policyeng(*verify, "--verification-key", str(pair.public), folder=folder)
    unseen = policyeng(*verify, folder=folder)
    report = json.loads(policyeng(*verify, "--format", "json", folder=folder).stdout)
    plain = policyeng("bundle", "verify", "unsigned.tar.gz", folder=folder)
    lent = policyeng("bundle", "verify", "policies", folder=folder)

    assert "signature  valid, ES256, key k1" in verified.stdout
    assert "signature  signed, not verified: pass the key with --verification-key" in unseen.stdout
    assert "signature  not signed" in plain.stdout
    assert "policies   1 compiled: T-A-1" in verified.stdout
    assert "built-in   facts, lib from the built-in policies" in lent.stdout
    assert report["signature"] == {"verified": False}
    assert (report["policies"], report["lent"]) == (["T-A-1"], [])
    assert ".signatures.json" in report["members"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({**POLICY, ".manifest": '{"metadata": {"policyeng": {"digest": "0123"}}}'}, "has digest `0123`"),
        ({"area/a/a.rego": rego("a", deny_when("nowhere.known"))}, "does not compile"),
        ({"x/data.json": "{}"}, "no policies found"),
        ({"area/a/a.rego": b"\xff"}, "not UTF-8"),
    ],
)
def test_verify_refuses_what_could_not_evaluate(
    tmp_path: Path, files: dict[str, str | bytes], message: str, policyeng: Policyeng
) -> None:
    """An altered digest, policies that do not compile, none at all."""
    packed(tmp_path / "b.tar.gz", files)

    ran = policyeng("bundle", "verify", "b.tar.gz", folder=tmp_path)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr


@pytest.mark.slow
def test_hostile_archives_end_with_a_sentence_and_exit_2(tmp_path: Path, policyeng: Policyeng) -> None:
    """Through the command line, as somebody meets them."""
    packed(tmp_path / "whole.tar.gz", dict(POLICY))
    (tmp_path / "cut.tar.gz").write_bytes((tmp_path / "whole.tar.gz").read_bytes()[:-20])
    archive(tmp_path / "slip.tar.gz", member("../../x.rego"))
    archive(tmp_path / "link.tar.gz", member("x.rego", kind=b"2"))
    archive(tmp_path / "many.tar.gz", *(member(f"{number}.rego") for number in range(10_001)))
    (tmp_path / "bomb.tar.gz").write_bytes(gzip.compress(bytes(130 * 1024 * 1024)))
    archive(tmp_path / "large.tar.gz", member("x/data.json", bytes(65 * 1024 * 1024)))
    for name, message in (
        ("cut", "is cut off"),
        ("slip", "../../x.rego: the name of the member leads out of the bundle"),
        ("link", "x.rego: the member is a symbolic link"),
        ("many", "more than 10000 members"),
        ("bomb", "inflates to more than"),
        ("large", "x/data.json: the member is larger than"),
    ):
        ran = policyeng("bundle", "verify", f"{name}.tar.gz", folder=tmp_path)

        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith(f"policyeng: {name}.tar.gz: ")
        assert message in ran.stderr
        assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bundle", "build"), "--output"),
        (("bundle", "build", "--output", "nowhere/b.tar.gz"), "cannot write the archive"),
        (("bundle", "build", "--output", "b.tar.gz", "--signing-key-id", "k"), "signing options without a signing key"),
        (("bundle", "build", "--output", "b.tar.gz", "--signing-key", "no.pem"), "the key cannot be read"),
        (("bundle", "build", "--output", "b.tar.gz", "--format", "yaml"), "unknown format `yaml`"),
        (("bundle", "verify", "x.tar.gz", "--format", "yaml"), "unknown format `yaml`"),
        (("bundle", "verify", "x.tar.gz", "--verification-key", "no.pem"), "path `no.pem` does not exist"),
        (("check", "x.json", "--require-signature"), "no key is configured"),
        (("policies", "list", "--require-signature"), "no key is configured"),
    ],
)
def test_wrong_usage_is_reported(
    tmp_path: Path, arguments: tuple[str, ...], message: str, policyeng: Policyeng
) -> None:
    """Nothing is left half written."""
    ran = policyeng(*arguments, folder=tmp_path)

    assert ran.returncode == 3
    assert message in ran.stderr
    assert not list(tmp_path.iterdir())


def test_an_existing_archive_is_kept_when_building_fails(folder: Path, policyeng: Policyeng) -> None:
    """A server may be reading it."""
    before = (folder / "unsigned.tar.gz").read_bytes()
    write(folder / "policies", {"area/b/b.rego": rego("b", deny_when("true"))})

    assert (
        policyeng("bundle", "build", "--policy", "policies", "--output", "unsigned.tar.gz", folder=folder).returncode
        == 2
    )
    assert (folder / "unsigned.tar.gz").read_bytes() == before


@pytest.mark.parametrize("text", ["package lib.broken\n\nx := {", "package lib.broken\n\nx := missing(1)\n"])
def test_what_does_not_compile_is_not_built(tmp_path: Path, policyeng: Policyeng, text: str) -> None:
    """It would not be found before the archive is used."""
    write(tmp_path / "policies", {**POLICY, "lib/broken.rego": text})
    ran = policyeng("bundle", "build", "--policy", "policies", "--output", "b.tar.gz", folder=tmp_path)

    assert ran.returncode == 2
    assert "lib/broken.rego" in ran.stderr
    assert not (tmp_path / "b.tar.gz").exists()
