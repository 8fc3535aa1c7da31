-- What has been done by tokens with ceilings: tasks that are forgotten, and files, leave no other trace of it.
CREATE TABLE token_use (
    token TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    deletions INTEGER NOT NULL
) STRICT;
