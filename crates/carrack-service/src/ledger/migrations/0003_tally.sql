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
