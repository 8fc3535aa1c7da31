"""A client of one service of managed transfers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar, Unpack

from ._decode import decode
from ._http import Http, Patience, escape
from ._target import Target, find
from .errors import BadAnswer, TaskFailed, Unreachable, WaitTimeout
from .files import Files
from .model import (
    Endpoint,
    EndpointTest,
    EndpointUpdate,
    Event,
    FaultStatistics,
    Moment,
    NewEndpoint,
    NewTask,
    Progress,
    ReceiptSigner,
    Task,
    TaskItem,
    TaskLeftovers,
    TaskOptionTable,
    TaskState,
    TaskUpdate,
    Timer,
    TimerSchedule,
    TimerUpdate,
    Whoami,
)

Document = TypeVar("Document")
ENDED = ("SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED")
# Rows of one page.
PAGE = 500


class Client:
    """A client of one service. Threads may share it.

    `service`: `https://HOST[:PORT]#sha256:FINGERPRINT`, `http://127.0.0.1[:PORT]` or the path of its socket; left out,
    the one that the command line would take. `token`: left out, that of `carrack login`; a socket needs none.
    `timeout`: seconds until an answer begins. `patience`: seconds for which calls that may be repeated are tried again
    while the service is away.
    """

    def __init__(
        self, service: str | None = None, *, token: str | None = None, timeout: float = 60.0, patience: float = 60.0
    ) -> None:
        target, kept = find(service)
        self._http = Http(target, token or kept, timeout, patience)

    @property
    def target(self) -> Target:
        """Where the service is."""
        return self._http.target

    @property
    def token(self) -> str | None:
        """The token that is shown."""
        return self._http.token

    def close(self) -> None:
        """Closes the connections that are kept. They come anew with the next call."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({str(self.target)!r})"

    # Tasks

    def submit(
        self,
        source: str | list[str] | None = None,
        destination: str | None = None,
        *,
        submission_id: str | None = None,
        **task: Unpack[NewTask],
    ) -> Task:
        """Submits a task: copies one or more sources to a destination, `@ENDPOINT:/PATH` each. Further arguments are
        those of a task: `label`, `options={"verify": "disk"}`, `kind="move"`, `deadline`, `pairs` …

        However often it is tried, and by whomever, one `submission_id` is one task. One is made if none is given; where
        nobody answers, the exception has it.
        """
        sources = [source] if isinstance(source, str) else source or []
        more = [{"source": one} | ({"destination": destination} if destination else {}) for one in sources]
        whole = {**task, "pairs": [*task.get("pairs", []), *more]}
        submission_id = submission_id or str(uuid.uuid4())
        try:
            return self._ask(
                Task, "POST", "/tasks", body=whole, headers={"Idempotency-Key": submission_id}, may_repeat=True
            )
        except Unreachable as error:
            error.submission_id = submission_id
            raise

    def task(self, id: str) -> Task:
        """A task as it stands."""
        return self._ask(Task, "GET", f"/tasks/{escape(id)}")

    def tasks(
        self,
        *,
        state: TaskState | list[TaskState] | None = None,
        label: str | None = None,
        endpoint: str | None = None,
        owner: str | None = None,
        timer: str | None = None,
        since: Moment | None = None,
        before: Moment | None = None,
        cause: str | None = None,
        q: str | None = None,
        source: str | None = None,
        destination: str | None = None,
    ) -> Iterator[Task]:
        """Tasks, the latest first. `owner="*"`: those of all users, for admins."""
        query = {"label": label, "endpoint": endpoint, "owner": owner, "timer": timer, "cause": cause, "q": q}
        query |= {"source": source, "destination": destination}
        states = ",".join([state] if isinstance(state, str) else state or []).lower()
        return self._rows(Task, "/tasks", {**query, "state": states or None, "since": since, "before": before})

    def items(self, id: str, *, state: str | None = None, filter: str | None = None) -> Iterator[TaskItem]:
        """Items of a task with their states and digests, failed ones first."""
        return self._rows(TaskItem, f"/tasks/{escape(id)}/items", {"state": state, "filter": filter})

    def receipt(self, id: str, *, pair: int = 0) -> bytes:
        """The signed receipt of a pair of a task that was submitted with `receipt`: what `carrack verify` reads."""
        return self._http.call("GET", f"/tasks/{escape(id)}/receipt", query={"pair": pair}).data

    def cancel(self, id: str) -> Task:
        """Ends a task. What is done stays."""
        return self._ask(Task, "POST", f"/tasks/{escape(id)}/cancel", may_repeat=True)

    def pause(self, id: str) -> Task:
        """Has a task wait until somebody resumes it."""
        return self._ask(Task, "POST", f"/tasks/{escape(id)}/pause", may_repeat=True)

    def resume(self, id: str) -> Task:
        """Has a paused task go on; one that waits for another attempt goes on at once."""
        return self._ask(Task, "POST", f"/tasks/{escape(id)}/resume", may_repeat=True)

    def retry(self, id: str, *, recheck: bool = False) -> Task:
        """Tries again what failed of a task that has ended. `recheck`: compares the digests of what is there."""
        return self._ask(Task, "POST", f"/tasks/{escape(id)}/retry", body={"recheck": recheck})

    def clone(self, id: str, *, run: bool = False) -> Task:
        """Submits a task once more, as a new one. `run`: does what a preview has planned."""
        return self._ask(Task, "POST", f"/tasks/{escape(id)}/clone", body={"run": run})

    def update(self, id: str, **changes: Unpack[TaskUpdate]) -> Task:
        """Changes label, deadline or priority of a task that has not ended."""
        return self._ask(Task, "PATCH", f"/tasks/{escape(id)}", body=changes, may_repeat=True)

    def leftovers(self, id: str) -> TaskLeftovers:
        """Names the unfinished files that a task has left at its destinations."""
        return self._ask(TaskLeftovers, "GET", f"/tasks/{escape(id)}/leftovers")

    def remove_leftovers(self, id: str) -> TaskLeftovers:
        """Removes the unfinished files that a task has left. A retry then begins those files anew."""
        return self._ask(TaskLeftovers, "DELETE", f"/tasks/{escape(id)}/leftovers")

    def wait(
        self,
        id: str,
        *,
        timeout: float | None = None,
        progress: Callable[[Progress], None] | None = None,
        check: bool = True,
    ) -> Task:
        """Waits until a task has ended, and gives it. It follows the task's events, and connects again where the
        service restarts. `progress` is called with each progress that is told.

        Raises `TaskFailed` where it ended in another state than SUCCEEDED (`check=False`: returns it), `WaitTimeout`
        after `timeout` seconds, and `Unreachable` where the service stays away for longer than `patience`.
        """
        until = None if timeout is None else time.monotonic() + timeout
        patience, since = Patience(self._http.patience), None
        while True:
            try:
                for told in self._stream(id, since, until):
                    if told is None or told.kind == "ended":  # what came before the stream is in the task itself
                        task = self.task(id)
                        if task.state in ENDED:
                            if check and task.state != "SUCCEEDED":
                                raise TaskFailed(task)
                            return task
                    patience = Patience(self._http.patience)
                    if told is None:
                        continue
                    since = told.id
                    if progress and told.kind == "progress" and "progress" in told.detail:
                        progress(decode(Progress, told.detail["progress"]))
                error: Unreachable = Unreachable(f"{self.target} ends the stream of events again and again")
            except Unreachable as lost:
                error = lost
            if until is not None and time.monotonic() >= until:
                raise WaitTimeout(f"task {id} has not ended within {timeout:g} s") from None
            if not patience.pause(error):
                raise error

    def events(self, since: int | None = 0, *, task: str | None = None) -> Generator[Event, None, None]:
        """Events as they happen, from the one behind `since` (None: from now on), without end. It connects again by
        itself, and misses none.
        """
        patience = Patience(self._http.patience)
        while True:
            try:
                for told in self._stream(task, since, None):
                    patience = Patience(self._http.patience)
                    if told is not None:
                        since = told.id
                        yield told
                error = Unreachable(f"{self.target} ends the stream of events again and again")
            except Unreachable as lost:
                error = lost
            if not patience.pause(error):
                raise error

    def _stream(self, task: str | None, since: int | None, until: float | None) -> Iterator[Event | None]:
        """Events of one connection; None once it stands, and for each sign of life."""
        left = None if until is None else max(0.1, until - time.monotonic())
        timeout = min(self._http.timeout, left) if left else self._http.timeout
        query = {"since": "latest" if since is None else since, "task": task}
        accept = "text/event-stream"
        answer = self._http.call("GET", "/events", query=query, accept=accept, is_stream=True, timeout=timeout)
        unread = b""
        for piece in self._http.pieces(answer):
            *blocks, unread = (unread + piece).split(b"\n\n")
            for block in blocks:
                lines = [line[5:] for line in block.split(b"\n") if line.startswith(b"data:")]
                yield self._decoded(Event, b"\n".join(lines)) if lines else None
            if until is not None and time.monotonic() >= until:
                answer.close()
                return

    # Timers

    def timers(self, *, owner: str | None = None) -> Iterator[Timer]:
        """Timers, the latest first."""
        return self._rows(Timer, "/timers", {"owner": owner})

    def timer(self, id: str) -> Timer:
        """A timer."""
        return self._ask(Timer, "GET", f"/timers/{escape(id)}")

    def add_timer(self, schedule: TimerSchedule, task: NewTask, *, label: str | None = None) -> Timer:
        """Makes a timer, which submits `task` at the times of `schedule`: `{"cron": "0 2 * * *"}`."""
        return self._ask(Timer, "POST", "/timers", body={"schedule": schedule, "task": task, "label": label})

    def pause_timer(self, id: str) -> Timer:
        """Pauses a timer: no runs come until it is resumed."""
        return self._ask(Timer, "POST", f"/timers/{escape(id)}/pause", may_repeat=True)

    def resume_timer(self, id: str) -> Timer:
        """Has a paused timer go on with its next run."""
        return self._ask(Timer, "POST", f"/timers/{escape(id)}/resume", may_repeat=True)

    def run_timer(self, id: str) -> Timer:
        """Has a timer run now, beside its schedule."""
        return self._ask(Timer, "POST", f"/timers/{escape(id)}/run")

    def update_timer(self, id: str, **changes: Unpack[TimerUpdate]) -> Timer:
        """Changes label, schedule or task of a timer: `label="weekly"`, `schedule={"cron": "0 2 * * 1"}`."""
        return self._ask(Timer, "PATCH", f"/timers/{escape(id)}", body=changes, may_repeat=True)

    def remove_timer(self, id: str) -> None:
        """Removes a timer. Its tasks stay."""
        self._http.call("DELETE", f"/timers/{escape(id)}")

    # Endpoints

    def endpoints(self) -> Iterator[Endpoint]:
        """The endpoints that you may use, by name."""
        return self._rows(Endpoint, "/endpoints", {})

    def endpoint(self, name: str) -> Endpoint:
        """An endpoint."""
        return self._ask(Endpoint, "GET", f"/endpoints/{escape(name)}")

    def add_endpoint(self, **new: Unpack[NewEndpoint]) -> Endpoint:
        """Adds an endpoint: `name`, `location={"kind": "local", "root": "/data"}`, `uploads=True` …"""
        return self._ask(Endpoint, "POST", "/endpoints", body=new)

    def update_endpoint(self, name: str, **changes: Unpack[EndpointUpdate]) -> Endpoint:
        """Changes an endpoint."""
        return self._ask(Endpoint, "PATCH", f"/endpoints/{escape(name)}", body=changes, may_repeat=True)

    def remove_endpoint(self, name: str) -> None:
        """Removes an endpoint that no open task and no timer uses. The data stays."""
        self._http.call("DELETE", f"/endpoints/{escape(name)}")

    def test_endpoint(self, name: str) -> EndpointTest:
        """Tries an endpoint: reaches it, shows its token, looks at its clock and its storage."""
        return self._ask(EndpointTest, "POST", f"/endpoints/{escape(name)}/test", may_repeat=True)

    def files(self, endpoint: str) -> Files:
        """The files of an endpoint: list, read, write, rename, remove."""
        return Files(self, endpoint)

    # The service

    def whoami(self) -> Whoami:
        """Who you are to the service."""
        return self._ask(Whoami, "GET", "/whoami")

    def receipt_signer(self) -> ReceiptSigner:
        """The key with which the service signs receipts."""
        return self._ask(ReceiptSigner, "GET", "/receipts/key")

    def faults(self, *, since: Moment | None = None, endpoint: str | None = None) -> FaultStatistics:
        """Faults of tasks by host, disk and directory, and where they come in bursts; of 30 days, or since a time."""
        found = self.call("GET", "/faults", query={"from": since, "endpoint": endpoint})
        return decode(FaultStatistics, found)

    def task_options(self) -> TaskOptionTable:
        """The options of a task: what each is called, what it does and which values it takes."""
        return self._ask(TaskOptionTable, "GET", "/options/task")

    def call(self, method: str, path: str, *, query: dict[str, Any] | None = None, body: Any = None) -> Any:
        """Any other route of the API, such as `call("GET", "/overview")`: the JSON of its answer."""
        answer = self._http.call(method, path, query=query, body=body).data
        return json.loads(answer) if answer else None

    def _ask(self, kind: type[Document], method: str, path: str, **more: Any) -> Document:
        return self._decoded(kind, self._http.call(method, path, **more).data)

    def _decoded(self, kind: type[Document], text: bytes) -> Document:
        try:
            return decode(kind, json.loads(text))
        except (ValueError, TypeError) as error:
            raise BadAnswer(f"{self.target}: the answer is not what this client knows: {error}") from error

    def _rows(self, kind: type[Document], path: str, query: dict[str, Any]) -> Iterator[Document]:
        cursor = None
        while True:
            page = self.call("GET", path, query={**query, "limit": PAGE, "cursor": cursor})
            for row in page["items"]:
                yield decode(kind, row)
            cursor = page.get("next")
            if cursor is None:
                return
