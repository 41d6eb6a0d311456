-- Times are microseconds of the store's own clock (clock.go). Durations are
-- microseconds. Numbers of states, outcomes and kinds are the library's.

CREATE TABLE hf_meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One lane per destination, with the settings and faults of the destination.
CREATE TABLE hf_lane (
  lane        INTEGER PRIMARY KEY,
  destination TEXT NOT NULL UNIQUE,
  strict      INTEGER NOT NULL DEFAULT 0,  -- 1: a parked message stops its ordering key; 2: no longer, keys are being freed
  fault       TEXT,                        -- why the lane is held
  fault_since INTEGER,
  paused      INTEGER NOT NULL DEFAULT 0,  -- 1: an operator has paused it
  decided     INTEGER,                     -- when an operator last paused or resumed it
  decided_by  TEXT
) STRICT;

-- Names that many messages share, stored once.
CREATE TABLE hf_route (
  route    INTEGER PRIMARY KEY,
  lane     INTEGER NOT NULL REFERENCES hf_lane,
  source   TEXT NOT NULL,
  kind     TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  UNIQUE (lane, source, kind, endpoint)
) STRICT;

-- The hot row: small, so that claims and settlements touch few pages.
CREATE TABLE hf_message (
  seq       INTEGER PRIMARY KEY,          -- never reused: purge keeps the highest
  id        ANY NOT NULL UNIQUE,          -- a UUID as 16 bytes, any other id as text
  route     INTEGER NOT NULL REFERENCES hf_route,
  lane      INTEGER NOT NULL REFERENCES hf_lane,
  state     INTEGER NOT NULL DEFAULT 0,
  due       INTEGER NOT NULL,             -- min(next try, expiry); of a blocked row: the expiry, or never
  created   INTEGER NOT NULL,
  expires   INTEGER,
  failures  INTEGER NOT NULL DEFAULT 0,   -- charged failures in this cycle
  tries     INTEGER NOT NULL DEFAULT 0,   -- in this cycle
  cycle     INTEGER NOT NULL DEFAULT 1,
  first_try INTEGER,                      -- in all cycles; written with the first failure
  settled   INTEGER,                      -- when it became final
  reason    TEXT,
  okey      TEXT,                         -- ordering key
  blocked   INTEGER NOT NULL DEFAULT 0,   -- waits for another message of its key
  force     INTEGER NOT NULL DEFAULT 0,
  revision  INTEGER NOT NULL DEFAULT 0,   -- how often an operator has rescheduled it in this cycle: an older settlement does not change its due
  given_up  INTEGER NOT NULL DEFAULT 0    -- 1: discarded while it was, or may have been, in hand; means nothing in a final state
) STRICT;

CREATE INDEX hf_message_due ON hf_message (lane, due) WHERE state = 0;
CREATE INDEX hf_message_key ON hf_message (lane, state, blocked, okey, seq) WHERE okey IS NOT NULL AND state IN (0, 1, 3);
CREATE INDEX hf_message_given_up ON hf_message (given_up) WHERE given_up = 1;
CREATE INDEX hf_message_aside ON hf_message (state, seq, lane) WHERE state IN (1, 3, 4, 5);

