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
