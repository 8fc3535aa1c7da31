"""The documents of the API. Written by generate.py from the API's description: do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Required, TypeAlias, TypedDict

BenchKind: TypeAlias = Literal["disk", "cpu", "ladder"]
BenchState: TypeAlias = Literal["idle", "running", "finished", "failed"]
BlockedCause: TypeAlias = Literal[
    "turn",
    "endpoint-limit",
    "pair-limit",
    "worker-limit",
    "retry",
    "confirm",
    "maintenance",
    "guard",
    "timetable",
    "drained",
]
EndpointLocation: TypeAlias = dict[str, Any]
EventKind: TypeAlias = Literal[
    "submitted",
    "queued",
    "started",
    "progress",
    "note",
    "fault",
    "paused",
    "resumed",
    "cancelling",
    "updated",
    "ended",
    "timer-made",
    "timer-ran",
    "timer-skipped",
    "timer-ended",
    "endpoint-changed",
    "decision",
]
FileKind: TypeAlias = Literal["file", "directory", "symlink", "special"]
HealthState: TypeAlias = Literal["ok", "idle", "degraded", "down"]
ItemState: TypeAlias = Literal[
    "done",
    "skipped",
    "failed",
    "deleted",
    "planned",
    "to-delete",
    "different",
    "only-source",
    "only-destination",
]
KnownBy: TypeAlias = Literal["socket", "token", "session"]
ListingState: TypeAlias = Literal["reading", "complete", "failed"]
# RFC 3339, or a datetime with a zone.
Moment: TypeAlias = str | datetime
Notice: TypeAlias = Literal["succeeded", "failed", "partial", "cancelled"]
OptionDefault: TypeAlias = bool | int | str
OptionKind: TypeAlias = Literal["flag", "choice", "number", "text", "lines", "bytes", "duration", "moment"]
OptionPlace: TypeAlias = Literal["options", "task"]
Overlap: TypeAlias = Literal["skip", "wait", "start"]
PlaceKind: TypeAlias = Literal["host", "disk", "path", "link"]
ProblemCode: TypeAlias = Literal[
    "malformed",
    "unauthenticated",
    "wrong-login",
    "forbidden",
    "csrf-missing",
    "not-found",
    "wrong-host",
    "method-not-allowed",
    "conflict",
    "name-taken",
    "submission-differs",
    "version-differs",
    "too-large",
    "too-slow",
    "too-many",
    "storage-full",
    "ledger-held",
    "stopping",
    "unreachable",
    "exists",
    "digest-mismatch",
    "denied",
    "files-failed",
    "worker-lost",
    "internal",
]
Role: TypeAlias = Literal["admin", "user", "viewer"]
Secret: TypeAlias = str
TaskAct: TypeAlias = Literal["pause", "resume", "retry", "cancel"]
TaskKind: TypeAlias = Literal["copy", "move", "delete", "check"]
TaskState: TypeAlias = Literal[
    "QUEUED",
    "STAGING",
    "ACTIVE",
    "PAUSED",
    "CANCELLING",
    "SUCCEEDED",
    "PARTIAL",
    "FAILED",
    "CANCELLED",
]
TimerState: TypeAlias = Literal["waiting", "paused", "ended"]
UploadExisting: TypeAlias = Literal["fail", "replace"]
UploadState: TypeAlias = Literal["receiving", "publishing", "published", "failed"]
Verb: TypeAlias = Literal["read", "write", "delete", "ownership", "tasks", "view", "metrics", "admin"]


class Ceilings(TypedDict, total=False):
    """How much may be done with a token: by all its tasks and all its requests about files together, as far as it is
    not time. What is left out is not limited.
    """

    bytes: int | None
    """Bytes of contents."""
    deletions: int | None
    """Items that are deleted."""
    entries: int | None
    """Files, links and directories."""
    run_seconds: int | None
    """Seconds of one attempt of a task, and of one request about files."""


class EndpointDefaults(TypedDict, total=False):
    """How tasks with this endpoint copy where they do not say it themselves."""

    encrypt: Literal["tls", "none"] | None
    """Whether data connections keep secrets."""
    verify: Literal["wire", "disk", "source", "none"] | None
    """How each file is proved before its name appears."""


class EndpointLimits(TypedDict, total=False):
    """What an endpoint allows. What is left out is not limited."""

    drained: str | None
    """Why no transfer begins there at present, in words for whoever waits; attempts that run go on to their end."""
    rate: int | None
    """Bytes a second of each transfer."""
    streams: int | None
    """Data connections of each transfer."""
    timetable: list[RateWindow]
    """Rates by hour of the service's local time; outside all of them `rate` holds."""
    transfers: int | None
    """Transfers at once, as source and as destination together."""


class EndpointUpdate(TypedDict, total=False):
    """What changes about an endpoint; what is left out stays."""

    defaults: EndpointDefaults | None
    """What its tasks do where they do not say it."""
    description: str | None
    """Free text."""
    limits: EndpointLimits | None
    """What it allows."""
    location: EndpointLocation | None
    """Where its root is. A token that is kept goes, unless one comes with it: it was for the place before."""
    owner: str | None
    """Who owns it from now on; for admins."""
    ownership: bool | None
    """Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    admin allows it: whoever may write there can make programs that run as others.
    """
    read_only: bool | None
    """Nothing there may be changed."""
    token: Secret | None
    """The node's token; null takes it away."""
    uploads: bool | None
    """Files may be uploaded to it through the service."""
    users: list[str] | None
    """Users who may use it beside its owner."""


FileRename = TypedDict(
    "FileRename",
    {
        "from": "Required[str]",
        "replace": "bool",
        "to": "Required[str]",
    },
    total=False,
)


class LoginRequest(TypedDict, total=False):
    """Who logs in: with a name and a password, or with a link that the service printed."""

    cookie: bool
    """Keep the session in a cookie, as browsers do; else its token is in the answer."""
    link: Secret | None
    """What stands behind `login=` in a login link; it works once."""
    password: Secret | None
    """Their password."""
    user: str | None
    """The user's name."""


class NewDirectory(TypedDict, total=False):
    """A directory that is to be made."""

    parents: bool
    """Make those above it as well; then one that exists is no failure."""
    path: Required[str]
    """A path from the endpoint's root. A byte that is no text, a % too, stands as %HH."""


class NewEndpoint(TypedDict, total=False):
    """An endpoint to be added."""

    defaults: EndpointDefaults
    """What its tasks do where they do not say it."""
    description: str
    """Free text."""
    limits: EndpointLimits
    """What it allows."""
    location: Required[EndpointLocation]
    """Where its root is."""
    name: Required[str]
    """What it is called: letters, digits, `-`, `_` and `.`; unique."""
    ownership: bool
    """Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    admin allows it: whoever may write there can make programs that run as others.
    """
    read_only: bool
    """Nothing there may be changed."""
    token: Secret | None
    """The node's token. It is sealed at once, and no document shows it."""
    uploads: bool
    """Files may be uploaded to it through the service."""
    users: list[str]
    """Users who may use it beside its owner; `*` stands for every user."""


class NewGrant(TypedDict, total=False):
    """What somebody wants to do at an endpoint's node by themselves."""

    path: Required[str]
    """A path from the endpoint's root. A byte that is no text, a % too, stands as %HH."""
    seconds: int | None
    """For how long, 1 to 600; ten minutes, where it is left out."""
    verbs: Required[list[Verb]]
    """`read`, `write`, `delete`."""


