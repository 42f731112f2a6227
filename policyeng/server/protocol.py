"""HTTP on a connection: who the client is, and bounds on headers, in bytes and time, and on the taking of answers."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from policyeng.server.tls import subject_of

#: Bytes and seconds that a request line and its headers may take; uvicorn itself has no bound with this parser.
HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
#: In so many seconds a client takes so many bytes of an answer that waits for it, or what is left.
TAKE_SECONDS = 30.0
TAKE_BYTES = 64 << 10


class BoundedProtocol(HttpToolsProtocol):
    """That of uvicorn, which closes a connection whose headers do not end, or on which nobody takes the answer."""

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
        """Have the client take what waits, in bounded time."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        """It did."""
        self._stop_taking()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection on which nobody asks."""
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
