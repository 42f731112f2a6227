"""The workers of a server: processes that are forked when everything is read, led by the one that started them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType

from policyeng.errors import InputError, PolicyengError
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
        """Report that the worker answers, and follow commands from now on.

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
        is_up: whether it has reported that it answers.
    """

    number: int
    process: int
    connection: Connection
    is_up: bool = False


class Workers:
    """The workers of a server, and the process that starts and leads them.

    It has no threads, which a fork would not take along, and answers nothing itself.

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
        """Do what signals ask for."""
        signals, self._signals = self._signals, []
        if any(number != signal.SIGHUP for number in signals):
            for bound in self._bound:
                bound.close()
            self._send("leave")
        if signal.SIGHUP in signals:
            for watched in self._service.watched():
                watched.ask()
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
        """Read what has changed; it is in force in all workers, or the last good reading stays in all of them."""
        try:
            if not watched.is_due():
                return
        except Exception:  # nothing ends the watch, or what is in force would become old without a message
            _log.exception("%s: cannot be watched", watched.what)
            return
        try:
            current = watched.read()
            for fault in self._ask_all("look", watched.what, watched.seen).values():
                if fault:
                    raise InputError(fault)
        except PolicyengError as error:
            watched.keep(error)
            self._send("keep", watched.what, watched.fault, watched.failures)
            return
        self._ask_all("take", watched.what)
        watched.take(current)
        if watched is self._service.holding and self._service.state is not None:
            self._service.state.ask()  # other policies may apply to other kinds of documents

    def _ask_all(self, *command: object) -> dict[int, str]:
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
