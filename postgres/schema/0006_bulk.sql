-- Bulk actions: what is done to all that a filter has found.
CREATE TABLE hf_bulk (
  id         text COLLATE "C" PRIMARY KEY,
  list       text NOT NULL,
  verb       text NOT NULL,
  request    text NOT NULL,               -- JSON
  actor      text NOT NULL,
  rate       bigint NOT NULL,             -- rows a second; 0: no bound
  state      text NOT NULL,
  total      bigint NOT NULL,
  next       bigint NOT NULL,             -- rows below are done or refused
  done       bigint NOT NULL,
  refused    bigint NOT NULL,
  created    bigint NOT NULL,
  ended      bigint,
  holder     text,                        -- runs it until held_until
  held_until bigint
);

CREATE INDEX hf_bulk_running ON hf_bulk (id) WHERE state = 'running';

-- Its snapshot.
CREATE TABLE hf_bulk_row (
  bulk    text COLLATE "C" NOT NULL,
  seq     bigint NOT NULL,
  item    text NOT NULL,
  outcome text,                           -- NULL: open
  detail  text,
  PRIMARY KEY (bulk, seq)
);
