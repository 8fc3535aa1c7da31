"""HTTP to one service: connections that are kept, answers and problems, and what is tried again."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Timeout

from ._decode import decode, to_json
from ._target import Target
from .errors import BadAnswer, CarrackError, KeyMismatch, ServiceError, Unreachable
from .model import Problem
from .version import VERSION

PREFIX = "/api/v1"
# Connections that are kept open, and directories that are listed at once.
KEPT, LISTINGS = 64, 4
# Between two tries, in seconds: the first pause, and the longest.
PAUSE, PAUSE_MAX = 0.2, 5.0
# Seconds of patience before the first answer.
FIRST = 5.0
# Pieces of a body that is read as it comes.
PIECE = 1 << 18


class Http:
    """Calls of one service.

    `timeout`: seconds until an answer begins, and between two pieces of it. `patience`: seconds for which a call that
    may be repeated is tried again where nobody answers, or the service says *later*; less before the first answer, so
    that a wrong address is told soon.
    """

    def __init__(self, target: Target, token: str | None, timeout: float, patience: float) -> None:
        self.target, self.token, self.timeout, self.patience = target, token, timeout, patience
        self.pool, self.process = _Pool(target, timeout), os.getpid()
        self.listings = threading.BoundedSemaphore(LISTINGS)
        self.is_met = False

    def close(self) -> None:
        """Closes the connections that are kept."""
        self.pool.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accept: str = "application/json",
        is_stream: bool = False,
        timeout: float | None = None,
        may_repeat: bool | None = None,
    ) -> BaseHTTPResponse:
        """Makes a call; the answer is no problem. `may_repeat`: the same call twice does nothing twice; GET, HEAD, PUT
        and DELETE are taken for that.
        """
        if may_repeat is None:
            may_repeat = method in ("GET", "HEAD", "PUT", "DELETE")
        url = PREFIX + path + query_text(query or {})
        more: dict[str, str] = {
            "Accept": accept,
            "Host": self.target.known_as,
            "User-Agent": f"carrack-python/{VERSION}",
            **(headers or {}),
        }
        if self.token is not None:
            more["Authorization"] = f"Bearer {self.token}"
        if body is not None and not isinstance(body, bytes):
            body, more["Content-Type"] = json.dumps(body, default=to_json).encode(), "application/json"
        patience = Patience(self.patience if self.is_met else min(self.patience, FIRST))
        while True:
            try:
                return self._once(method, url, body, more, is_stream, timeout or self.timeout)
            except (Unreachable, ServiceError) as error:
                if not patience.pause(error, may_repeat):
                    raise

    def _once(
        self, method: str, url: str, body: Any, headers: dict[str, str], is_stream: bool, timeout: float
    ) -> BaseHTTPResponse:
        if self.process != os.getpid():  # connections are not shared with a process that has forked
            self.pool, self.process = _Pool(self.target, self.timeout), os.getpid()
        try:
            answer = self.pool.request(
                method, url, body=body, headers=headers, preload_content=not is_stream, timeout=timeout
            )
            self.is_met = True
            if answer.status < 400:
                return answer
            # HEAD has no body to say it with.
            said, status = answer.read() if is_stream else answer.data, answer.status
            raise _problem(said, status, answer.headers.get("Retry-After"), str(self.target))
        except HTTPError as error:
            raise unreachable(self.target, error) from None

    def pieces(self, answer: BaseHTTPResponse) -> Iterator[bytes]:
        """A body as it comes. An answer that was cut raises `Unreachable`."""
        try:
            yield from answer.stream(PIECE)
        except HTTPError as error:
            raise unreachable(self.target, error) from None
        finally:
            answer.close()


class Patience:
    """How long something is tried again: until so many seconds have passed since it failed first."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.wait, self.until = seconds, PAUSE, float("inf")

    def pause(self, error: CarrackError, may_repeat: bool = True) -> bool:
        """Waits before another try. False: there is none."""
        # What never reached the service, and what it refused to begin (429, 503), was not done. 502: the process that
        # serves the files has ended in the midst of it.
        if isinstance(error, ServiceError):
            is_worth_it, least = error.status in (429, 503) or (error.status == 502 and may_repeat), error.retry_after
        else:
            is_worth_it, least = isinstance(error, Unreachable) and (may_repeat or not error.was_sent), 0.0
        wait = max(self.wait * random.uniform(0.5, 1), least)
        if not is_worth_it:
            return False
        self.until = min(self.until, time.monotonic() + self.seconds)
        if time.monotonic() + wait > self.until:
            return False
        time.sleep(wait)
        self.wait = min(self.wait * 2, PAUSE_MAX)
        return True


def unreachable(target: Target, error: HTTPError) -> CarrackError:
    """What a failure of the way to the service is."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyMismatch):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        return cause
    why = str(getattr(error, "__cause__", None) or error)
    hint = "start the service: carrack serve" if target.path else "is `carrack serve` running there, is the port open?"
    told = Unreachable(f"no service answers at {target}: {why}", hints=[hint])
    told.was_sent = not isinstance(error, NewConnectionError)
    return told


def _problem(body: bytes, status: int, retry_after: str | None, target: str) -> CarrackError:
    try:
        document = json.loads(body or b"{}")
        document = {"type": "", "title": f"{target}: HTTP {status}", "detail": "", "code": _word(status)} | document
        error = ServiceError.of(decode(Problem, document | {"status": status}))
    except (ValueError, TypeError):
        return BadAnswer(f"{target}: the answer is HTTP {status}, and not from a service of Carrack")
    error.retry_after = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    return error


def _word(status: int) -> str:
    """The code of an answer without a body."""
    return {401: "unauthenticated", 403: "forbidden", 404: "not-found"}.get(
        status, "internal" if status >= 500 else "files-failed"
    )


def query_text(query: Mapping[str, Any]) -> str:
    """A query; what is None is left out."""
    pairs = [(key, _text(value)) for key, value in query.items() if value is not None]
    return "?" + "&".join(f"{key}={escape(value)}" for key, value in pairs) if pairs else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(to_json(value) if isinstance(value, datetime) else value)


def escape(text: str) -> str:
    """A text as one segment of a path, or one value of a query."""
    return quote(text, safe="", errors="surrogateescape")


class _Connection(HTTPConnection):
    target: Target

    def connect(self) -> None:
        try:
            self.sock = self.target.connect(self.timeout if isinstance(self.timeout, int | float) else None)
        except (OSError, KeyMismatch) as error:
            raise NewConnectionError(self, str(error)) from error


class _Pool(HTTPConnectionPool):
    def __init__(self, target: Target, timeout: float) -> None:
        self.ConnectionCls = type("Connection", (_Connection,), {"target": target})
        host = f"[{target.host}]" if ":" in target.host else target.host
        super().__init__(host, target.port, timeout=Timeout(timeout), maxsize=KEPT, block=False, retries=False)

    def request(self, *arguments: Any, **more: Any) -> BaseHTTPResponse:
        return super().request(*arguments, redirect=False, **more)
