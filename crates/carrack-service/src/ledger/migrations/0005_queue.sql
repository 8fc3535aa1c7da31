-- By how much the tasks that wait and those that run became more or fewer, by the minute in which it was written: with
-- how many there are at present, it tells how many there were.

CREATE TABLE tally_queue (
    minute INTEGER NOT NULL,
    owner TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    running INTEGER NOT NULL,
    PRIMARY KEY (minute, owner)
) STRICT, WITHOUT ROWID;

-- Of the time before this step only each task's own moments are known: not when it was paused, or waited once more.
INSERT INTO tally_queue
SELECT moment / 60000000 * 60000000 AS minute, owner, sum(waiting), sum(running)
FROM (
    SELECT submitted AS moment, owner, 1 AS waiting, 0 AS running FROM task
    UNION ALL
    SELECT coalesce(started, ended, submitted), owner, -1, started IS NOT NULL OR ended IS NULL FROM task
    WHERE ended IS NOT NULL OR state IN ('ACTIVE', 'CANCELLING')
    UNION ALL
    SELECT ended, owner, 0, -1 FROM task WHERE ended IS NOT NULL AND started IS NOT NULL
)
GROUP BY minute, owner;