class NewListing(TypedDict, total=False):
    """A directory that is to be listed."""

    endpoint: Required[str]
    """The endpoint."""
    path: Required[str]
    """A path from the endpoint's root. A byte that is no text, a % too, stands as %HH."""


class NewTask(TypedDict, total=False):
    """A task as somebody submits it."""

    ceilings: Ceilings
    """How much it may do, by that token. The service sets it."""
    deadline: Moment | None
    """When it fails, if it has not ended."""
    expect_digests: dict[str, str]
    """BLAKE3 digests that files must have, by the path relative to the destination."""
    fail_on_quota_errors: bool
    """End at the first item that a quota refuses."""
    guard: RunGuard | None
    """What the timer's last run that succeeded has found, where its runs delete. The service sets it."""
    kind: TaskKind
    """What it does."""
    label: str | None
    """Printable characters."""
    notify: list[Notice]
    """Ends that are told about by the log and the events."""
    options: TaskOptions
    """How it copies."""
    pairs: list[Pair]
    """From where to where; at least one."""
    preview: bool
    """Count and list what a copy would send and delete, and change nothing: `progress.plan` tells it."""
    priority: int | None
    """Of your own tasks, those with a higher number go first."""
    receipt: bool
    """Leave a signed receipt of each pair: `GET /tasks/{id}/receipt`. A copy, a move or a check."""
    skip_source_errors: bool
    """Sources that are missing or may not be read do not keep the task from SUCCEEDED; they are told as skipped."""
    timer: str | None
    """The timer that submitted it."""
    token: str | None
    """The token with which it was submitted: where that is revoked, the task is cancelled. The service sets it."""


class NewTimer(TypedDict, total=False):
    """A timer to be made."""

    label: str | None
    """What its owner calls it."""
    schedule: Required[TimerSchedule]
    """When it runs."""
    task: Required[NewTask]
    """What it submits."""


class NewToken(TypedDict, total=False):
    """A token to be made."""

    expires: Moment | None
    """When it ends; never, where it is left out."""
    label: str
    """What it is for."""
    scope: Scope | None
    """What it allows; all that its user may do, where it is left out."""
    user: str | None
    """The user it acts for; the caller, where it is left out."""


class NewUpload(TypedDict, total=False):
    """A file to be uploaded."""

    block_bytes: Required[int]
    """Bytes of each block but the last: 4194304."""
    blocks: Required[list[str]]
    """SHA-256 of each block, in hexadecimal."""
    existing: UploadExisting
    """What happens to a file that has the name already; `fail` where it is left out."""
    modified: Moment | None
    """When its content was last modified; the time of the upload where it is left out."""
    path: Required[str]
    """The file's path, below the endpoint's root; begins with `/`."""
    size: Required[int]
    """Bytes of the file: at most 64 GiB."""


class NewUser(TypedDict, total=False):
    """A user to be added."""

    account: int | None
    """The account of the service's host that is this user over the local socket."""
    name: Required[str]
    """Unique; letters, digits, `-`, `_`, `.` and `@`."""
    password: Secret | None
    """A password to log in with; none: only tokens and the account let them in."""
    role: Required[Role]
    """What they may do."""


class Pair(TypedDict, total=False):
    """From where to where. Locations are written as at the command line: `@NAME:/path`, `carrack://host/path#sha256:…`,
    `ssh://user@host/path`, or, for the account that runs the service, an absolute path of its host.
    """

    destination: str | None
    """@NAME:/PATH at an endpoint; for the account that runs the service also a path of its host,
    carrack://HOST[:PORT]/PATH[#sha256:PIN], ssh://[USER@]HOST/PATH, and null:, zero:SIZE, random:SIZE. A byte of a
    path that is no text, a % too, stands as %HH.
    """
    source: Required[str]
    """@NAME:/PATH at an endpoint; for the account that runs the service also a path of its host,
    carrack://HOST[:PORT]/PATH[#sha256:PIN], ssh://[USER@]HOST/PATH, and null:, zero:SIZE, random:SIZE. A byte of a
    path that is no text, a % too, stands as %HH.
    """


class PasswordChange(TypedDict, total=False):
    """Another password for oneself."""

    new: Required[Secret]
    """The new one: 10 to 1024 characters."""
    old: Secret | None
    """The one until now; not needed where there is none, or over the local socket."""


RateWindow = TypedDict(
    "RateWindow",
    {
        "from": "Required[str]",
        "rate": "Required[int]",
        "until": "Required[str]",
    },
    total=False,
)


class RunGuard(TypedDict, total=False):
    """What the last run of a timer that succeeded has found. The next one deletes nothing where it finds something
    else, until somebody has looked at its plan.
    """

    file_system: str | None
    """By which the file system is known that the source stands on: only equality counts. None: nobody has told."""
    items: int | None
    """Files, links and directories of the source."""


class Scope(TypedDict, total=False):
    """What a token allows. Everything that is not named is refused."""

    ceilings: Ceilings
    """How much it may be used for."""
    endpoints: list[str]
    """Only these endpoints; empty: all that its user may use. An earlier version wrote one, as `endpoint`."""
    path: str | None
    """A path from the endpoint's root. A byte that is no text, a % too, stands as %HH."""
    verbs: list[Verb]
    """What it may be used for."""


class SumRequest(TypedDict, total=False):
    """A file whose digest is wanted."""

    digest: str | None
    """`blake3`, which it is where it is left out."""
    path: Required[str]
    """A path from the endpoint's root. A byte that is no text, a % too, stands as %HH."""


class TaskActs(TypedDict, total=False):
    """The same act on many tasks."""

    act: Required[TaskAct]
    """What is done."""
    cursor: str | None
    """The `next` of the answer before."""
    deadline: Moment | None
    """With `retry`: when they fail, if they have not ended; null: never."""
    dry_run: bool
    """Tell which tasks they are, and do nothing."""
    filter: Required[TaskSelection]
    """To which tasks."""
    limit: int | None
    """Tasks at a time, 1 to 1000; 100 where it is left out."""
    recheck: bool
    """With `retry`: compare digests of what counts as done."""


class TaskClone(TypedDict, total=False):
    """What is different about a task that is submitted once more."""

    deadline: Moment | None
    """When it fails, if it has not ended; null: never. Where it is left out, that of the first stays; one that has
    passed is refused.
    """
    run: bool
    """Of a preview: do what it has planned."""


