"""HTTP as uvicorn speaks it, with a limit on what comes before a body.

uvicorn's fast parser collects a request's line and headers without one, before any application
code sees them.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 << 10
_END = b"\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """Answers 400 and hangs up where line and headers exceed `MAX_HEAD_BYTES`, however they are cut
    into pieces; the application then never sees the request.

    What comes in is handed to the parser in parts that end where a head or a body does, so that
    every byte of a head is counted, and no other. Only a request that comes in one piece with the
    end of a chunked body, whose length no header says, is counted from its next piece on.
    """

    _in_head = True
    _head_bytes = 0
    _body_left: int | None = 0

    def data_received(self, data: bytes) -> None:
        start = 0
        while start < len(data) and not self.transport.is_closing():
            end = self._part_end(data, start)
            if self._in_head:
                self._head_bytes += end - start
                if self._head_bytes > MAX_HEAD_BYTES:
                    self.send_400_response("Request line and headers are too large.")
                    return
            elif self._body_left is not None:
                self._body_left -= end - start
            super().data_received(data if end - start == len(data) else data[start:end])
            start = end

    def _part_end(self, data: bytes, start: int) -> int:
        """Where what the parser is in ends, or the data do."""
        if not self._in_head:
            return len(data) if self._body_left is None else min(len(data), start + self._body_left)
        # The end of a head may be cut in two itself: one that goes on is read line by line.
        mark = b"\n" if self._head_bytes else _END
        found = data.find(mark, start)
        return len(data) if found < 0 else found + len(mark)

    def on_headers_complete(self) -> None:
        self._in_head = False
        named = dict(self.headers)
        length = named.get(b"content-length", b"0")
        chunked = b"transfer-encoding" in named or not length.isdigit()
        self._body_left = None if chunked else int(length)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()
