-- Where the log begins: the place of the last event that was trimmed, in one row, or none as long as nothing was.
-- Nothing can appear before it any more, so readers start behind it: what is dead in the index before it
-- costs them nothing.
CREATE TABLE headrace.log_start (
    xid xid8 NOT NULL,
    seq bigint NOT NULL
);

CREATE UNIQUE INDEX log_start_only ON headrace.log_start ((TRUE));
