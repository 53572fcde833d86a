-- The days of all feeds that are over, in UTC, so that a month of them is read and not reckoned.
CREATE TABLE feed_days (
    day      date PRIMARY KEY,
    promoted bigint NOT NULL,
    skipped  bigint NOT NULL,
    held     bigint NOT NULL,
    failed   bigint NOT NULL,
    prices   bigint NOT NULL,
    rejects  bigint NOT NULL,
    visible  bigint NOT NULL
);
