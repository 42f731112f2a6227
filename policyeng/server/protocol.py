"""HTTP on a connection: who the client is, and a bound on what comes before a body, its bytes and its time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from policyeng.server.tls import subject_of

#: Bytes and seconds that a request line and its headers may take; uvicorn itself has no bound with this parser.
HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0


class BoundedProtocol(HttpToolsProtocol):
    """That of uvicorn, which closes a connection whose headers do not end."""

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
        super().connection_lost(exc)

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
        else:  # the request before is not answered yet
            self._expect()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
