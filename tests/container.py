"""Build the containers without an engine for containers: the steps of each Containerfile, run below a folder.

Every `COPY` and `RUN` of the stage `build` is executed as it is, with the programs of this machine in place of
those of its images; then what the image would start is started with its arguments and variables, as its user and on a
root that cannot be written, where the machine has what that takes. `python -m tests.container` takes some minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import httpx

from tests.conftest import ROOT
from tests.container_root import base_python, missing, traced, within, written
from tests.test_server_tokens import line

#: The server, and `check` alone.
SERVER, CHECK = (ROOT / "deploy" / "container" / name for name in ("Containerfile", "Containerfile.check"))
#: What may be transferred for the image of `check`, in bytes.
LARGEST = 120_000_000
#: What is transferred for a base on linux/amd64, in bytes, by its digest. Source: https://github.com/docker-library/repo-info
#: at 2986dca3a80cb11b70fc4599941096374ea9e509, `repos/python/remote/3.13-slim-trixie.md`.
BASES = {"sha256:9662417aace5ae7b8e2609cce472b72a8958e134ba372808abe9cc1a0c0125e6": 42_961_458}
IGNORED = ROOT / ".dockerignore"
#: Where the steps put what they make.
PLACES = ("/opt/", "/etc/policyeng", "/build", "/work")


class Step(NamedTuple):
    """One instruction of one stage."""

    stage: int
    name: str
    text: str


def steps(file: Path) -> Iterator[Step]:
    """The instructions of a Containerfile, continued lines joined and comments left out."""
    text = file.read_text(encoding="utf-8")
    lines = [each for each in text.splitlines() if not each.startswith("#")]
    stage = -1
    for joined in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, rest = joined.strip().partition(" ")
        if name:
            stage += name == "FROM"
            yield Step(stage, name, rest.strip())


def environment(file: Path, stage: int) -> dict[str, str]:
    """What `ENV` sets in a stage."""
    pairs = (pair for step in steps(file) if step[:2] == (stage, "ENV") for pair in step.text.split())
    return dict(pair.split("=", 1) for pair in pairs)


def final(file: Path, name: str) -> str:
    """The last instruction of a name, which the image keeps."""
    return [step.text for step in steps(file) if step.name == name][-1]


def below(text: str, folder: Path) -> str:
    """A step with its places below a folder."""
    return re.sub(r"(?<![\w/.])(?=(?:" + "|".join(PLACES) + "))", str(folder), text)


def copied(sources: list[str], target: Path) -> None:
    """Copy from the repository as `COPY` does, without what `.dockerignore` names.

    Args:
        sources: files, or one folder.
        target: the folder for the files, or for what is in the folder.
    """
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, target, ignore=left_out)
        else:
            target.mkdir(exist_ok=True)
            shutil.copy(path, target)


def build(file: Path, folder: Path) -> None:
    """Run the steps of the stage `build` of a Containerfile.

    Raises:
        CalledProcessError: one of them fails, as it would in a build.
    """
    (folder / "build").mkdir()
    (folder / "opt").mkdir()
    given = {key: value for key, value in environment(file, 0).items() if key.startswith("PIP_")}
    for step in steps(file):
        if step.stage != 0:
            continue
        if step.name == "COPY":
            *sources, target = step.text.split()
            copied(sources, folder / "build" / target)
        elif step.name == "RUN":
            script = re.sub(r"(?<![\w/-])python(?= -m)", sys.executable, below(step.text, folder))
            environ = {key: value for key, value in os.environ.items() if not key.startswith(("POLICYENG_", "PYTHON"))}
            subprocess.run(["sh", "-c", script], cwd=folder / "build", env={**environ, **given}, check=True)


class Image:
    """What was built, to be started as the image would be with a root that cannot be written.

    Attributes:
        tree: what is installed.
        place: the folder that it starts in, with what it is configured by or checks.
        log: the one folder that it may write.
        lacks: why it is started as any other program here; empty where it has a root of its own.
        calls: where its system calls about files go.
    """

    def __init__(self, file: Path, folder: Path) -> None:
        self._file, self._folder, self._root = file, folder, folder / "root"
        self.tree = folder / "opt" / "policyeng"
        self.place, self.log = Path(below(final(file, "WORKDIR"), folder)), folder / "log"
        for each in (self._root, self.place, self.log):
            each.mkdir(parents=True, exist_ok=True)
        self.lacks, self.calls = missing(), folder / "calls"
        if not self.lacks:
            os.chown(self.log, *map(int, final(self._file, "USER").split(":")))

    @property
    def program(self) -> str:
        """The entry point."""
        (program,) = json.loads(below(final(self._file, "ENTRYPOINT"), self._folder))
        return str(program)

    def arguments(self) -> list[str]:
        """The arguments that it is started with by default."""
        return [str(each) for each in json.loads(below(final(self._file, "CMD"), self._folder))]

    def health(self, port: str) -> list[str]:
        """The command that checks its health, on a port."""
        text = final(self._file, "HEALTHCHECK").partition(" CMD ")[2].replace(":8180/", f":{port}/")
        return [str(each) for each in json.loads(below(text, self._folder))]

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of it, with the variables of the image alone; it is for the caller to end."""
        environ = {key: below(value, self._folder) for key, value in environment(self._file, 1).items()}
        shown = (self.tree, self.place, base_python())
        whole = ["env", f"--chdir={self.place}", "-i", *(f"{key}={value}" for key, value in environ.items()), *command]
        if not self.lacks:
            root = within(self._root, final(self._file, "USER"), shown, (self.log,))
            whole = [*traced(self.calls), *root, *whole]
        return subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ran(self, *command: str) -> tuple[int, str, str]:
        """Exit code, output and messages of a program of it."""
        with self.start(*command) as process:
            try:
                output, messages = process.communicate(timeout=120)
            finally:
                process.kill()
        return process.returncode, output, messages

    def require_untouched(self) -> None:
        """Check that what was started last tried to write nowhere but where it may.

        Raises:
            AssertionError: it tried.
        """
        if self.calls.exists():
            elsewhere = list(written(self.calls, self.program, self.log))
            assert not elsewhere, f"it tried to write: {elsewhere[:3]}"


