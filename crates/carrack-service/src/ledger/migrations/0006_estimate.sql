-- What was expected of a task, beside what it took: a document. NULL: nothing was told.

ALTER TABLE task ADD COLUMN estimate TEXT;
