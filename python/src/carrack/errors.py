"""What goes wrong, as exceptions: one for each code of a problem that the service tells, and those of the way to it.

Each has `code` (a word for programs), `hints` (what to try) and a text for people. Where Python has an exception of its
own for the same (`FileNotFoundError`, `PermissionError`, `ConnectionError`, `TimeoutError`), it is one of these, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .model import Problem, Task, TaskFailure
    from .program import Failure, Report


class CarrackError(Exception):
    """Everything that this package raises of its own."""

    code: str = "other"

    def __init__(self, message: str, *, hints: list[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints or []

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes of dask and multiprocessing hand exceptions on.
        return _remade, (type(self), self.message, vars(self))

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  try: {hint}" for hint in self.hints)])


def _remade(kind: type[CarrackError], message: str, fields: dict[str, Any]) -> CarrackError:
    error = kind.__new__(kind)
    error.args = (message,)
    vars(error).update(fields)
    return error


class Unreachable(CarrackError, ConnectionError):
    """Nobody answers at the service's address, or the connection ended before the answer, for as long as `patience`.

    `submission_id`: of a submission. Submit with the same one again, and no task is made twice.
    """

    code = "unreachable"
    submission_id: str | None = None
    # Whether something may have reached the service.
    was_sent: bool = True


class CannotResume(Unreachable):
    """The connection ended within a file, and its endpoint cannot tell whether the file has changed since. Read it
    again from the beginning.
    """

    code = "cannot-resume"


class KeyMismatch(CarrackError, ConnectionError):
    """The service shows another key than the pinned one, or none was pinned: nothing was sent to it."""

    code = "key-mismatch"


class BadAnswer(CarrackError):
    """What came is not what the API says: another program answers there, or a newer service."""

    code = "bad-answer"


class Changed(CarrackError, OSError):
    """A file at an endpoint changed while it was read."""

    code = "source-changed"


class WaitTimeout(CarrackError, TimeoutError):
    """A task had not ended when the time to wait for it was over. It goes on."""

    code = "wait-timeout"


class TaskFailed(CarrackError):
    """A task ended in another state than SUCCEEDED. `task` is the whole document."""

    def __init__(self, task: Task) -> None:
        failure: TaskFailure | None = task.failure
        why = f"{failure.side}: {failure.why}" if failure else f"{task.progress.items_failed} items failed"
        super().__init__(f"task {task.id} {task.state}: {why}", hints=failure.hints if failure else [])
        self.task = task
        self.code = failure.code if failure else task.state.lower()


class ProgramMissing(CarrackError):
    """The program `carrack` is needed and is not there."""

    code = "program-missing"


class CopyFailed(CarrackError):
    """A copy by the program failed, or some items did.

    `exit_code`, `side`, `path` and `code` are those of the error, or of the first item that failed; `failures` has all
    items that are told, `report` the program's whole report, where it came to one.
    """

    def __init__(self, failure: Failure, exit_code: int, report: Report | None) -> None:
        super().__init__(failure.message, hints=failure.hints)
        self.exit_code, self.report = exit_code, report
        self.side, self.path, self.code = failure.side, failure.path, failure.code
        self.failures = report.failures if report else []


class ServiceError(CarrackError):
    """The service says no. `status` is that of HTTP, `problem` the whole document."""

    by_code: ClassVar[dict[str, type[ServiceError]]] = {}
    # Seconds after which the service wants to be asked again.
    retry_after: float = 0.0

    def __init_subclass__(cls) -> None:
        ServiceError.by_code[cls.code] = cls

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title, hints=problem.hints)
        self.problem, self.status, self.code = problem, problem.status, problem.code

    @staticmethod
    def of(problem: Problem) -> ServiceError:
        """The exception for a problem; one that a newer service has is the plain class."""
        return ServiceError.by_code.get(problem.code, ServiceError)(problem)


class Malformed(ServiceError, ValueError):
    """The request is not what the route takes: a wrong option, a path that is none."""

    code = "malformed"


class Unauthenticated(ServiceError, PermissionError):
    """The token is wrong, has expired or was revoked, or none was shown."""

    code = "unauthenticated"


class WrongLogin(ServiceError, PermissionError):
    """Name and password do not fit."""

    code = "wrong-login"


class Forbidden(ServiceError, PermissionError):
    """The caller may not do this; the text names what is missing."""

    code = "forbidden"


class CsrfMissing(ServiceError, PermissionError):
    """A request with a cookie lacks its second proof. This client sends no cookies."""

    code = "csrf-missing"


class NotFound(ServiceError, FileNotFoundError):
    """There is no such task, endpoint or file, or it is not the caller's."""

    code = "not-found"


class WrongHost(ServiceError):
    """The address names a host that is none of the service's."""

    code = "wrong-host"


class MethodNotAllowed(ServiceError):
    """The route does not take this method: the service is of another version."""

    code = "method-not-allowed"


class Conflict(ServiceError):
    """The thing is in a state that does not allow this, such as a retry of a task that runs."""

    code = "conflict"


class NameTaken(ServiceError):
    """The name belongs to something else."""

    code = "name-taken"


class SubmissionDiffers(ServiceError):
    """The submission's id came with another request before."""

    code = "submission-differs"


class VersionDiffers(ServiceError):
    """The thing has changed since the caller read it."""

    code = "version-differs"


class TooLarge(ServiceError):
    """The request is larger than the service takes."""

    code = "too-large"


class TooSlow(ServiceError):
    """The request took too long to arrive."""

    code = "too-slow"


class TooMany(ServiceError):
    """Too many attempts or connections, for longer than `patience`."""

    code = "too-many"


class StorageFull(ServiceError):
    """The service cannot keep anything new at present."""

    code = "storage-full"


class LedgerHeld(ServiceError):
    """Another program holds the service's ledger, for longer than `patience`."""

    code = "ledger-held"


class Stopping(ServiceError):
    """The service ends, and did not come back within `patience`."""

    code = "stopping"


class EndpointUnreachable(ServiceError, ConnectionError):
    """The service answers, but an endpoint cannot be reached."""

    code = "unreachable"


class Exists(ServiceError, FileExistsError):
    """Something has the name already."""

    code = "exists"


class DigestMismatch(ServiceError):
    """The bytes are not those of the digest that was given before."""

    code = "digest-mismatch"


class Denied(ServiceError, PermissionError):
    """The file system of the endpoint does not allow it."""

    code = "denied"


class FilesFailed(ServiceError, OSError):
    """Something could not be done with files: the text says why."""

    code = "files-failed"


class WorkerLost(ServiceError):
    """The process of the service that serves the files has ended, again and again."""

    code = "worker-lost"


class Internal(ServiceError):
    """The service has a fault; its log says more."""

    code = "internal"
