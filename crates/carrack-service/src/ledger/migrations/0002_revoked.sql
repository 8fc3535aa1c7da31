-- Grants that are not taken any more, by the number that all grants of a token, or of a user, have. A row goes once the
-- last of its grants has expired.

CREATE TABLE revoked (
    grant_id BLOB PRIMARY KEY CHECK (length(grant_id) = 16),
    until INTEGER NOT NULL
) STRICT;