def try_checking(image: Image) -> None:
    """It checks what is mounted, with its default arguments, and writes nowhere."""
    shutil.copy(ROOT / "samples/workspaces/regulated.json", image.place)
    began = monotonic()
    code, output, messages = image.ran(image.program, *image.arguments(), "--format", "json")
    assert code == 1, messages
    assert json.loads(output)["summary"]["error"] == 0
    image.require_untouched()
    report(f"it checks what is mounted: exit {code} after {monotonic() - began:.1f} s")


def try_evaluating(image: Image) -> None:
    """It evaluates a snapshot, and without tokens does not serve."""
    shutil.copy(ROOT / "samples/workspaces/regulated.json", image.place / "snapshot.json")
    options = ("check", "snapshot.json", "--as-of", "2026-06-01T00:00:00Z", "--format", "json")
    code, output, messages = image.ran(image.program, *options)
    assert code == 1, messages
    assert json.loads(output)["summary"]["error"] == 0
    image.require_untouched()
    report(f"it evaluates a snapshot: exit {code}")
    code, _, messages = image.ran(image.program, *image.arguments())
    assert (code, "tokens" in messages) == (3, True), f"it started without tokens: {messages}"
    report(f"without tokens it does not serve: {messages.strip()}")


def try_serving(image: Image) -> None:
    """It serves those who have a token, is healthy, writes its decision log, and ends well."""
    (image.place / "tokens").write_text(line("all", "check,admit", "secret"), encoding="utf-8")
    given = {"0.0.0.0": "127.0.0.1", "8180": "0"}  # noqa: S104  # what the image has, which is more than a test needs
    arguments = [given.get(each, each) for each in image.arguments()]
    began = monotonic()
    with image.start(image.program, *arguments, "--decision-log", str(image.log)) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            address = server.stdout.readline().split()[-1:]
            assert address, server.stderr.read()
            report(f"it serves after {monotonic() - began:.1f} s{', traced' if image.calls.exists() else ''}")
            request(image, *address)
            server.send_signal(signal.SIGTERM)
            code, messages = server.wait(30), server.stderr.read()
            others = [line for line in messages.splitlines() if " INFO access: " not in line]
            assert (code, others) == (0, []), f"it ended with {code}: {messages}"
        finally:
            server.kill()
    entries = [json.loads(text) for text in (image.log / "decisions.jsonl").read_bytes().splitlines()]
    assert [(entry["point"], "result" in entry) for entry in entries] == [
        ("check", False),
        ("check", True),
        ("admit", True),
    ]
    image.require_untouched()
    report(
        f"it responds, is healthy, wrote {len(entries)} decisions to the folder that it may write, and ends with exit 0"
    )


