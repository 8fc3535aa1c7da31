-- The ledger. Times are microseconds since 1970, UTC. Documents are JSON; what is filtered or sorted is a column of its
-- own. Rows with a `seq` are listed by it: it grows with each row, whatever the clock does.

CREATE TABLE task (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    submission_id TEXT,
    -- As it was submitted; never changed.
    request TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Of the request too, but these may change.
    label TEXT,
    label_folded TEXT,
    deadline INTEGER,
    priority INTEGER,
    timer TEXT,
    state TEXT NOT NULL,
    pause_wanted INTEGER NOT NULL,
    cancel_wanted INTEGER NOT NULL,
    blocked TEXT,
    fence INTEGER NOT NULL CHECK (fence >= 0),
    futile_attempts INTEGER NOT NULL,
    progress TEXT NOT NULL,
    failure TEXT,
    submitted INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    version INTEGER NOT NULL,
    -- What was expected of it, beside what it took: a document. NULL: nothing was told.
    estimate TEXT,
    CHECK ((ended IS NOT NULL) = (state IN ('SUCCEEDED', 'PARTIAL', 'FAILED', 'CANCELLED')))
) STRICT;

CREATE UNIQUE INDEX task_submission ON task (owner, submission_id) WHERE submission_id IS NOT NULL;
CREATE INDEX task_owner ON task (owner);
CREATE INDEX task_owner_state ON task (owner, state);
CREATE INDEX task_open ON task (seq) WHERE ended IS NULL;
CREATE INDEX task_ended ON task (ended) WHERE ended IS NOT NULL;
CREATE INDEX task_timer ON task (timer) WHERE timer IS NOT NULL;

CREATE TABLE task_endpoint (
    endpoint TEXT NOT NULL,
    task INTEGER NOT NULL REFERENCES task (seq) ON DELETE CASCADE,
    PRIMARY KEY (endpoint, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX task_endpoint_task ON task_endpoint (task);

-- No key to `task`: the number of an event is never given twice, and events may be of tasks that are gone.
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    task TEXT,
    subject TEXT,
    text TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE INDEX event_task ON event (task) WHERE task IS NOT NULL;
CREATE INDEX event_owner ON event (owner);
CREATE INDEX event_time ON event (time);

CREATE TABLE endpoint (
    name TEXT PRIMARY KEY,
    document TEXT NOT NULL,
    sealed_token BLOB,
    version INTEGER NOT NULL
) STRICT;

CREATE TABLE user (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    account INTEGER UNIQUE,
    enabled INTEGER NOT NULL,
    added INTEGER NOT NULL,
    password TEXT
) STRICT;

CREATE TABLE token (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL REFERENCES user (name) ON DELETE CASCADE,
    label TEXT NOT NULL,
    scope TEXT,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    made INTEGER NOT NULL,
    expires INTEGER,
    used INTEGER,
    is_session INTEGER NOT NULL
) STRICT;

CREATE INDEX token_user ON token (user);

CREATE TABLE timer (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    label TEXT,
    schedule TEXT NOT NULL,
    task TEXT NOT NULL,
    state TEXT NOT NULL,
    next_run INTEGER,
    runs INTEGER NOT NULL,
    last_task TEXT,
    made INTEGER NOT NULL,
    version INTEGER NOT NULL
) STRICT;

CREATE INDEX timer_owner ON timer (owner);
CREATE INDEX timer_due ON timer (next_run) WHERE state = 'waiting';

CREATE TABLE timer_endpoint (
    endpoint TEXT NOT NULL,
    timer INTEGER NOT NULL REFERENCES timer (seq) ON DELETE CASCADE,
    PRIMARY KEY (endpoint, timer)
) STRICT, WITHOUT ROWID;

CREATE INDEX timer_endpoint_timer ON timer_endpoint (timer);

-- One row: what a probe writes.
CREATE TABLE probe (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    count INTEGER NOT NULL
) STRICT;

INSERT INTO probe (one, count) VALUES (1, 0);

-- One row in a backup, none in a ledger: when it was made, and by which program.
CREATE TABLE backup (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    made INTEGER NOT NULL,
    program TEXT NOT NULL
) STRICT;

-- Grants that are not taken any more, by the number that all grants of a token, or of a user, have. A row goes once the
-- last of its grants has expired.

CREATE TABLE revoked (
    grant_id BLOB PRIMARY KEY CHECK (length(grant_id) = 16),
    until INTEGER NOT NULL
) STRICT;

-- What tasks have moved and how they ended, by the minute in which it was written. A row is made when something is
-- counted, and goes with the events of its time.

CREATE TABLE tally (
    minute INTEGER NOT NULL,
    owner TEXT NOT NULL,
    source TEXT NOT NULL,
    destination TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    -- Microseconds in which workers moved them.
    busy INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    partial INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (minute, owner, source, destination)
) STRICT, WITHOUT ROWID;

CREATE TABLE tally_failure (
    minute INTEGER NOT NULL,
    owner TEXT NOT NULL,
    code TEXT NOT NULL,
    side TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (minute, owner, code, side)
) STRICT, WITHOUT ROWID;

-- By how much the tasks that wait and those that run became more or fewer, by the minute in which it was written: with
-- how many there are at present, it tells how many there were.

CREATE TABLE tally_queue (
    minute INTEGER NOT NULL,
    owner TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    running INTEGER NOT NULL,
    PRIMARY KEY (minute, owner)
) STRICT, WITHOUT ROWID;

-- What people did and what they were refused, as the API has answered it.

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    user TEXT NOT NULL,
    via TEXT NOT NULL,
    token TEXT,
    origin TEXT,
    action TEXT NOT NULL,
    object TEXT,
    status INTEGER NOT NULL
) STRICT;

CREATE INDEX audit_time ON audit (time);

-- Lines of refused strangers have a part of the audit of their own: each part is counted along its index.
CREATE INDEX audit_strangers ON audit (id) WHERE via = '' AND status >= 400;

CREATE INDEX audit_others ON audit (id) WHERE NOT (via = '' AND status >= 400);

-- What was met of each endpoint: when it was last reached, when something last succeeded there, what last failed there,
-- and what its last test has found.

CREATE TABLE endpoint_health (
    endpoint TEXT PRIMARY KEY,
    contact INTEGER,
    success INTEGER,
    fault_time INTEGER,
    fault_unreached INTEGER,
    fault_code TEXT,
    fault_why TEXT,
    fault_task TEXT,
    fault_owner TEXT,
    test_time INTEGER,
    test TEXT
) STRICT, WITHOUT ROWID;

-- Where a task was at work and what failed there, by its last attempt that told of any: a document. It goes with its task.
CREATE TABLE visit (
    task INTEGER PRIMARY KEY REFERENCES task (seq) ON DELETE CASCADE,
    time INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE INDEX visit_time ON visit (time);

-- What has been done by tokens with ceilings: tasks that are forgotten, and files, leave no other trace of it.
CREATE TABLE token_use (
    token TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    deletions INTEGER NOT NULL
) STRICT;