class TaskOptions(TypedDict, total=False):
    """How a task copies; what is left out is as at the command line. Words are those of the flags of the same names."""

    access_times: bool
    """Items but directories get the access times of their sources. They alone make no difference: reading changes them.
    """
    acls: bool
    """Items get the POSIX access control lists of their sources, and no others. Where one cannot be set, the
    permissions give nobody more than it does.
    """
    allow_empty: bool
    """Let a source with nothing in it empty the destination."""
    append: bool
    """Write on files of more than 1 MiB, where they stand, that are shorter than at the source. What they have is
    compared, and sent again where it differs.
    """
    backup: bool
    """Each file or link that is replaced or deleted at the destination stays beside its place, with ~ behind its name.
    """
    backup_dir: str | None
    """A directory below the destination, where each file or link that is replaced or deleted is kept under the path
    that it had.
    """
    backup_suffix: str | None
    """What is added to the names of files that are kept. Left out, ~ beside their places, and nothing in a directory of
    their own.
    """
    block_bytes: int | None
    """Unit of sending and repair: a power of two. Left out, 256 KiB for files up to 1 GiB, 1 MiB up to 256 GiB, else 4
    MiB; 1 MiB at most where files are compared.
    """
    chmod: str | None
    """How permissions are changed on the way, such as Dg+s,ug+w,Fo-w or D755,F644: D is for directories, F for all
    else.
    """
    chown: str | None
    """The owner and the group of all items, by names or numbers of the destination. An endpoint sets them only where an
    admin allows it.
    """
    compare: Literal["none", "size", "size,mtime", "checksum"] | None
    """What has to be the same at both sides, so that a file is not sent."""
    compare_dest: str | None
    """Directories at the destination, relative to it, one a line. A file that one of them has, and the destination has
    not, is not copied.
    """
    compress: bool
    """Compress what shrinks, while the path is slower than the processors."""
    congestion: str | None
    """Congestion control of the sending host's TCP, like cubic or bbr. Left out, that host's own."""
    copy_dest: str | None
    """Directories at the destination, relative to it, one a line. A file that one of them has is copied from there, and
    not sent.
    """
    delete: bool
    """When all has been copied, delete what only the destination has; nothing, if anything failed. Files that are the
    same in size and time are then skipped, unless another comparison is chosen.
    """
    delete_before: bool
    """Delete what only the destination has before anything is sent, where there is no room for both. What cannot be
    sent later does not stop it.
    """
    delete_excluded: bool
    """Delete also what the rules leave out, unless one protects it."""
    delta: Literal["auto", "always", "never"] | None
    """What is sent of a file that the destination has in another state: of more than 1 MiB, or, where files are
    compared, of 16 KiB or more.
    """
    detect_renames: Literal["never", "content", "quick"] | None
    """Whether a file that only the destination has is renamed where the source has it under another name. Needs
    deletion.
    """
    devices: bool
    """Block and character devices are made at the destination. An endpoint makes them only where an admin allows it;
    else they are counted as not kept.
    """
    digest: str | None
    """Digests to compute, separated by commas: blake3, or in its place xxh128 (cheaper; finds accidents, not forgery;
    no digest of whole files), and adler32, crc32c. none computes nothing and needs a copy that verifies nothing.
    """
    durable: Literal["group", "each", "none"] | None
    """What reaches stable storage before it counts as there."""
    encrypt: Literal["tls", "none"] | None
    """Whether data connections keep secrets."""
    existing: Literal["replace", "keep", "only", "older"] | None
    """What happens to files that exist at the destination."""
    fake_super: bool
    """Owners, special bits and devices that are kept are not set. The destination writes them down beside each item, in
    an extended attribute that rsync reads, too.
    """
    filters: str | None
    """Rules that leave names out, one a line, as rsync has them: - *.tmp, + */, protect keep/, dir-merge .rules. The
    first that matches decides.
    """
    from_fake_super: bool
    """What a copy has written down beside items of the source, in the place of owners, special bits and devices, counts
    as what they are.
    """
    group: bool
    """Items get the groups of their sources, by name, where the destination may set them. An endpoint does so only
    where an admin allows it; else they are counted as not kept.
    """
    groupmap: str | None
    """Groups of the source, by names, numbers or ranges of them, and which their items get at the destination."""
    growing: Literal["refuse", "snapshot", "follow"] | None
    """What becomes of a file that grows while it is copied."""
    growing_idle: str | None
    """A followed file is whole when it has not grown for so long: 100ms to 1d."""
    growing_lock: str | None
    """A followed file is whole when the file with this name beside it goes; * in it is the name of the file."""
    hard_links: Literal["keep", "separate"] | None
    """Whether names of one file are names of one file at the destination, too."""
    ignore_errors: bool
    """Delete even if something failed, but nothing in directories that could not be listed."""
    inplace: bool
    """Write over files of more than 1 MiB where they stand. Until one is finished, its name holds a mixture."""
    link_dest: str | None
    """Directories at the destination, relative to it, one a line. A file that one of them has gets a hard link to that;
    one with other permissions or times is copied there.
    """
    links: Literal["keep", "follow", "follow-directories", "follow-unsafe", "safe"] | None
    """What becomes of symbolic links. None is followed out of an endpoint's root."""
    max_age: str | None
    """Files that were last changed more than this ago are left out: 2w, 36h. The destination keeps those that it has.
    """
    max_delete: str | None
    """Delete nothing if more items than this would be deleted. With ,partial behind the number, so many of them are
    deleted. With % behind it, it is a share of what the destination has.
    """
    max_size: int | None
    """Files larger than this are left out. The destination keeps those that it has."""
    min_age: str | None
    """Files that were changed less than this ago are left out: 30d, 12h. The destination keeps those that it has."""
    min_size: int | None
    """Files smaller than this are left out. The destination keeps those that it has."""
    modify_window: int | None
    """Seconds by which modification times may differ and still count as one."""
    no_times: bool
    """Modification times are not set at the destination. A comparison by time then sends everything each time: compare
    by size or checksum, or keep what is newer.
    """
    numeric_ids: bool
    """Owners and groups are kept by their numbers, whatever their names are."""
    one_file_system: bool
    """Directories where another file system is mounted are copied without what is in them."""
    only: list[str] | None
    """Only these paths and what is below them, relative to the destination."""
    owner: bool
    """Items get the owners of their sources, by name, where the destination may set them. An endpoint does so only
    where an admin allows it; else they are counted as not kept.
    """
    polite: bool
    """Use fewer data connections where others use the path: each must raise the rate by 5 %, not by 1 %."""
    rate_limit: int | None
    """Limit in bytes a second. 0: no limit."""
    require_mount: bool
    """Nothing is copied or deleted unless a file system is mounted at each source. The destination may be any
    directory.
    """
    selinux: bool
    """Items get the SELinux contexts of their sources. Without this each gets what the destination's policy gives it.
    An endpoint sets them only where an admin allows it; else they are counted as not kept.
    """
    special_bits: bool
    """Items get the set-user-id, set-group-id and sticky bits of their sources, the first two only with its owner and
    group. An endpoint sets them only where an admin allows it; else they are counted as not kept.
    """
    specials: bool
    """FIFOs and sockets are made at the destination."""
    streams: int | Literal["auto"] | None
    """Data connections of each transfer. Left out, the number is tuned while the copy runs."""
    top_attributes: bool
    """The destination directory itself gets the permissions of its source, and owner and access control list where they
    are kept, also where it was there before.
    """
    trusted: bool
    """Items get the extended attributes of their sources that only root sees. An endpoint sets them only where an admin
    allows it; else they are counted as not kept.
    """
    usermap: str | None
    """Owners of the source, by names, numbers or ranges of them, and whom their items go to at the destination."""
    verify: Literal["wire", "disk", "source", "none"] | None
    """How each file is proved before its name appears."""
    xattrs: Literal["none", "user", "all"] | None
    """Items get the extended attributes of their sources, and no others. An endpoint sets capabilities only where an
    admin allows it; else they are counted as not kept.
    """


class TaskRetry(TypedDict, total=False):
    """How a task that has ended is tried again."""

    deadline: Moment | None
    """When it fails, if it has not ended; null: never. What is left out stays, and a deadline that has passed is
    refused.
    """
    recheck: bool
    """Read what counts as done at the destination once more, and compare its digests: kind, size and modification time
    are always compared.
    """


