"""Tasks, timers and endpoints, by a service's socket."""

from __future__ import annotations

import os
import pickle
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import Service, until

from carrack import Client, TaskFailed, WaitTimeout, errors
from carrack.model import NewTask, Progress, TaskOptions

LONG: TaskOptions = {"rate_limit": 1_000_000}


def test_task_is_submitted_waited_for_and_told_item_by_item(client: Client, shared: Service) -> None:
    told: list[Progress] = []
    task = client.submit("random:3M", "@lab:/first", label="one", options={"verify": "disk"})
    assert task.request["options"] == {"verify": "disk"}
    done = client.wait(task.id, progress=told.append)
    assert (done.state, done.progress.items_done) == ("SUCCEEDED", 1)
    assert all(isinstance(one, Progress) for one in told)
    [item] = client.items(task.id)
    assert (item.state, item.size, item.digest) == ("done", 3 << 20, client.files("lab").sum("/first"))
    assert task.id in {one.id for one in client.tasks(label="one", state=["SUCCEEDED", "FAILED"])}
    assert task.id not in {one.id for one in client.tasks(state="FAILED")}
    assert (shared.data / "first").stat().st_size == 3 << 20


def test_progress_of_a_task_is_told_while_it_runs(client: Client) -> None:
    task = client.submit("random:1G", "null:", options={"rate_limit": 20_000_000})

    def enough(progress: Progress) -> None:
        if progress.bytes_moved > 0:
            raise StopIteration

    with pytest.raises(StopIteration):
        client.wait(task.id, progress=enough)
    client.cancel(task.id)
    assert client.wait(task.id, check=False).state == "CANCELLED"


def test_same_submission_id_is_the_same_task(client: Client) -> None:
    name = str(uuid.uuid4())
    one = client.submit("random:1M", "null:", submission_id=name)
    assert client.submit("random:1M", "null:", submission_id=name).id == one.id
    with pytest.raises(errors.SubmissionDiffers):
        client.submit("random:2M", "null:", submission_id=name)


def test_failed_task_is_an_exception_with_side_code_and_hints(client: Client) -> None:
    task = client.submit(["@lab:/none", "@lab:/none2"], "@lab:/there/")
    with pytest.raises(TaskFailed) as failed:
        client.wait(task.id)
    assert (failed.value.code, failed.value.task.state) == ("not-found", "FAILED")
    assert "source" in str(failed.value)
    assert client.wait(task.id, check=False).failure is not None
    assert {item.state for item in client.items(task.id, state="failed")} == {"failed"}
    assert pickle.loads(pickle.dumps(failed.value)).task == failed.value.task


def test_waiting_ends_after_its_time_and_the_task_goes_on(client: Client) -> None:
    task = client.submit("random:1G", "null:", options=LONG)
    with pytest.raises(WaitTimeout) as over:
        client.wait(task.id, timeout=0.3)
    assert isinstance(over.value, TimeoutError)
    assert client.task(task.id).state in ("QUEUED", "STAGING", "ACTIVE")
    client.cancel(task.id)
    client.wait(task.id, check=False)


def test_task_is_paused_resumed_updated_cloned_and_retried(client: Client) -> None:
    task = client.submit("random:1G", "null:", options=LONG)
    assert client.pause(task.id).pause_wanted
    assert client.update(task.id, label="another", priority=3).request["label"] == "another"
    until(lambda: client.task(task.id).state == "PAUSED")
    assert not client.resume(task.id).pause_wanted
    client.cancel(task.id)
    client.wait(task.id, check=False)
    copy = client.clone(task.id)
    assert copy.id != task.id
    client.cancel(copy.id)
    assert client.wait(copy.id, check=False).state == "CANCELLED"
    assert client.leftovers(copy.id).files == 0
    assert client.remove_leftovers(copy.id).items == []
    assert client.retry(copy.id).state in ("QUEUED", "ACTIVE")
    with pytest.raises(errors.Conflict):
        client.retry(copy.id)
    client.cancel(copy.id)
    client.wait(copy.id, check=False)


