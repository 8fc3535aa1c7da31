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