class TaskSelection(TypedDict, total=False):
    """Which tasks an act is for, in the words of the list of tasks. A task has to have all that is named."""

    all: bool
    """All of them, where nothing else is named."""
    before: Moment | None
    """Submitted before this moment."""
    cause: str | None
    """That failed with this error code, or wait for this cause."""
    destination: str | None
    """Whose first pair goes to this endpoint."""
    endpoint: str | None
    """That use this endpoint."""
    label: str | None
    """Whose label contains this, in any case."""
    owner: str | None
    """Of this user; `*` for every user; one's own, where it is left out. Others than oneself for admins alone."""
    q: str | None
    """Whose label, identifier or a path of which contains this, in any case."""
    since: Moment | None
    """Submitted at this moment or later."""
    source: str | None
    """Whose first pair comes from this endpoint."""
    state: list[TaskState]
    """In one of these states; those that the act can be done to, where none is named."""
    timer: str | None
    """Of this timer."""


class TaskUpdate(TypedDict, total=False):
    """What changes about a task; what is left out stays, null takes it away."""

    deadline: Moment | None
    """When it fails, if it has not ended."""
    label: str | None
    """Printable characters."""
    priority: int | None
    """Of your own tasks, those with a higher number go first."""


class TimerSchedule(TypedDict, total=False):
    """When a timer runs: `every` or `cron`, not both; with neither, once at `start`."""

    cron: str | None
    """Five fields, as crontab has them, in `zone`."""
    every_seconds: int | None
    """Seconds from one run's due time to the next."""
    jitter_seconds: int | None
    """Each run comes up to this many seconds after it is due, at a time of its own: timers with one schedule do not
    begin at once. Less than the time from one run to the next, at most a day.
    """
    overlap: Overlap
    """What happens where the task of the run before has not ended."""
    runs: int | None
    """Runs in all."""
    start: Moment | None
    """The first run, or the earliest for `cron`; at once where it is left out."""
    until: Moment | None
    """No run is due after this."""
    zone: str | None
    """A name of the IANA database of time zones for `cron`; UTC where it is left out."""


class TimerUpdate(TypedDict, total=False):
    """A change of a timer. What is left out stays."""

    label: str | None
    """What its owner calls it; null: nothing."""
    schedule: TimerSchedule | None
    """When it runs. Its runs so far count on."""
    task: NewTask | None
    """What it submits."""


class UsageRequest(TypedDict, total=False):
    """Paths whose use of storage is wanted."""

    paths: Required[list[str]]


class UserUpdate(TypedDict, total=False):
    """What changes about a user; what is left out stays, null takes it away."""

    account: int | None
    """The account of the service's host that is this user over the local socket."""
    enabled: bool | None
    """Whether they may come in at all. Whatever they have running is cancelled where they may not."""
    password: Secret | None
    """The new password."""
    role: Role | None
    """What they may do."""


@dataclass(frozen=True)
class ActedTask:
    """What became of one of many tasks."""

    id: str
    """The task."""
    owner: str
    """Whoever submitted it."""
    state: TaskState
    """Where it stands now."""
    label: str | None = None
    """What its owner calls it."""
    why: Problem | None = None
    """Why it was not done; none: it was."""


@dataclass(frozen=True)
class AuditLine:
    """Something that somebody did, or was refused."""

    action: str
    """The method and the route."""
    id: int
    """Grows by each line."""
    status: int
    """The status of the answer: below 400, it was done."""
    time: datetime
    """When."""
    user: str
    """Who: the user's name; of a login that was refused, the name that was tried; empty: nobody is known."""
    via: str
    """By what they were known: `socket`, `token`, `session`; empty: by nothing."""
    from_: str | None = None
    """The address that it came from; none: a process of the service's host, by the socket."""
    object: str | None = None
    """What it was about: an identifier or a name."""
    token: str | None = None
    """The token or the session."""


@dataclass(frozen=True)
class BenchFailure:
    """Why something was not measured."""

    kind: BenchKind
    """What was to be measured."""
    why: str
    """Why it was not."""
    hint: str | None = None
    """What to try."""


@dataclass(frozen=True)
class BenchResult:
    """What was measured."""

    elapsed_seconds: float
    """How long it took."""
    kind: BenchKind
    """What."""
    notes: list[str]
    """Doubts about all rows."""
    program: str
    """The version of the program that measured."""
    rows: list[BenchRow]
    """The numbers, as `carrack bench --json` prints them."""
    time: datetime
    """When it ended."""
    verdict: str | None = None
    """Of a ladder: where the most is lost."""


@dataclass(frozen=True)
class BenchRow:
    """One thing measured under one set of conditions."""

    conditions: dict[str, str]
    """Under which conditions, such as `record_bytes` and `depth`."""
    labels: list[str]
    """How far the row may be trusted: docs/measure.md has the meaning of each word."""
    name: str
    """What was done: `write`, `blake3`, `disk->null`."""
    values: dict[str, float]
    """Numbers; each name ends with its unit."""
    error: str | None = None
    """Why it has no numbers, or only a part of them."""


@dataclass(frozen=True)
class BenchStatus:
    """How far measuring is, and the results that are kept."""

    endpoint: str
    """The endpoint."""
    failures: list[BenchFailure]
    """What failed in the last run."""
    results: list[BenchResult]
    """The last result of each kind, kept until the endpoint is removed or is somewhere else."""
    state: BenchState
    """How far the last run is."""
    measuring: BenchKind | None = None
    """What is measured now."""
    started: datetime | None = None
    """When the last run began."""


@dataclass(frozen=True)
class Blocked:
    """Why a task waits, and what follows."""

    cause: BlockedCause
    """What kind of reason."""
    since: datetime
    """Since when."""
    why: str
    """In words."""
    hint: str | None = None
    """What somebody can do about it."""
    next_try: datetime | None = None
    """When the service tries next, where a time is set."""


@dataclass(frozen=True)
class CheckTally:
    """What a check has found."""

    bytes: int = 0
    """Bytes of the source's files that both sides have."""
    different: int = 0
    """Items that differ."""
    only_destination: int = 0
    """Items that only the destination has."""
    only_source: int = 0
    """Items that only the source has."""
    same: int = 0
    """Items that are the same at both sides."""
    timeless: int = 0
    """Files whose times were to be compared, and of which one side has none."""
    unlinked: int = 0
    """Names of which it was not compared whether they are of one file: too many files have several names."""
    untold: int = 0
    """Items with an ACL or extended attributes that were to be compared, and that are too long or could not be read."""


@dataclass(frozen=True)
class Endpoint:
    """A named root. Its node's token is kept apart, sealed, and no document has it."""

    added: datetime
    """When it was added."""
    defaults: EndpointDefaults
    """What its tasks do where they do not say it."""
    description: str
    """Free text."""
    has_token: bool
    """Whether a token is kept for it."""
    limits: EndpointLimits
    """What it allows."""
    location: EndpointLocation
    """Where its root is."""
    name: str
    """What it is called: letters, digits, `-`, `_` and `.`; unique."""
    owner: str
    """Whoever added it."""
    read_only: bool
    """Nothing there may be changed."""
    users: list[str]
    """Users who may use it beside its owner; `*` stands for every user."""
    version: int
    """Grows with every change: the entity tag."""
    health: EndpointHealth | None = None
    """How it does. It is no part of what is changed: `version` does not grow with it."""
    ownership: bool = False
    """Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    admin allows it: whoever may write there can make programs that run as others.
    """
    uploads: bool = False
    """Files may be uploaded to it through the service."""


