"""What the parts of an estate are: files below directories, files, and documents at URLs."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest

from policyeng.audit.collection import parts_of
from policyeng.audit.collection.parts import PartSource, fetched, hide_secrets, is_unchanged, read, sources_of
from policyeng.bundle import load_bundle
from policyeng.configuration import resolve
from policyeng.configuration.settings import EstateSettings
from policyeng.errors import InputError
from policyeng.sources import FileWalk, excluded
from tests.audits import Audited
from tests.bundles import workspace, write

SNAPSHOT = orjson.dumps({"snapshotVersion": 1, "resources": [workspace("w", x=0, owner="o")]})


class _Responses(BaseHTTPRequestHandler):
    """Responds by path; `/private` wants the user `me` with `p:w`, and `/away` leads to another host."""

    def do_GET(self) -> None:  # as it is called
        """Respond."""
        path = self.path.partition("?")[0]
        expected = "Basic " + base64.b64encode(b"me:p:w").decode()
        if path == "/away":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.headers['Host'].rpartition(':')[2]}/moved")
            self.end_headers()
        elif path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "ftp://elsewhere/x")
            self.end_headers()
        elif path == "/moved":
            self._give(str(self.headers.get("Authorization")).encode())
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"{")
        elif path == "/private" and self.headers.get("Authorization") != expected:
            self.send_error(401)
        elif path in ("/private", "/w.json"):
            self._give(SNAPSHOT)
        else:
            self.send_error(404)

    def _give(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as it is called
        """Log nothing."""


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Host and port of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Responses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def parts(*inputs: str | Path) -> list[tuple[str, int | None, list[str]]]:
    """The parts of an estate: names, resources (None where nothing was read), and their problems."""
    estate = EstateSettings(name="e", inputs=tuple(map(str, inputs)))
    return [
        (part.name, None if part.snapshot is None else len(part.snapshot.resources), [p.message for p in part.problems])
        for part in parts_of(estate, load_bundle().wanted)
    ]


def test_each_file_of_a_directory_is_a_part_by_its_path(tmp_path: Path) -> None:
    """Also in folders; other documents are on the ledger."""
    text = SNAPSHOT.decode()
    write(tmp_path, {"a/w.json": text, "b.yaml": text, "notes.json": '{"a": 1}', "README.md": "x", ".git/config": "x"})
    found = parts(tmp_path)
    assert [part[:2] for part in found] == [("a/w.json", 1), ("b.yaml", 1), ("notes.json", None)]
    *_, last = parts_of(EstateSettings(name="e", inputs=(str(tmp_path),)), load_bundle().wanted)
    assert [(entry.reason.partition(":")[0], entry.relevant) for entry in last.ledger] == [
        ("unsupported format", False)
    ]


def test_a_file_that_is_named_is_a_part(tmp_path: Path) -> None:
    """One with nothing to evaluate is then an error."""
    write(tmp_path, {"w.json": SNAPSHOT.decode(), "notes.json": '{"a": 1}'})
    assert parts(tmp_path / "w.json") == [("w.json", 1, [])]
    (_, nothing, message) = parts(tmp_path / "notes.json")[0]
    assert nothing is None
    assert message[0].startswith("unsupported format")


def test_two_parts_of_one_name_are_an_error(tmp_path: Path) -> None:
    """The first is evaluated, and the remedy named."""
    write(tmp_path, {"a/w.json": SNAPSHOT.decode(), "b/w.json": SNAPSHOT.decode()})
    found = parts(tmp_path / "a", tmp_path / "b")
    assert [part[:2] for part in found] == [("w.json", 1), ("w.json (2)", None)]
    assert "name the directory above both" in found[1][2][0]


def test_a_missing_input_is_reported(tmp_path: Path) -> None:
    """And hides no other."""
    write(tmp_path, {"w.json": SNAPSHOT.decode()})
    found = parts(tmp_path / "gone", tmp_path / "w.json")
    assert [part[1] for part in found] == [None, 1]
    assert "cannot be read (no such file or directory)" in found[0][2][0]


def test_a_url_is_a_part_without_its_secrets(host: str) -> None:
    """User, password, query and fragment are neither in the name nor in the message."""
    url = f"http://me:p%3Aw@{host}/private?sig=secret#x"
    assert parts(url) == [(f"http://{host}/private", 1, [])]
    wrong = f"http://me:wrong@{host}/private?sig=secret"
    (name, nothing, message) = parts(wrong)[0]
    assert (name, nothing) == (f"http://{host}/private", None)
    assert message == ["the server answers 401; see that it can be reached, and that it may be read without signing in"]
    assert hide_secrets(url) == f"http://{host}/private"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nothing", "the server answers 404"),
        ("/elsewhere", "leads to `ftp://elsewhere/x`"),
        ("/short", "cut off 99 bytes before its end"),
    ],
)
def test_what_cannot_be_fetched_is_reported(host: str, path: str, message: str) -> None:
    """With the URL as the place."""
    with pytest.raises(InputError, match=message) as refused:
        fetched(f"http://{host}{path}")
    assert refused.value.place[0] == f"http://{host}{path}"


@contextmanager
def dripping(begin: bytes) -> Iterator[str]:
    """A server that sends something at once, and then a byte every 50 ms for as long as somebody listens."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(begin)
                while not ended.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/slow.json"
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="body without a length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Header: ", id="headers"),
    ],
)
def test_a_document_that_drips_is_given_up(begin: bytes) -> None:
    """A timeout of silence alone would never end it."""
    with dripping(begin) as url, pytest.raises(InputError) as late:
        fetched(url, deadline=0.3)

    assert late.value.message == "is not fetched within 0.3 seconds"
    assert "`deadline`" in late.value.remedy


