"""A server of HTTP for as long as a test needs it."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar
from unittest import mock

Server = TypeVar("Server", bound=ThreadingHTTPServer)


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    """It answers, in a thread of its own and without a log, until the end."""
    with server, mock.patch.object(BaseHTTPRequestHandler, "log_message"):
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