@dataclass(frozen=True)
class EndpointCheck:
    """One thing that a test of an endpoint has looked at."""

    name: str
    """What was looked at."""
    told: str
    """What was found."""
    fix: str | None = None
    """The line that mends it."""
    ok: bool | None = None
    """Whether it is as it should be; none: it could not be looked at, or the endpoint can be used all the same."""


@dataclass(frozen=True)
class EndpointFault:
    """Something that failed at an endpoint, by the endpoint's own side."""

    code: str
    """What kind, from the table of error codes; `test` where a test has found it."""
    time: datetime
    """When."""
    unreached: bool
    """Whether it was not reached, or let nobody in."""
    task: str | None = None
    """The task that it happened to; none: a test has found it, or the caller may not see the task."""
    why: str | None = None
    """In words; none: it happened to a task that the caller may not see."""


@dataclass(frozen=True)
class EndpointHealth:
    """How an endpoint does."""

    open_tasks: int
    """Tasks that use it and have not ended: the caller's; of all, for whoever sees figures of all."""
    state: HealthState
    """In a word."""
    last_contact: datetime | None = None
    """When a task or a test last reached it."""
    last_fault: EndpointFault | None = None
    """What last failed there. Failures at the other side of a task, and of files that are not there or not readable,
    are none of the endpoint's.
    """
    last_success: datetime | None = None
    """When a task or a test last succeeded there."""
    last_test: EndpointTested | None = None
    """The last test."""


@dataclass(frozen=True)
class EndpointTest:
    """What a test of an endpoint has found."""

    checks: list[EndpointCheck]
    """What was looked at."""
    ok: bool
    """Whether all is as it should be."""


@dataclass(frozen=True)
class EndpointTested:
    """The last test of an endpoint, in short."""

    ok: bool
    """Whether all was as it should be."""
    time: datetime
    """When."""


@dataclass(frozen=True)
class Estimate:
    """What was expected of a task, and what it took. It is made once, and stays as it was made."""

    bytes: int | None = None
    """Bytes of files' contents to move, by which it was made. None: they were not counted."""
    earliest_start: datetime | None = None
    """When the task begins at the earliest. None: that cannot be told."""
    items: int | None = None
    """Files, links and directories to move, by which it was made. None: they were not counted."""
    latest_start: datetime | None = None
    """When the task begins at the latest, if no task that comes later goes before it. None: that cannot be told."""
    made: datetime | None = None
    """When it was made: with the submission, or once the task's first worker had counted the sources."""
    seconds_least: int | None = None
    """Seconds from begin to end at least, as a rule. None: that is not known."""
    seconds_most: int | None = None
    """Seconds from begin to end at most, as a rule: three times the least and three, or less. None: that is not known.
    """
    took_seconds: float | None = None
    """Seconds from the task's begin to its end. None: it has not begun, or not ended."""
    why: str = ""
    """From what that is known, or why it is not."""


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    detail: dict[str, Any]
    """Numbers and reasons."""
    id: int
    """Grows by each event; for going on where one stopped (`since`, `Last-Event-ID`)."""
    kind: EventKind
    """What."""
    owner: str
    """Whose."""
    text: str
    """In words, one line."""
    time: datetime
    """When."""
    subject: str | None = None
    """Endpoint, timer or other object concerned."""
    task: str | None = None
    """The task concerned."""


@dataclass(frozen=True)
class FailureFigures:
    """How often something failed for the same cause."""

    code: str
    """What kind, from the table of error codes."""
    count: int
    """How often in all."""
    side: str
    """Where."""
    steps: list[int]
    """How often in each step."""


@dataclass(frozen=True)
class FaultBurst:
    """A place where tasks fail far more often than elsewhere."""

    alike: list[FaultPlace]
    """Other places at which exactly the same tasks were at work: it may as well be one of these."""
    chance: float
    """How likely chance alone names any place so, where all places are alike: at most one in a thousand."""
    codes: list[FaultCode]
    """What failed, the most frequent first."""
    endpoints: list[str]
    """Endpoints by which tasks came there."""
    examples: list[str]
    """Some of the tasks with a fault there, the latest first."""
    faulty: int
    """Of these, tasks with a fault there."""
    faulty_elsewhere: int
    """Of these, tasks with a fault anywhere."""
    from_: datetime
    """The end of the first task with a fault there, within the time that stands out."""
    place: FaultPlace
    """The place."""
    tasks: int
    """Tasks that were at work there, within the time that stands out."""
    tasks_elsewhere: int
    """Tasks of that time that were not at work there."""
    to: datetime
    """The end of the last one."""


@dataclass(frozen=True)
class FaultCode:
    """How many tasks failed so."""

    code: str
    """What kind, from the table of error codes."""
    tasks: int
    """Tasks in which it came, once or often."""


@dataclass(frozen=True)
class FaultFigures:
    """How often tasks failed at a place."""

    faulty: int
    """Of these, tasks with a fault there."""
    place: FaultPlace
    """The place."""
    tasks: int
    """Tasks that were at work there."""


@dataclass(frozen=True)
class FaultPlace:
    """A place that faults are counted by. Users who are no admins know hosts by their endpoints: `@lab`, paths below
    it.
    """

    host: str
    """The host; `this host` is the service's own."""
    kind: PlaceKind
    """What it is."""
    disk: str | None = None
    """The number by which the file system of a `disk` is known, as the host tells it: 32 hexadecimal digits."""
    path: str | None = None
    """The directory of a `path`; of a `disk`, the directory that is common to all that tasks did there. Bytes that are
    no text, and `%` itself, as `%HH`.
    """
    peer: str | None = None
    """The other host of a `link`."""


@dataclass(frozen=True)
class FaultStatistics:
    """Faults of tasks by the places at which they came."""

    bursts: list[FaultBurst]
    """Places where tasks fail far more often than elsewhere, the clearest first."""
    codes: list[FaultCode]
    """What failed, the most frequent first."""
    comparisons: int
    """How many times a place was compared with the rest: the more, the rarer must be what is named."""
    complete: bool
    """Whether all tasks of that time were counted, at all of their places; of more than 100000 tasks, or of more than
    memory is kept for, only the latest are.
    """
    faulty: int
    """Of these, tasks with a fault anywhere. A fault is what failed at a place, repaired or not; that something is not
    there, or not allowed, is none.
    """
    from_: datetime
    """Tasks count whose last attempt ended at this moment or later."""
    places: list[FaultFigures]
    """Places with faults, whether they stand out or not: the most tasks with faults first, 50 at most."""
    tasks: int
    """Tasks that were counted."""
    to: datetime
    """and before this one."""


@dataclass(frozen=True)
class FileEntry:
    """An entry of a directory."""

    kind: FileKind
    """What it is."""
    mode: int
    """Permission bits."""
    name: str
    """Its name."""
    size: int
    """Size in bytes."""
    error: str | None = None
    """Why nothing more than the name is known."""
    link_target: str | None = None
    """Of a symbolic link, where it leads."""
    modified: datetime | None = None
    """When its content was last modified; none where the host tells a time beyond any clock."""


@dataclass(frozen=True)
class FileFailure:
    """Why something could not be done with files."""

    code: str
    """What kind, from the table of error codes."""
    message: str
    """In words."""
    hints: list[str] = field(default_factory=list)
    """What to try."""


