"""What tests share: one service for all that leave it as it is, and one of its own for each that does not."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import pytest
from support import PROGRAM, Service

from carrack import Client, Files

os.environ["CARRACK_PROGRAM"] = PROGRAM


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("shared"))
    yield service
    service.end()


@pytest.fixture
def own(tmp_path: pathlib.Path) -> Iterator[Service]:
    service = Service(tmp_path / "own")
    yield service
    service.end()


@pytest.fixture
def client(shared: Service) -> Iterator[Client]:
    with Client(shared.socket) as client:
        yield client


@pytest.fixture
def files(client: Client) -> Files:
    return client.files("lab")


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """A test that waits for what never comes fails after two minutes."""

    def over(*_: object) -> None:
        raise TimeoutError("the test has not ended")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def usual(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service that is found where none is named: the shared one."""
    for key in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(key, shared.environment[key])
