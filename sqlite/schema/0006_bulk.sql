-- Bulk actions: what is done to all that a filter has found.
CREATE TABLE hf_bulk (
  id         TEXT PRIMARY KEY,
  list       TEXT NOT NULL,
  verb       TEXT NOT NULL,
  request    TEXT NOT NULL,               -- JSON
  actor      TEXT NOT NULL,
  rate       INTEGER NOT NULL,            -- rows a second; 0: no bound
  state      TEXT NOT NULL,
  total      INTEGER NOT NULL,
  next       INTEGER NOT NULL,            -- rows below are done or refused
  done       INTEGER NOT NULL,
  refused    INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  ended      INTEGER,
  holder     TEXT,                        -- runs it until held_until
  held_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX hf_bulk_running ON hf_bulk (id) WHERE state = 'running';

-- Its snapshot.
CREATE TABLE hf_bulk_row (
  bulk    TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  item    TEXT NOT NULL,
  outcome TEXT,                           -- NULL: open
  detail  TEXT,
  PRIMARY KEY (bulk, seq)
) STRICT, WITHOUT ROWID;