@dataclass(frozen=True)
class FileListing:
    """A listing: one look at a directory, kept until nobody asks for it any more."""

    count: int
    """Entries so far."""
    state: ListingState
    """Whether all was read."""
    endpoint: str
    """The endpoint."""
    id: str
    """Its identifier."""
    path: str
    """The directory, below the endpoint's root."""
    failure: FileFailure | None = None
    """Why it could not be read to its end."""


@dataclass(frozen=True)
class FileProperties:
    """What a path is."""

    kind: FileKind
    """What it is."""
    mode: int
    """Permission bits."""
    name: str
    """Its name."""
    size: int
    """Size in bytes."""
    path: str
    """The path, below the endpoint's root."""
    error: str | None = None
    """Why nothing more than the name is known."""
    link_target: str | None = None
    """Of a symbolic link, where it leads."""
    modified: datetime | None = None
    """When its content was last modified; none where the host tells a time beyond any clock."""


@dataclass(frozen=True)
class FileWindow:
    """Some entries of a listing, sorted and filtered."""

    bytes: int
    """Bytes of the files among those."""
    count: int
    """Entries of the directory so far."""
    entries: list[FileEntry]
    """The entries."""
    offset: int
    """Which of them is the first of `entries`."""
    state: ListingState
    """Whether all was read. Until then a window shows what is there, and may lag a little behind `count`."""
    total: int
    """Entries that the filter takes."""
    failure: FileFailure | None = None
    """Why the directory could not be read to its end."""
    found: int | None = None
    """Where the name of `around` is among all that the filter takes; null: it is not there. Only where `around` was
    given.
    """


@dataclass(frozen=True)
class InFlight:
    """A file that has begun to arrive and has no name yet. Small files, which travel many at once, are never shown."""

    bytes: int
    """Bytes at the destination."""
    pair: int
    """The pair of the task that it is of, from 0."""
    path: str
    """Relative to the destination. Bytes that are no UTF-8 are written `\\xHH`, a backslash `\\\\`."""
    size: int | None = None
    """Bytes of content; none: the source has no size, or still grows."""


@dataclass(frozen=True)
class KeptTest:
    """What a test of an endpoint has found, and when."""

    endpoint: str
    """The endpoint."""
    test: EndpointTest
    """What."""
    time: datetime
    """When."""


@dataclass(frozen=True)
class ListingStatus:
    """How far a listing is."""

    count: int
    """Entries so far."""
    state: ListingState
    """Whether all was read."""
    failure: FileFailure | None = None
    """Why it could not be read to its end."""


@dataclass(frozen=True)
class Login:
    """A login that worked."""

    expires: datetime
    """When the session ends."""
    role: Role
    """What they may do."""
    user: str
    """The user's name."""
    csrf: str | None = None
    """The value of the header `X-Carrack-Csrf` that changes need beside the cookie."""
    token: str | None = None
    """The session's token, where it is not in a cookie."""


@dataclass(frozen=True)
class LoginLink:
    """A way in that works once, within a few minutes."""

    expires: datetime
    """When it ends."""
    link: str
    """The service's address with the secret behind its `#`, so that no server's log has it. `carrack login --link`
    takes it.
    """
    user: str
    """Whom it logs in."""


@dataclass(frozen=True)
class MadeGrant:
    """What lets somebody do it: a place, and a token for it that allows nothing else. This is the only time that it is
    shown. Whoever shows the node a later one that says the same keeps sessions with the earlier one going.
    """

    at_service: bool
    """The node is on the service's own host: whoever reached the service under another name reaches it under that one.
    """
    expires: datetime
    """When it ends."""
    location: str
    """The path at its node, `carrack://host:port/path#sha256:…`; or `ssh://user@host/path`."""
    token: str | None = None
    """What to show the node as its token; none for a host behind ssh."""


@dataclass(frozen=True)
class MadeToken:
    """A token that was made. This is the only time that it is shown."""

    row: TokenRow
    """What the service keeps of it."""
    token: str
    """What to show as `Authorization: Bearer …`."""


@dataclass(frozen=True)
class NodeStatus:
    """What is known of a node."""

    name: str
    """What it is called."""
    program: str
    """The version of its program."""
    rate: float
    """Bytes a second that they move."""
    running: int
    """Tasks that are carried out."""
    storage: list[StorageStatus]
    """File systems of the endpoints that are its directories."""
    tests: list[KeptTest]
    """The last test of each endpoint, as far as there was one."""
    address: str | None = None
    """Where it listens; none: it asks for no token, or there is no node beside the service."""
    fingerprint: str | None = None
    """SHA-256 of its public key, in hexadecimal."""