def test_timer_is_made_paused_resumed_and_removed(client: Client) -> None:
    start = datetime.now(UTC) + timedelta(days=1)
    task: NewTask = {"pairs": [{"source": "random:1M", "destination": "null:"}]}
    timer = client.add_timer({"every_seconds": 86400, "start": start}, task, label="nightly")
    assert timer.next_run is not None and abs(timer.next_run - start) < timedelta(seconds=1)
    assert client.pause_timer(timer.id).state == "paused"
    assert client.resume_timer(timer.id).state == "waiting"
    changed = client.update_timer(timer.id, label="weekly", schedule={"every_seconds": 604800, "start": start})
    assert (changed.label, changed.schedule["every_seconds"]) == ("weekly", 604800)
    assert changed.task["pairs"][0]["source"] == "random:1M"
    assert client.timer(timer.id).label == "weekly"
    assert timer.id in {one.id for one in client.timers()}
    client.remove_timer(timer.id)
    with pytest.raises(errors.NotFound):
        client.timer(timer.id)


def test_endpoint_is_added_changed_tested_and_removed(client: Client, shared: Service) -> None:
    made = client.add_endpoint(name="other", location={"kind": "local", "root": str(shared.data)}, uploads=True)
    assert made.uploads and not made.read_only
    assert client.update_endpoint("other", description="for tries", read_only=True).description == "for tries"
    assert client.test_endpoint("other").ok
    assert {"lab", "other"} <= {one.name for one in client.endpoints()}
    with pytest.raises(errors.NameTaken):
        client.add_endpoint(name="other", location={"kind": "local", "root": str(shared.data)})
    client.remove_endpoint("other")
    with pytest.raises(errors.NotFound):
        client.endpoint("other")


def test_events_are_numbered_and_go_on_behind_the_last(client: Client) -> None:
    task = client.wait(client.submit("random:1M", "null:").id)
    events = []
    for event in client.events(task=task.id):
        events.append(event)
        if event.kind == "ended":
            break
    assert events[0].kind == "submitted"
    following = next(client.events(events[0].id, task=task.id))
    assert following == events[1]


def test_errors_are_pythons_own_too(client: Client) -> None:
    with pytest.raises(ValueError, match="pairs") as malformed:
        client.submit()
    assert (malformed.value.code, malformed.value.status) == ("malformed", 400)  # type: ignore[attr-defined]
    with pytest.raises(FileNotFoundError):
        client.task("none")
    assert pickle.loads(pickle.dumps(malformed.value)).problem == malformed.value.problem  # type: ignore[attr-defined]


def test_faults_are_told_by_their_places(client: Client) -> None:
    client.wait(client.submit("random:1", "@lab:/faults/one", label="here").id)
    found = client.faults(endpoint="lab")
    assert found.bursts == [] and found.tasks >= 1


def test_check_tells_what_differs(client: Client, tmp_path: Path) -> None:
    for side, names in (("a", "xy"), ("b", "y")):
        (tmp_path / side).mkdir()
        for name in names:
            (tmp_path / side / name).write_text(side)
            os.utime(tmp_path / side / name, (1, 1))
    task = client.submit(f"{tmp_path}/a/", f"{tmp_path}/b/", kind="check")
    with pytest.raises(TaskFailed, match="only at the source"):
        client.wait(task.id)
    ended = client.task(task.id)
    assert ended.failure and ended.failure.code == "differences"
    assert ended.progress.check and ended.progress.check.only_source == 1
    assert [(item.path, item.state) for item in client.items(task.id)] == [("x", "only-source")]


def test_other_routes_are_called_by_their_paths(client: Client) -> None:
    assert client.whoami().role == "admin"
    assert client.call("GET", "/overview", query={"steps": 2})["step_seconds"] > 0


def test_pages_follow_one_another(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        client.submit("random:1", "null:", label="paged")
    monkeypatch.setattr("carrack.client.PAGE", 2)
    found = [task.id for task in client.tasks(label="paged")]
    assert len(found) == len(set(found)) == 5


def test_patience_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from carrack._http import PAUSE_MAX, Patience

    waits: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience = Patience(60)
    while patience.pause(errors.Unreachable("away")):
        pass
    assert max(waits) <= PAUSE_MAX and 12 < len(waits) < 40 and 50 < now[0] <= 60
    assert not Patience(60).pause(errors.Unreachable("sent"), may_repeat=False)


def test_receipt_of_a_task_is_signed_by_the_service(client: Client) -> None:
    task = client.submit("random:1M", "@lab:/with-receipt/", receipt=True)
    client.wait(task.id)
    receipt = client.receipt(task.id)
    assert receipt.endswith(b"-----END SSH SIGNATURE-----\n") and task.id.encode() in receipt
    assert client.receipt_signer().key.startswith("ssh-ed25519 ")
    with pytest.raises(errors.NotFound):
        client.receipt(task.id, pair=1)
