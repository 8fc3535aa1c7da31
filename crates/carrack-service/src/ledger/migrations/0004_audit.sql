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