@dataclass(frozen=True)
class OptionChoice:
    """One word that an option takes."""

    meaning: str
    """What it means."""
    value: str
    """The word."""
    flag: str | None = None
    """The command line's flag for it, without dashes, where the word has a flag of its own."""


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together."""

    options: list[TaskOption]
    """The options, in the order of a form."""
    title: str
    """What people call them."""


@dataclass(frozen=True)
class Overview:
    """What happened over a time, in steps of equal length."""

    ended: list[StateCount]
    """Tasks that ended in this time, by state."""
    failures: list[FailureFigures]
    """Failures of attempts and tasks by their cause, the most frequent first."""
    from_: datetime
    """When the first step begins."""
    moved: list[int]
    """Bytes that came to their destinations, by step."""
    pairs: list[PairFigures]
    """Pairs of places between which something was moved or ended, the most bytes first. A task with several pairs
    counts for its first one.
    """
    rate: float
    """Bytes a second of the tasks that are active at present."""
    running: list[int]
    """Tasks that ran at the end of each step: active, or being cancelled."""
    slowest: list[Task]
    """Tasks that moved slowly, the slowest first."""
    states: list[StateCount]
    """Tasks at present, by state."""
    step_seconds: int
    """Seconds of each step."""
    stuck: list[Task]
    """Tasks that do not get on, the oldest first."""
    to: datetime
    """When the last step ends; now, where it is under way."""
    waiting: list[int]
    """Tasks that waited at the end of each step: queued, staged or paused."""


@dataclass(frozen=True)
class PairFigures:
    """What became of tasks between two places."""

    bytes: int
    """Bytes that came to the destination."""
    cancelled: int
    """Tasks that ended CANCELLED."""
    destination: str
    """The same of the destination; empty for tasks that delete."""
    failed: int
    """Tasks that ended FAILED."""
    partial: int
    """Tasks that ended PARTIAL."""
    source: str
    """The endpoint, as `@NAME`, or what stands for it."""
    succeeded: int
    """Tasks that ended SUCCEEDED."""
    rate: float | None = None
    """Bytes a second while workers moved them; none: nothing was moved."""
    success: float | None = None
    """Of the tasks that ended and were not cancelled, the part that succeeded, 0 to 1; none: there are none."""


@dataclass(frozen=True)
class PathResult:
    """What was measured of a path, from memory to memory: no file is read or written."""

    back: PathWay
    """From `to` to `from`."""
    elapsed_seconds: float
    """How long it took."""
    notes: list[str]
    """What a reader should know."""
    program: str
    """The version of the program that measured."""
    there: PathWay
    """From `from` to `to`."""
    time: datetime
    """When it ended."""
    rate_limit: int | None = None
    """Bytes a second that the limits of the endpoints allow a transfer, and so this one; none: not limited."""


@dataclass(frozen=True)
class PathStatus:
    """How far measuring the path between two endpoints is, and the last result that is kept."""

    from_: str
    """The endpoint where bytes that go there come from."""
    state: BenchState
    """How far the last run is."""
    to: str
    """The endpoint where bytes that come back come from."""
    failure: TaskFailure | None = None
    """Why the last run has no result, or only a part of one."""
    result: PathResult | None = None
    """The last result, kept until one of the endpoints is removed or is somewhere else."""
    started: datetime | None = None
    """When the last run began."""


@dataclass(frozen=True)
class PathWay:
    """One direction of a path. A number that is not known is null."""

    bytes_per_second: float | None = None
    """The rate, encrypted and verified as a copy is, as the receiver has counted it."""
    error: str | None = None
    """Why there are no numbers, or only those of a part of the time."""
    hops: int | None = None
    """Steps that are known of the way: routers, and the host at its end."""
    labels: list[str] = field(default_factory=list)
    """How far the numbers may be trusted: docs/measure.md has the meaning of each word."""
    packet_bytes: int | None = None
    """The largest packet that gets there whole, in bytes."""
    resent_share: float | None = None
    """Their share of all segments, from 0 to 1."""
    retransmits: int | None = None
    """Segments that the sender has sent again."""
    round_trip_longest_us: float | None = None
    """The longest mean round trip meanwhile, in microseconds: what queues on the way add."""
    round_trip_us: float | None = None
    """The shortest round trip that TCP has seen, in microseconds."""
    streams: int | None = None
    """Data connections, as many as a copy chooses."""


@dataclass(frozen=True)
class Planned:
    """Files and links, or items, of a plan."""

    bytes: int = 0
    """Bytes of the files among them."""
    items: int = 0
    """How many."""


@dataclass(frozen=True)
class Problem:
    """A problem document: `application/problem+json`."""

    code: ProblemCode
    """What kind of problem it is, for programs."""
    detail: str
    """What is wrong with this request, in words."""
    status: int
    """The status of HTTP."""
    title: str
    """The status in words."""
    type: str
    """`about:blank`: the code says what kind it is."""
    hints: list[str] = field(default_factory=list)
    """What to try."""


@dataclass(frozen=True)
class Progress:
    """What a task has done. Bytes are of files' contents."""

    bytes_deleted: int = 0
    """Bytes of `items_deleted`."""
    bytes_lost: int = 0
    """Bytes of `items_lost`."""
    bytes_moved: int = 0
    """Bytes at the destination."""
    bytes_resent: int = 0
    """Bytes that had landed and were sent again. What was under way when a process died is not known to anybody."""
    bytes_skipped: int = 0
    """Bytes that were there already and not sent."""
    bytes_total: int = 0
    """Bytes found so far."""
    bytes_verified: int = 0
    """Of these, bytes whose digest was compared."""
    check: CheckTally | None = None
    """Of a check, what was found so far. What is compared counts as done."""
    eta_seconds: int | None = None
    """Seconds until the end, where it can be told."""
    faults: int = 0
    """Faults that were recovered: blocks sent again, connections and sessions lost."""
    items_deleted: int = 0
    """Items that were deleted at the destination, which alone had them."""
    items_done: int = 0
    """At their destination (or deleted), verified as asked."""
    items_failed: int = 0
    """Not there, of the attempt under way or the last one."""
    items_lost: int = 0
    """Items that were done and were found gone or changed later: they are copied again, and counted again by a token's
    ceilings. Of a deletion under such ceilings: what an attempt that was cut short may have deleted.
    """
    items_remembered: int = 0
    """Of `items_done`, those that an earlier attempt did and that could not be compared with what is there now."""
    items_skipped: int = 0
    """Left as they were: they existed, or a missing source was to be skipped."""
    items_total: int = 0
    """Files, links and directories found so far; final once `scan_complete`."""
    limited_by: str | None = None
    """What holds it back, in words."""
    plan: TaskPlan | None = None
    """Of a preview, what the task would do; of another task, what it would delete and did not."""
    rates: Rates = field(default_factory=lambda: Rates())
    """Bytes a second."""
    scan_complete: bool = False
    """Whether `items_total` and `bytes_total` are final."""
    source_file_system: str | None = None
    """By which the file system is known that the source stands on, where a timer's run deletes."""
    unkept: dict[str, int] = field(default_factory=dict)
    """How many items at the destination did not keep something that their sources have, by what it is: `permissions`,
    `times`, `owner`, `group`, `special-bits`, `hard-link`, `acl`, `capabilities`, `extended-attributes`, `symbolic-
    link`, `directory`, or the number of another kind. Of copies that came to their end; an item that was copied
    again counts again.
    """


@dataclass(frozen=True)
class Rates:
    """Rates in bytes a second."""

    all: float = 0.0
    """Over all time in which a worker moved bytes."""
    five_minutes: float = 0.0
    """Over the last five minutes."""
    now: float = 0.0
    """Over the last seconds."""


@dataclass(frozen=True)
class ReceiptSigner:
    """The key with which a service signs receipts."""

    fingerprint: str
    """As `ssh-keygen -l` shows it."""
    key: str
    """As OpenSSH writes public keys."""


@dataclass(frozen=True)
class StateCount:
    """How many tasks are in a state."""

    state: TaskState
    """The state."""
    tasks: int
    """So many."""


@dataclass(frozen=True)
class StorageStatus:
    """How much a file system holds."""

    endpoint: str
    """The endpoint."""
    root: str
    """Its directory."""
    bytes_free: int | None = None
    """Bytes that are free for the service's account."""
    bytes_total: int | None = None
    """Bytes in all."""
    failure: str | None = None
    """Why nothing is known."""
    files_free: int | None = None
    """Files that can still be made."""
    files_total: int | None = None
    """Files in all."""


@dataclass(frozen=True)
class Task:
    """A task as the service knows it."""

    cancel_wanted: bool
    """Whether somebody has asked for its end."""
    fence: int
    """Attempts begun so far; the number of the attempt that may write."""
    futile_attempts: int
    """Attempts in a row that got nowhere."""
    id: str
    """Identifier."""
    owner: str
    """Whoever submitted it: the user's name."""
    pause_wanted: bool
    """Whether somebody has asked for it to wait. An ACTIVE task's worker is ended first."""
    progress: Progress
    """What it has done."""
    request: NewTask
    """As it was submitted."""
    state: TaskState
    """Where it stands."""
    submitted: datetime
    """When it was submitted."""
    version: int
    """Grows with every change: the entity tag."""
    blocked: Blocked | None = None
    """Why it waits, where it is QUEUED, or PAUSED by a guard."""
    ended: datetime | None = None
    """When it ended."""
    estimate: Estimate | None = None
    """What was expected of it, beside what it took. None: nothing was told so far."""
    expected_start: datetime | None = None
    """When it is expected to begin, where it is QUEUED and that can be told."""
    failure: TaskFailure | None = None
    """Why it ended as it did, where it did not succeed."""
    in_flight: list[InFlight] = field(default_factory=list)
    """The files in flight while a worker copies, at most 8: each stays at its place until it ends. Of one task alone:
    lists do not have it.
    """
    position: int | None = None
    """Place in the queue, from 1, where it is QUEUED."""
    started: datetime | None = None
    """When its first worker began."""


@dataclass(frozen=True)
class TaskActed:
    """What became of many tasks."""

    done: int
    """To so many of them it was done."""
    items: list[ActedTask]
    """Each of them."""
    tasks: int
    """So many are meant, of this page."""
    next: str | None = None
    """Where the next page begins: the value of `cursor` that goes on. None: this page is the last."""