-- A parent of messages, such as a notification. It has the payload for all of them. It is deleted
-- with the rows that its feature keeps beside the messages.
CREATE TABLE hf_bundle (
  seq     INTEGER PRIMARY KEY,            -- the seq of its first message, unless it was copied from another store
  kind    TEXT NOT NULL,
  source  TEXT NOT NULL,
  id      ANY NOT NULL,                   -- as in hf_message
  hash    BLOB NOT NULL,                  -- of the content, which may not change under its name; empty: lost with a damaged file
  created INTEGER NOT NULL,
  first   INTEGER NOT NULL,               -- its first message
  state   INTEGER,                        -- the first message's state when it was purged; NULL: it was not purged, or was delivered
  payload BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX hf_bundle_name ON hf_bundle (id, kind, source);

-- The cold part: an attempt reads it once and never rewrites it.
CREATE TABLE hf_body (
  seq     INTEGER PRIMARY KEY,
  bundle  INTEGER,                        -- the bundle that has the payload; what is read without the payload stands before it
  headers TEXT,
  corr    TEXT,
  payload BLOB NOT NULL,                  -- empty in a bundle
  retry   TEXT,
  ttl     INTEGER,
  start   INTEGER,                        -- earliest next try of a message that is blocked by its key
  hash    INTEGER                         -- of all that is delivered: check_hash.go; NULL: the row is not what was accepted
) STRICT;

-- The journal. AUTOINCREMENT, because a number must never be used twice: a
-- follower's cursor may have passed it.
CREATE TABLE hf_entry (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  message INTEGER,                        -- NULL: about no message of the outbox
  kind    INTEGER NOT NULL,
  state   INTEGER NOT NULL DEFAULT 0,
  at      INTEGER NOT NULL,
  cycle   INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  outcome INTEGER NOT NULL DEFAULT 0,
  charged INTEGER NOT NULL DEFAULT 0,
  maybe   INTEGER NOT NULL DEFAULT 0,
  took    INTEGER NOT NULL DEFAULT 0,
  reason  TEXT,
  code    TEXT,
  error   TEXT,
  actor   TEXT,
  subject TEXT,                           -- what the entry is about, beside or in place of a message
  id      ANY,                            -- of a message that is not in the outbox
  detail  TEXT                            -- JSON
) STRICT;

CREATE INDEX hf_entry_message ON hf_entry (message, seq);

CREATE TABLE hf_follower (
  name   TEXT PRIMARY KEY,
  cursor INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_source (
  source INTEGER PRIMARY KEY,
  name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE hf_inbox (
  seq       INTEGER PRIMARY KEY,
  source    INTEGER NOT NULL REFERENCES hf_source,
  id        ANY NOT NULL,
  endpoint  TEXT NOT NULL,
  hash      BLOB NOT NULL,                -- of kind, endpoint and payload
  kept      INTEGER NOT NULL DEFAULT 0,   -- 1: waits to be fetched
  received  INTEGER NOT NULL,
  processed INTEGER,
  expires   INTEGER NOT NULL,             -- when the id may be forgotten
  response  BLOB,
  answer    INTEGER,                      -- hash of id and response: check_hash.go; NULL: no response
  UNIQUE (source, id)
) STRICT;

CREATE INDEX hf_inbox_kept ON hf_inbox (seq) WHERE kept = 1;

CREATE TABLE hf_inbox_body (
  seq     INTEGER PRIMARY KEY,
  kind    TEXT NOT NULL,
  payload BLOB NOT NULL,
  headers TEXT,
  corr    TEXT,
  hash    INTEGER                         -- of the whole message: check_hash.go
) STRICT;

CREATE TABLE hf_token (
  name    TEXT PRIMARY KEY,
  role    TEXT NOT NULL,
  hash    BLOB NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  used    INTEGER,
  until   INTEGER                            -- NULL: it does not end
) STRICT;

CREATE INDEX hf_token_until ON hf_token (until) WHERE until IS NOT NULL;

-- What became of an operation, a call or a write: written when its message is purged, if the time of
-- tracking is not over by then.
CREATE TABLE hf_operation (
  seq         INTEGER PRIMARY KEY,        -- of the message
  id          TEXT NOT NULL,              -- of the message, in its canonical form
  category    TEXT NOT NULL,
  destination TEXT NOT NULL,
  endpoint    TEXT NOT NULL,
  source      TEXT NOT NULL,
  origin      TEXT NOT NULL,              -- JSON: instance, script, runs and trace, as headers
  retry       TEXT NOT NULL,              -- JSON, as in hf_body
  state       INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  failures    INTEGER NOT NULL,
  tries       INTEGER NOT NULL,
  cycle       INTEGER NOT NULL,
  code        TEXT NOT NULL,              -- of the last failure
  error       TEXT NOT NULL,
  created     INTEGER NOT NULL,
  tried       INTEGER,
  settled     INTEGER NOT NULL
) STRICT;

CREATE INDEX hf_operation_id ON hf_operation (id, seq);
CREATE INDEX hf_operation_settled ON hf_operation (settled);

-- What happened to messages, for people. Its numbers leave no gap but before the first.
CREATE TABLE hf_activity (
  seq         INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,           -- microseconds since 1970, as people are shown it
  noted       INTEGER NOT NULL,           -- when the line was written
  kind        INTEGER NOT NULL,
  message     BLOB NOT NULL,
  destination TEXT NOT NULL,
  cycle       INTEGER NOT NULL DEFAULT 0,
  attempt     INTEGER NOT NULL DEFAULT 0,
  actor       TEXT,
  reason      TEXT,
  code        TEXT,
  error       TEXT
) STRICT;

CREATE INDEX hf_activity_at ON hf_activity (at);
CREATE INDEX hf_activity_message ON hf_activity (message);