def test_an_estate_can_set_how_long_a_document_may_take(tmp_path: Path) -> None:
    """In its table, and 5 minutes without that."""
    with dripping(b"HTTP/1.1 200 OK\r\n\r\n") as url:
        (tmp_path / "policyeng.toml").write_text(
            f'[[estates]]\nname = "e"\ninputs = ["{url}"]\ndeadline = "PT0.3S"\n'
            '[[estates]]\nname = "f"\ninputs = ["x"]\n'
        )
        e, f = resolve({}, {}, tmp_path).estates
        [part] = parts_of(e, load_bundle().wanted)

    assert [problem.message.partition(";")[0] for problem in part.problems] == ["is not fetched within 0.3 seconds"]
    assert f.deadline == timedelta(minutes=5)


def test_a_missing_server_is_reported() -> None:
    """With the message of the system."""
    with pytest.raises(InputError, match="connection refused"):
        fetched("http://127.0.0.1:1/x.json")


def test_what_is_too_large_is_refused(host: str) -> None:
    """Before all of it was read."""
    with pytest.raises(InputError, match="larger than the limit of 10 bytes"):
        fetched(f"http://{host}/w.json", max_bytes=10)


def test_a_password_is_not_sent_where_a_url_leads(host: str) -> None:
    """Another host must not learn it."""
    assert fetched(f"http://me:secret@{host}/away") == b"None"


def test_a_run_states_its_inputs_without_secrets(host: str, tmp_path: Path) -> None:
    """Neither the run nor anything else in the store has them."""
    audited = Audited(tmp_path)
    audited.estate = EstateSettings(name="e", inputs=(f"http://me:p%3Aw@{host}/private?sig=secret",))
    run = audited.audit()
    assert (run.exit_code, run.inputs) == (0, (f"http://{host}/private",))
    audited.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("audits.db*"))
    assert b"secret" not in stored


def test_the_files_of_a_folder_can_be_one_part(tmp_path: Path) -> None:
    """A workspace and its computes in files of their own are evaluated as `check` of their folder evaluates them."""
    one, two = workspace("one"), workspace("two")
    compute = {"id": f"{one['id']}/computes/c", "type": f"{one['type']}/computes", "properties": {}}
    files = {"a/workspace.json": one, "a/deep/computes.json": compute, "two.json": two, "a/.hidden/x.json": two}
    write(tmp_path / "in", {name: orjson.dumps(content).decode() for name, content in files.items()})
    estate = EstateSettings(name="e", inputs=(str(tmp_path / "in"),), together=True)
    every = list(parts_of(estate, load_bundle().wanted))
    found = {part.name: part.snapshot for part in every if part.snapshot is not None}

    assert {name: len(content.resources) for name, content in found.items()} == {"a": 2, "in": 1}
    assert [entry.relevant for part in every for entry in part.ledger] == [True]
    assert {origin.file for content in found.values() if content for origin in content.origins.values()} == {
        *("a/workspace.json", "a/deep/computes.json", "in/two.json")
    }


def test_a_folder_is_taken_over_until_a_file_comes_goes_or_changes(tmp_path: Path) -> None:
    """Also where what is new lies deeper; what lies in another folder is no concern of it."""
    write(tmp_path / "in", {"a/w.json": SNAPSHOT.decode(), "b/w.json": SNAPSHOT.decode()})
    estate = EstateSettings(name="e", inputs=(str(tmp_path / "in"),), together=True)
    wanted = load_bundle().wanted
    sources = [source for source in sources_of(estate) if isinstance(source, PartSource)]
    requests = [read(source, wanted).queries for source in sources]

    assert [is_unchanged(source, one) for source, one in zip(sources, requests, strict=True)] == [True, True]
    write(tmp_path / "in", {"a/deep/more.json": "{}"})
    assert [is_unchanged(source, one) for source, one in zip(sources, requests, strict=True)] == [False, True]
    (tmp_path / "in/b/w.json").write_bytes(SNAPSHOT + b" ")
    assert not is_unchanged(sources[1], requests[1])


def test_what_is_excluded_is_no_part(tmp_path: Path) -> None:
    """Nor of a part that is a folder, which is read again where other patterns count."""
    files = {"a/w.json": SNAPSHOT.decode(), "a/x.json": SNAPSHOT.decode(), "a/.gitignore": "x.json"}
    write(tmp_path / "in", {**files, "b/w.json": SNAPSHOT.decode()})
    estate = EstateSettings(name="e", inputs=(str(tmp_path / "in"),))
    walk = FileWalk(excluded(["b/"], tmp_path))
    wanted = load_bundle().wanted

    assert [part.name for part in parts_of(estate, wanted, walk) if part.snapshot] == ["a/w.json"]
    together = estate.model_copy(update={"together": True})
    [source] = [one for one in sources_of(together, walk) if isinstance(one, PartSource)]
    requests = read(source, wanted).queries
    assert is_unchanged(source, requests)
    assert not is_unchanged(replace(source, walk=FileWalk(excluded(["w.json"], tmp_path))), requests)
