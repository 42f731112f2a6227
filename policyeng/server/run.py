"""Listen, serve until a signal comes, and complete the open requests."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from policyeng.errors import InputError, PolicyengError, UsageError
from policyeng.server.app import application
from policyeng.server.authentication import subject_of
from policyeng.server.file_watcher import Fingerprint, ReloadFault, Watched
from policyeng.server.service import Service

#: Seconds between two looks at the files, and before another worker takes the place of one that ended.
_LOOK, _PAUSE = 2.0, 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_log = logging.getLogger("policyeng.server")


class Commands:
    """The commands that a worker receives from the process that started it.

    A worker reads what has changed, and applies it when all workers have read the same.
    """

    def __init__(self, connection: Connection, service: Service) -> None:
        self._connection = connection
        self._watched = {each.what: each for each in service.watched()}
        self._read: dict[str, object] = {}

    def follow(self, leave: Callable[[], None]) -> None:
        """Report that the worker is ready, and follow commands from now on.

        Args:
            leave: called when it is to end.
        """
        self._leave = leave
        asyncio.get_running_loop().add_reader(self._connection.fileno(), self._receive)
        self._connection.send(("up", ""))

    def _receive(self) -> None:
        try:
            while self._connection.poll():
                name, *arguments = self._connection.recv()
                getattr(self, f"_{name}")(*arguments)
        except (EOFError, OSError):  # the process that started it was killed
            os._exit(1)

    def _look(self, what: str, seen: Fingerprint) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._read_again, self._watched[what], seen)

    def _read_again(self, watched: Watched[object], seen: Fingerprint) -> None:
        """Read on a thread, because it may take seconds, and report the result."""
        fault = ""
        try:
            self._read[watched.what] = watched.read(seen)
        except PolicyengError as error:
            fault = str(error)
        except Exception as error:
            _log.exception("%s: cannot be read", watched.what)
            fault = f"internal error ({type(error).__name__})"
        with suppress(OSError):  # the process that started it ended, which `_receive` notices
            self._connection.send(("read", fault))

    def _take(self, what: str) -> None:
        self._watched[what].take(self._read.pop(what))
        self._connection.send(("taken", ""))

    def _keep(self, what: str, fault: ReloadFault, failures: int) -> None:
        self._read.pop(what, None)
        self._watched[what].keep_as(fault, failures)


@dataclass(slots=True)
class _Worker:
    """A worker.

    Attributes:
        number: from 0; the one that takes its place has the same.
        is_up: whether it has reported that it is ready.
    """

    number: int
    process: int
    connection: Connection
    is_up: bool = False


class Workers:
    """The workers of a server, and the process that starts and leads them.

    It has no threads, which a fork would not take along, and handles no requests itself.

    Args:
        service: what is forked.
        bound: the sockets that workers accept connections from. They stay open here, so that what waits on that of a
            worker that ended is answered by the one that takes its place.
        work: serves in a worker, given its number and its commands.
    """

    def __init__(self, service: Service, bound: Sequence[socket.socket], work: Callable[[int, Commands], None]) -> None:
        self._service, self._bound, self._work = service, bound, work
        self._alive: list[_Worker] = []
        self._due: dict[int, float] = dict.fromkeys(range(service.options.workers), 0.0)
        self._signals: list[int] = []
        self._leaving = False
        self._look_at = time.monotonic() + _LOOK

    def run(self, listening: Callable[[], None]) -> None:
        """Lead the workers until SIGINT or SIGTERM.

        Args:
            listening: called once all of them answer.
        """
        wakes, woken = os.pipe()
        for end in (wakes, woken):
            os.set_blocking(end, False)
        for number in _SIGNALS:
            signal.signal(number, self._note)
        signal.set_wakeup_fd(woken)
        self._wakes = wakes
        self._service.become(self._service.options.workers)
        gc.freeze()  # or a collection in a worker would copy all that it has with the others
        has_started = False
        while self._alive or not self._leaving:
            self._start()
            self._receive()
            self._handle_signals()
            are_up = not self._due and all(worker.is_up for worker in self._alive)
            if are_up and not has_started:
                listening()
                has_started = True
            if are_up and not self._leaving and time.monotonic() >= self._look_at:
                for watched in self._service.watched():
                    self._look(watched)
                self._look_at = time.monotonic() + _LOOK

    def _note(self, number: int, _: FrameType | None) -> None:
        """Note a signal; a second one to end ends everything at once, whatever else is done."""
        if self._leaving and number != signal.SIGHUP:
            for worker in self._alive:
                with suppress(ProcessLookupError):
                    os.kill(worker.process, signal.SIGKILL)
            os._exit(128 + number)
        self._signals.append(number)
        self._leaving = self._leaving or number != signal.SIGHUP

    def _handle_signals(self) -> None:
        """Handle signals."""
        signals, self._signals = self._signals, []
        if any(number != signal.SIGHUP for number in signals):
            for bound in self._bound:
                bound.close()
            self._send("leave")
        if signal.SIGHUP in signals:
            for watched in self._service.watched():
                watched.request_reload()
            self._look_at = 0.0

    def _start(self) -> None:
        """Start the workers that are due."""
        for number, at in [*self._due.items()]:
            if not self._leaving and at <= time.monotonic():
                del self._due[number]
                self._fork(number)

    def _fork(self, number: int) -> None:
        ours, theirs = Pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # a worker must not do what we do for a signal
        process = os.fork()
        if process:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
            self._alive.append(_Worker(number, process, ours))
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_IGN if each == signal.SIGHUP else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for connection in (ours, *(worker.connection for worker in self._alive)):
                connection.close()  # or a worker would not notice that the process that started it ended
            self._work(number, Commands(theirs, self._service))
            code = 0
        except Exception:
            _log.exception("worker %d cannot serve", number)
        finally:
            os._exit(code)

    def _receive(self) -> dict[int, str]:
        """Wait a moment for replies or a signal, and return the faults of the workers that carried out a command."""
        pause = _LOOK if not self._due else _PAUSE / 10
        ready = wait([self._wakes, *(worker.connection for worker in self._alive)], pause)
        if self._wakes in ready:
            with suppress(BlockingIOError):
                os.read(self._wakes, 512)
        replies = {}
        for worker in [*self._alive]:
            if worker.connection not in ready:
                continue
            try:
                what, fault = worker.connection.recv()
            except (EOFError, OSError):
                self._remove(worker)
                continue
            worker.is_up = True
            if what != "up":
                replies[worker.process] = fault
        return replies

    def _remove(self, worker: _Worker) -> None:
        """Remove a worker that ended; another takes its place unless all are to end."""
        worker.connection.close()
        self._alive.remove(worker)
        _, status, used = os.wait4(worker.process, 0)
        if self._service.metrics is not None:
            self._service.metrics.add_ended(used.ru_utime + used.ru_stime)
        if not self._leaving:
            code = os.waitstatus_to_exitcode(status)
            how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
            _log.warning("worker %d %s; another takes its place", worker.number, how)
            self._due[worker.number] = time.monotonic() + (0 if worker.is_up else _PAUSE)

    def _look(self, watched: Watched[object]) -> None:
        """Read what has changed; it is active in all workers, or the last good reading stays active in all of them."""
        try:
            if not watched.is_due():
                return
        except Exception:  # nothing ends the watch, or the active files would become old without a message
            _log.exception("%s: cannot be watched", watched.what)
            return
        try:
            current = watched.read()
            for fault in self._send_all("look", watched.what, watched.seen).values():
                if fault:
                    raise InputError(fault)
        except PolicyengError as error:
            watched.keep(error)
            self._send("keep", watched.what, watched.fault, watched.failures)
            return
        self._send_all("take", watched.what)
        watched.take(current)
        if watched is self._service.setup and self._service.state is not None:
            self._service.state.request_reload()  # other policies may apply to other kinds of documents

    def _send_all(self, *command: object) -> dict[int, str]:
        """Send a command to all workers, and return the faults of those that carried it out; others have ended."""
        self._send(*command)
        replies: dict[int, str] = {}
        while any(worker.process not in replies for worker in self._alive):
            replies |= self._receive()
        return replies

    def _send(self, *command: object) -> None:
        for worker in self._alive:
            with suppress(OSError):  # it has ended, which is noticed soon
                worker.connection.send(command)


#: Bytes and seconds that a request line and its headers may take; uvicorn itself has no bound with this parser.
HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
#: In so many seconds a client takes so many bytes of a response that waits for it, or what is left.
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


#: Seconds beyond the deadline of requests that clients have to read their responses when the server ends.
_TAKING = 5
#: After how many seconds an idle connection is closed: late, because a client may send a request at that very moment.
_IDLE = 75
#: Seconds in which what arrived on connections before the end is read.
_READING = 0.1


def serve(service: Service, listening: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP has everything read again.

    The first signal makes the server unready, and after `drain_seconds` it takes nothing more and ends when all
    requests are answered. The second ends it at once.

    Args:
        service: handles the requests.
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
        """Accept no further connections, read the requests on open ones, and then end.

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
        """Return whether to accept nothing more; called ten times a second."""
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