def request(image: Image, address: str) -> None:
    """Send requests to a server, with a token and without."""
    snapshot = json.loads((image.place / "snapshot.json").read_bytes())
    client = httpx.Client(base_url=address, timeout=60)
    with client:
        assert client.get("/readyz").json() == {"ready": True, "reasons": [], "faults": []}
        assert client.post("/v1/check", json=snapshot).status_code == httpx.codes.UNAUTHORIZED
        client.headers["Authorization"] = "Bearer secret"
        assert client.post("/v1/check", json=snapshot).json()["exitCode"] == 1
        workspace = json.loads((ROOT / "samples/baselines/workspace.json").read_bytes())
        workspace["properties"]["publicNetworkAccess"] = "Enabled"
        assert client.post("/v1/admit", json=workspace).json()["allowed"] is False
    healthy = subprocess.run(image.health(address.rpartition(":")[2]), capture_output=True, text=True, check=False)
    assert healthy.returncode == 0, healthy.stderr


def report(text: str) -> None:
    """Report the progress."""
    print(text, flush=True)


def installed_size(image: Image) -> int:
    """Bytes of the files that are installed."""
    return sum(path.lstat().st_size for path in image.tree.rglob("*") if not path.is_dir())


def transferred_size(image: Image) -> int:
    """Bytes of the layer with what is installed, which registries keep compressed."""
    with tempfile.TemporaryFile() as layer:
        with tarfile.open(fileobj=layer, mode="w:gz", compresslevel=6) as archive:
            archive.add(image.tree, "opt/policyeng")
        return layer.tell()


def try_out(file: Path, folder: Path) -> None:
    """Try what was built below a folder.

    Raises:
        AssertionError: it does not work, or the image of `check` is too large.
    """
    image = Image(file, folder)
    base, layer = BASES[final(file, "FROM").partition("@")[2]], transferred_size(image)
    report(f"{file.name}: the installed tree has {installed_size(image) / 1e6:.0f} MB, compressed {layer / 1e6:.0f} MB")
    report(f"with its base, {(base + layer) / 1e6:.0f} MB are transferred")
    if image.lacks:
        report(f"NOT TRIED as another user on a read-only root: {image.lacks}")
    elif not traced(image.calls):
        report("NOT TRIED whether it tries to write elsewhere, where it cannot: there is no strace")
    if file == CHECK:
        assert base + layer < LARGEST
        try_checking(image)
        return
    try_evaluating(image)
    try_serving(image)


def main() -> None:
    """Build each image below a temporary folder, and try what was built; with arguments, only files of these names."""
    for file in (CHECK, SERVER):
        if sys.argv[1:] and file.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            build(file, folder)
            shutil.rmtree(folder / "build")  # the image has nothing of it
            shutil.rmtree(folder / "opt" / "build")
            try_out(file, folder)


if __name__ == "__main__":
    main()
