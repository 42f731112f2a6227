"""Listen, serve until a signal comes, and let what is asked end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from math import ceil, inf
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from policyeng.errors import UsageError
from policyeng.server.app import application
from policyeng.server.service import Service
from policyeng.server.tls import subject_of
from policyeng.server.workers import Commands, Workers

#: Bytes and seconds that a request line and its headers may take; uvicorn itself has no bound with this parser.
HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
#: In so many seconds a client takes so many bytes of an answer that waits for it, or what is left.
TAKE_SECONDS = 30.0
TAKE_BYTES = 64 << 10


class BoundedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn with timeouts for incomplete headers and for clients that do not read the response."""

    _taking: asyncio.TimerHandle | None = None
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above
        """Expect headers; requests find the subject of the client's certificate in their state."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "subject": subject_of(transport.get_extra_info("ssl_object"))}
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing."""
        self._stop()
        self._stop_taking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Pause writing until the client reads, for a limited time."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        """Continue writing: the client has read enough."""
        self._stop_taking()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that is idle."""
        super().timeout_keep_alive_handler()
        self._await_taking()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers are too long."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response(f"The headers are longer than {HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """Expect headers."""
        super().on_message_begin()
        self._stop()
        self._expect()

    def on_headers_complete(self) -> None:
        """Expect nothing."""
        self._stop()
        self._in_head = False
        super().on_headers_complete()

    def _expect(self) -> None:
        self._in_head, self._head = True, 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
            self._await_taking()
        else:  # the request before is not answered yet
            self._expect()

    def _await_taking(self) -> None:
        """Break the connection off unless the client takes what waits for it; a closed one waits for that, too."""
        self._stop_taking()
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(TAKE_SECONDS, self._have_taken, left)

    def _have_taken(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left and left > before - TAKE_BYTES:
            self.transport.abort()
        elif left:
            self._await_taking()

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


#: Seconds beyond the deadline of requests that clients have to take their answers when the server ends.
_TAKING = 5
#: After how many seconds an idle connection is closed: late, because a client may send a request at that very moment.
_IDLE = 75
#: Seconds in which what arrived on connections before the end is read.
_READING = 0.1


def serve(service: Service, listening: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP has everything read again.

    The first signal makes the server unready, and after `drain_seconds` it takes nothing more and ends when what was
    asked is answered. The second ends it at once.

    Args:
        service: what answers.
        listening: called with the address as a URL, once requests are answered.

    Raises:
        UsageError: it cannot listen there.
    """
    options = service.options
    with ExitStack() as stack:
        bound = _bind(options.host, options.port, options.workers)
        for each in bound:
            stack.enter_context(each)
        host, port = bound[0].getsockname()[:2]
        scheme = "http" if service.certificates is None else "https"
        url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        app = application(service)  # before there are workers, which share what is in it
        if options.workers > 1:
            Workers(service, bound, partial(_work, app, service, bound)).run(lambda: listening(url))
            return

        def started(_: DrainingServer) -> None:
            service.become(0)
            service.watch()
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, service.reload)
            listening(url)

        _run(app, service, bound[0], started)
    if service.queue.overdue:  # abandoned work, which the interpreter would wait for
        os._exit(0)


def _work(app: FastAPI, service: Service, bound: Sequence[socket.socket], worker: int, commands: Commands) -> None:
    """Serve as one of several workers, until it is to end."""
    own = bound[worker % len(bound)]
    for other in bound:
        if other is not own:  # or connections would wait there in vain once its worker has ended
            other.close()

    def started(server: DrainingServer) -> None:
        commands.follow(server.leave)

    service.become(worker)
    _run(app, service, own, started)


def _run(app: FastAPI, service: Service, bound: socket.socket, started: Callable[[DrainingServer], None]) -> None:
    certificates = service.certificates
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        log_config=None,  # its messages go where ours do
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=ceil(service.options.deadline) + _TAKING,
        ssl_context_factory=None if certificates is None else lambda *_: certificates.context(),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)  # before uvicorn has its own, and after the end
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again
    with suppress(SystemExit):
        DrainingServer(config, service, started).run(sockets=[bound])


class DrainingServer(uvicorn.Server):
    """A server that reports when it has started, and reports not ready before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[DrainingServer], None]) -> None:
        super().__init__(config)
        self._service = service
        self._started = started
        self._ends = inf

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report it."""
        await super().startup(sockets)
        self._started(self)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, read the requests on open ones, and then end.

        Closing the socket would reset connections that wait in its backlog, so a duplicate stays open until they are
        accepted.
        """
        spare = [bound.dup() for bound in sockets or ()]
        for server in self.servers:
            server.close()
        taken = [
            asyncio.ensure_future(self._take(connection)) for bound in spare for connection in _accept_waiting(bound)
        ]
        for bound in spare:
            bound.close()
        await asyncio.sleep(_READING)
        await super().shutdown(sockets)
        await asyncio.gather(*taken, return_exceptions=True)

    async def _take(self, connection: socket.socket) -> None:
        """Serve a connection as those that the loop accepts."""
        protocol = BoundedProtocol(self.config, self.server_state, self.lifespan.state)
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self.config.ssl)

    def handle_exit(self, sig: int, _: FrameType | None) -> None:
        """Begin to end; uvicorn would raise the signal again after it, and end as if it had gone wrong."""
        if sig == signal.SIGINT and self._service.options.workers > 1:
            return  # a terminal sends it to the process that started the workers, too, which ends them
        if self._service.leaving:
            os._exit(128 + sig)
        self.leave()

    def leave(self) -> None:
        """Be unready, and end after `drain_seconds`."""
        if not self._service.leaving:
            self._service.leaving = True
            self._ends = time.monotonic() + self._service.options.drain_seconds

    async def on_tick(self, counter: int) -> bool:
        """Whether to take nothing more; asked ten times a second."""
        if self._service.metrics is not None:
            self._service.metrics.publish()
        return await super().on_tick(counter) or time.monotonic() >= self._ends


def _accept_waiting(bound: socket.socket) -> Iterator[socket.socket]:
    """Accept and yield the waiting connections."""
    bound.setblocking(False)
    with suppress(OSError):  # in the end there are no more
        while True:
            yield bound.accept()[0]


def _end(*_: object) -> NoReturn:
    raise SystemExit


def _bind(host: str, port: int, workers: int) -> list[socket.socket]:
    """Bind the sockets to accept connections from: one for each worker where Linux spreads connections over them.

    Of one that all workers have, the one that wakes up first takes most of the connections.

    Raises:
        UsageError: it cannot listen there.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        alone = socket.create_server((host, port), family=family, backlog=2048)
        if workers == 1 or sys.platform != "linux":
            return [alone]
        address = alone.getsockname()
        alone.close()  # another server on this port would have been seen, which sockets that share it do not
        return [socket.create_server(address, family=family, backlog=2048, reuse_port=True) for _ in range(workers)]
    except OSError as error:
        number = error.errno or 0  # negative where a name means nothing
        reason = (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()
        message = f"cannot listen on `{host}` port {port} ({reason})"
        raise UsageError(message, remedy="give another --host or --port; --port 0 takes any that is free") from None
