"""A service that restarts, is killed, is slow, or takes the token away: documented exceptions, and no task twice."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import Relay, Service, until

from carrack import Client, TaskFailed, Unreachable, errors


def test_answer_that_is_lost_makes_no_second_task(shared: Service) -> None:
    relay = Relay(shared.port, lambda n, head: "cut" if head.startswith(b"POST") and n <= 2 else None)
    token, _ = shared.token("tasks", "read", "write", "view")
    with Client(relay.url, token=token) as client:
        task = client.submit("@lab:/none", "@lab:/never", label="once")
        assert relay.requests == 3
        assert [one.id for one in client.tasks(label="once")] == [task.id]
    relay.close()


def test_call_that_may_not_be_repeated_is_not(shared: Service) -> None:
    token, _ = shared.token("tasks", "read", "write", "view")
    relay = Relay(shared.port, lambda n, head: "cut" if b"/clone " in head else None)
    with Client(relay.url, token=token) as client:
        task = client.submit("@lab:/none", "@lab:/never", label="cloned")
        with pytest.raises(TaskFailed):
            client.wait(task.id)
        with pytest.raises(Unreachable):
            client.clone(task.id)
        assert len(list(client.tasks(label="cloned"))) == 2
    relay.close()


def test_service_is_killed_while_many_submit(own: Service) -> None:
    names = [f"task-{n}" for n in range(60)]
    started = threading.Semaphore(0)

    def submit(name: str) -> str:
        with Client(own.socket) as client:
            started.release()
            return client.submit("random:1", "null:", submission_id=name, label=name).id

    with ThreadPoolExecutor(8) as lanes:
        told = [lanes.submit(submit, name) for name in names]
        for _ in range(3):
            for _started in range(15):
                started.acquire()
            own.kill()
            own.start()
        ids = [one.result() for one in told]
    with Client(own.socket) as client:
        tasks = {task.id: task.request["label"] for task in client.tasks()}
    assert len(tasks) == len(names)
    assert [tasks[one] for one in ids] == names


def test_waiting_goes_on_over_a_service_that_restarts(own: Service) -> None:
    with Client(own.socket) as client, ThreadPoolExecutor(1) as other:
        task = client.submit("random:40M", "@lab:/over", options={"rate_limit": 20_000_000})
        waited = other.submit(client.wait, task.id)
        until(lambda: client.task(task.id).state == "ACTIVE")
        own.kill()
        own.start()
        own.end()
        own.start()
        assert waited.result(60).state == "SUCCEEDED"
        assert (own.data / "over").stat().st_size == 40 << 20


def test_waiting_outlasts_a_quiet_time_that_is_longer_than_the_patience(own: Service) -> None:
    with Client(own.socket, patience=5) as client, ThreadPoolExecutor(1) as other:
        task = client.submit("random:1G", "null:", options={"rate_limit": 1_000_000})
        client.pause(task.id)
        until(lambda: client.task(task.id).state == "PAUSED")
        began = time.monotonic()
        waited = other.submit(client.wait, task.id, check=False)
        until(lambda: time.monotonic() > began + 5.5)
        own.kill()
        own.start()
        client.cancel(task.id)
        assert waited.result(60).state == "CANCELLED"


def test_upload_goes_on_over_a_service_that_is_killed(own: Service, tmp_path: pathlib.Path) -> None:
    content = os.urandom(40 << 20)
    (tmp_path / "large").write_bytes(content)
    sent: list[int] = []

    def progress(bytes: int) -> None:
        sent.append(bytes)
        if len(sent) in (2, 6):
            own.kill()
            own.start()

    with Client(own.socket) as client:
        client.files("lab").upload(tmp_path / "large", "/large", progress=progress)
    assert (own.data / "large").read_bytes() == content
    assert sum(sent) == len(content)


def test_events_miss_none_over_a_restart(own: Service) -> None:
    with Client(own.socket) as client:
        one = client.wait(client.submit("random:1", "null:").id)
        events = client.events()
        seen = [next(events)]
        own.kill()
        own.start()
        other = client.wait(client.submit("random:1", "null:").id)
        while (seen[-1].task, seen[-1].kind) != (other.id, "ended"):
            seen.append(next(events))
        events.close()
        listed = client.call("GET", "/events", query={"since": 0, "limit": 1000})["items"]
    numbers = [event.id for event in seen]
    assert numbers == [event["id"] for event in listed][: len(numbers)]
    assert {one.id, other.id} <= {event.task for event in seen}


def test_service_that_stays_away_is_told_after_the_patience(own: Service) -> None:
    with Client(own.socket, patience=1) as client:
        task = client.submit("random:1G", "null:", options={"rate_limit": 1_000_000})
        own.end()
        for ask in (client.wait, client.task):
            with pytest.raises(Unreachable):
                ask(task.id)
        own.start()
        client.cancel(task.id)


def test_token_that_is_revoked_ends_what_waits(shared: Service) -> None:
    token, id = shared.token("tasks", "read", "write", "view")
    with open(shared.data / "long", "wb") as file:
        file.truncate(1 << 30)
    with Client(shared.url, token=token) as client, ThreadPoolExecutor(1) as other:
        task = client.submit("@lab:/long", "@lab:/long-too", options={"rate_limit": 1_000_000})
        waited = other.submit(client.wait, task.id)
        until(lambda: client.task(task.id).state == "ACTIVE")
        shared.run("service", "token", "revoke", id)
        with pytest.raises(errors.Unauthenticated):
            waited.result(60)
        with pytest.raises(PermissionError):
            client.submit("@lab:/long", "@lab:/long-too")


def test_scope_of_a_token_is_told(shared: Service) -> None:
    token, _ = shared.token("read", "view")
    with Client(shared.url, token=token) as client:
        with pytest.raises(errors.Forbidden) as told:
            client.files("lab").mkdir("/not")
        assert "write" in str(told.value)


def test_slow_service_is_given_up_after_the_timeout(shared: Service) -> None:
    token, _ = shared.token("tasks", "read", "write", "view")
    relay = Relay(shared.port, lambda n, head: "hold")
    with Client(relay.url, token=token, timeout=0.3, patience=1) as client:
        with pytest.raises(Unreachable, match="timed out"):
            client.submit("@lab:/none", "@lab:/never", label="slow")
        assert relay.requests > 1
    with Client(shared.socket) as admin:
        assert len(list(admin.tasks(label="slow"))) <= 1
    relay.close()


def test_busy_service_is_asked_again(monkeypatch: pytest.MonkeyPatch, shared: Service) -> None:
    from carrack import _http
    from carrack.model import Problem

    told = iter(
        [
            errors.TooMany(Problem("too-many", "later", 429, "", "")),
            errors.LedgerHeld(Problem("ledger-held", "", 503, "", "")),
        ]
    )
    once = _http.Http._once

    def sometimes(self: _http.Http, *arguments: object) -> object:
        if (error := next(told, None)) is not None:
            raise error
        return once(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(_http.Http, "_once", sometimes)
    with Client(shared.socket) as client:
        assert client.submit("random:1", "null:").id