@dataclass(frozen=True)
class TaskCount:
    """How many tasks something was done to."""

    tasks: int
    """So many."""


@dataclass(frozen=True)
class TaskFailure:
    """Why a task, or an attempt of it, failed: a [`carrack_core::failure::Failure`] as JSON has it."""

    code: str
    """What kind, from the table of error codes; `differences` where a check is done and has found some."""
    retryable: Literal["yes", "no"]
    side: str
    """Where: `source`, `destination`, `command` …."""
    why: str
    """In words."""
    endpoint: str | None = None
    """The endpoint where it happened; none: it happened at none, or elsewhere."""
    hints: list[str] = field(default_factory=list)
    """What to try."""


@dataclass(frozen=True)
class TaskInFlight:
    """The files in flight of a task."""

    files: list[InFlight]
    """The files: eight at most. An older program at the source tells of none."""


@dataclass(frozen=True)
class TaskItem:
    """What became of one item of a task."""

    kind: str
    """`file`, `directory`, `symlink` or `special`."""
    pair: int
    """The pair of the task that it is of, from 0."""
    path: str
    """Relative to the destination (to the source, where a task deletes). All of a pair's source, such as one that is
    missing, has that source's whole path. Bytes that are no UTF-8 are written `\\xHH`, a backslash `\\\\`.
    """
    size: int
    """Bytes of content."""
    state: ItemState
    """What became of it."""
    differs: list[str] = field(default_factory=list)
    """Of an item that a check has found to be different, in what: `type`, `size`, `time`, `content`, `target` (where a
    link leads), `device`, `mode`, `owner`, `group`, `acl`, `xattrs`.
    """
    digest: str | None = None
    """BLAKE3 of the file, in hexadecimal, as the receiver computed it."""
    failure: TaskFailure | None = None
    """Why it failed or was skipped."""


@dataclass(frozen=True)
class TaskLeftover:
    """An unfinished file."""

    bytes: int
    """Bytes that it takes."""
    destination: str
    """The destination, as the task was submitted with it."""
    path: str
    """The path below the endpoint's root that it would get, or of the file that was removed; of a destination at no
    endpoint, below that destination. What is no UTF-8, control characters and `%` stand as `%HH`.
    """


@dataclass(frozen=True)
class TaskLeftovers:
    """Unfinished files of a task, which a retry goes on from; or those that were removed."""

    bytes: int
    """Bytes that they take."""
    files: int
    """How many files they are."""
    items: list[TaskLeftover]
    """The first thousand of them."""
    unknown: list[UnknownLeftovers]
    """Destinations that could not be looked at."""


@dataclass(frozen=True)
class TaskOption:
    """One option of a task."""

    at: OptionPlace
    """Which document has the field."""
    help: str
    """What it does."""
    kind: OptionKind
    """What values it takes."""
    label: str
    """What people call it."""
    name: str
    """The name of its field."""
    choices: list[OptionChoice] = field(default_factory=list)
    """The words that a choice takes."""
    default: OptionDefault | None = None
    """Its value where it is left out; none: the service, the endpoint or the path decides."""
    examples: list[str] = field(default_factory=list)
    """Values that it takes, where words or bounds do not tell them."""
    flag: str | None = None
    """The command line's flag for it, without dashes; none: each of its words has a flag, or is the default."""
    kinds: list[TaskKind] = field(default_factory=list)
    """Kinds of tasks that it means something for; empty: all of them."""
    maximum: int | None = None
    """The greatest value; of a text, its characters."""
    minimum: int | None = None
    """The least value."""


@dataclass(frozen=True)
class TaskOptionTable:
    """All options of a task."""

    groups: list[OptionGroup]
    """The groups, in the order of a form."""


@dataclass(frozen=True)
class TaskPlan:
    """What a task would do, as far as it has not been done. Of a task that is no preview, only what it would delete and
    did not.
    """

    changed: Planned = field(default_factory=lambda: Planned())
    """Those that it has otherwise: they would be replaced."""
    held_by: str | None = None
    """What keeps them from being deleted, in words. None: nothing would."""
    left: Planned = field(default_factory=lambda: Planned())
    """Those that would be left as they are: they exist, are newer, or are not to be made."""
    new: Planned = field(default_factory=lambda: Planned())
    """Files and links that the destination does not have: they would be copied."""
    same: Planned = field(default_factory=lambda: Planned())
    """Those that are the same, as far as is compared: they would not be sent."""
    to_delete: Planned = field(default_factory=lambda: Planned())
    """Files, links and directories that only the destination has, and that would be deleted."""


@dataclass(frozen=True)
class Timer:
    """A timer as the service knows it."""

    id: str
    """Identifier."""
    made: datetime
    """When it was made."""
    owner: str
    """The user whose tasks it submits."""
    runs: int
    """Runs so far; the number of a run is part of the submission id of its task, so none comes twice."""
    schedule: TimerSchedule
    """When it runs."""
    state: TimerState
    """Where it stands."""
    task: NewTask
    """What it submits."""
    version: int
    """Grows with every change: the entity tag."""
    label: str | None = None
    """What its owner calls it."""
    last_task: str | None = None
    """The task of the last run."""
    next_run: datetime | None = None
    """When it is due next."""


@dataclass(frozen=True)
class TokenRow:
    """A token as the ledger knows it: never the secret, only its SHA-256."""

    id: str
    """Identifier; part of the token, not secret."""
    is_session: bool
    """Whether it is of a login, and so in a cookie or kept by `carrack login`."""
    label: str
    """What it is for, in its owner's words."""
    made: datetime
    """When it was made."""
    user: str
    """The user it acts for."""
    expires: datetime | None = None
    """When it ends."""
    scope: Scope | None = None
    """What it allows; none: all that its user may do."""
    used: datetime | None = None
    """When it was last shown, to the minute."""


@dataclass(frozen=True)
class UnknownLeftovers:
    """A destination that could not be looked at."""

    destination: str
    """As the task was submitted with it."""
    why: str
    """Why, in words."""


@dataclass(frozen=True)
class Upload:
    """An upload, and how far it is."""

    block_bytes: int
    """Bytes of each block but the last."""
    endpoint: str
    """The endpoint."""
    id: str
    """What it is called. It comes from the user, the endpoint, the path, the size and the digests."""
    missing: list[list[int]]
    """The blocks that are not there yet: the first and the last of each run of them."""
    path: str
    """The file's path, below the endpoint's root."""
    size: int
    """Bytes of the file."""
    state: UploadState
    """How far it is."""
    failure: FileFailure | None = None
    """Why it has failed."""


@dataclass(frozen=True)
class User:
    """Somebody who may use the service."""

    added: datetime
    """When they were added."""
    enabled: bool
    """Whether they may come in at all."""
    name: str
    """Unique; letters, digits, `-`, `_`, `.` and `@`."""
    role: Role
    """What they may do."""
    account: int | None = None
    """The account of the service's host that is this user over the local socket."""


@dataclass(frozen=True)
class Whoami:
    """Who the caller is."""

    role: Role
    """What they may do."""
    service: str
    """The service's version."""
    user: str
    """The user's name."""
    via: KnownBy
    """By what they are known."""
    csrf: str | None = None
    """The value of the header `X-Carrack-Csrf` that changes need beside the cookie."""
    expires: datetime | None = None
    """When token or session ends."""
    scope: Scope | None = None
    """What the token allows; none: all that the user may do."""
    token: str | None = None
    """The token or the session, as `GET /tokens` lists it; none: it is the local socket."""
