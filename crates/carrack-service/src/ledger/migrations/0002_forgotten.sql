-- Tasks that are gone, and whose directories may still be there: a service may be killed between the two.
CREATE TABLE forgotten (
    task TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
