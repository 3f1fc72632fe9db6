"""HTTP as uvicorn speaks it, with a limit on what comes before a body.

uvicorn's fast parser collects a request's line and headers without one, before any application
code sees them.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 << 10


class LimitedProtocol(HttpToolsProtocol):
    """Answers 400 and hangs up where line and headers exceed `MAX_HEAD_BYTES`."""

    _head_bytes = 0
    _in_head = True
    _piece_bytes = 0

    def data_received(self, data: bytes) -> None:
        self._piece_bytes = len(data)
        super().data_received(data)
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request line and headers are too large.")

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        # The piece that ends a message may hold all of its body: it is no part of the next head.
        self._in_head, self._head_bytes = True, -self._piece_bytes
        super().on_message_complete()
