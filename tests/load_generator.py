"""k6 as the benchmark of the server uses it: `make bench-serving` builds it, and runs this before it measures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.load import K6, Phase, Request
from tests.conftest import ROOT

GENERATOR = ROOT / ".tools/bin/k6"


@pytest.fixture
def responding() -> Iterator[str]:
    """A server that responds as the body states: a status, and `end` behind it."""

    class Responding(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = int(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"a response to the end\n")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Responding)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_k6_counts_responses(responding: str, tmp_path: Path) -> None:
    """By phase: right and wrong responses, refusals, other statuses, and lost ones."""
    requests = [Request(b"200", "the end"), Request(b"200", "the beginning"), Request(b"429", ""), Request(b"500", "")]
    first, second = K6(GENERATOR, tmp_path).run(
        responding, requests, Phase("first", 20, 1, 10), Phase("second", 8, 1, 10, start=1)
    )
    (lost,) = K6(GENERATOR, tmp_path).run("http://127.0.0.1:1/", requests, Phase("first", 4, 1, 10))

    for output, count in ((first, 20), (second, 8)):
        counts = (output.right.count, output.wrong, output.refused.count, output.other)
        assert sum(counts) in (count, count + 1)  # the one that is due at the end is sent or not
        assert max(counts) - min(counts) <= 1
        assert (output.lost, output.unsent, output.whole) == (0, 0, False)
    assert lost.lost >= 4
