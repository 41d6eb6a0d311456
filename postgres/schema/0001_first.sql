-- Times are microseconds since 1970 by the database's own clock; durations are in microseconds.
-- The library defines the numbers of states, outcomes and kinds. Names are compared byte by byte.

-- How far time has come, and what the database's clock showed at that moment. The nodes write it
-- with their lease, as they have seen time pass.
CREATE TABLE hf_clock (
  at    bigint NOT NULL,
  raw   bigint NOT NULL,                   -- what the clock showed then
  high  bigint NOT NULL,                   -- the latest time that it has ever shown
  most  bigint NOT NULL,                   -- bound of how far hf_now advances without a node
  leaps text NOT NULL                      -- time that was counted and that no node saw pass
) WITH (fillfactor = 20);

CREATE FUNCTION hf_raw() RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

INSERT INTO hf_clock SELECT t, t, t, 6000000, '' FROM (SELECT hf_raw() AS t) AS now;

-- hf_now is the common clock of all nodes: no instant of a node's machine is stored or compared. A
-- step of the database's clock moves it by a few seconds at most.
CREATE FUNCTION hf_now() RETURNS bigint LANGUAGE plpgsql VOLATILE AS
  'BEGIN RETURN (SELECT c.at + least(greatest(hf_raw() - c.raw, 0), c.most) FROM hf_clock AS c); END';

CREATE TABLE hf_meta (
  key   text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

-- One lane per destination, with what belongs to the destination and not to a message.
CREATE TABLE hf_lane (
  lane        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  destination text COLLATE "C" NOT NULL UNIQUE,
  strict      boolean NOT NULL DEFAULT false,  -- a parked message stops its ordering key
  fault       text,                            -- why the lane is held
  fault_since bigint,
  paused      boolean NOT NULL DEFAULT false,  -- an operator has paused it
  decided     bigint,                          -- when an operator last paused or resumed it
  decided_by  text
);

-- Names that many messages share, stored once. Separate transactions write them, so that nobody
-- waits for a caller's transaction to end.
CREATE TABLE hf_route (
  route    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane     integer NOT NULL REFERENCES hf_lane,
  source   text COLLATE "C" NOT NULL,
  kind     text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  UNIQUE (lane, source, kind, endpoint)
);

CREATE SEQUENCE hf_seq;

-- A parent of messages, with the payload that they share.
CREATE TABLE hf_bundle (
  seq     bigint PRIMARY KEY,              -- from hf_seq
  kind    text COLLATE "C" NOT NULL,
  source  text COLLATE "C" NOT NULL,
  id      bytea NOT NULL,                  -- as in hf_message
  hash    bytea NOT NULL,                  -- of what may not change under its name; empty: the hash is lost
  payload bytea NOT NULL,
  created bigint NOT NULL,
  first   bigint NOT NULL,                 -- its first message
  state   smallint,                        -- of the first message, once it is purged; NULL: it is not, or was delivered
  CONSTRAINT hf_bundle_name UNIQUE (id, kind, source)
);

-- Accepted messages. A row is never rewritten, so that there are no dead rows, however often a
-- message is tried. Its state is in hf_queue or hf_final.
CREATE TABLE hf_message (
  seq     bigint PRIMARY KEY,
  id      bytea NOT NULL UNIQUE,           -- 1 and the bytes of a UUID, or 2 and any other id
  route   integer NOT NULL,
  lane    integer NOT NULL,
  created bigint NOT NULL,
  payload bytea NOT NULL,
  headers text,
  corr    text,
  retry   text,
  delay   bigint NOT NULL,                 -- from created to the earliest first try
  ttl     bigint,                          -- from the earliest first try
  okey    text COLLATE "C",                -- ordering key
  bundle  bigint                           -- hf_bundle with its payload; NULL: it has its own
);

-- The hot rows: one for each message that is pending or claimed, and no others. A claim changes no
-- indexed column, so that it costs one small row version (HOT). A settlement deletes the row.
CREATE TABLE hf_queue (
  seq       bigint PRIMARY KEY,
  lane      integer NOT NULL,
  due       bigint NOT NULL,               -- min(next try, expiry); of a blocked row: its expiry, or never
  start     bigint NOT NULL,               -- earliest next try of a message that waits for its key
  expires   bigint NOT NULL,               -- 9223372036854775807: never
  owner     bigint,                        -- the node that has claimed it: hf_node
  claim     bigint,                        -- number of the claim among the owner's
  failures  integer NOT NULL DEFAULT 0,    -- charged, in this cycle
  tries     integer NOT NULL DEFAULT 0,    -- in this cycle
  cycle     integer NOT NULL DEFAULT 1,
  first_try bigint,                        -- in all cycles; written with the first failure
  deaths    smallint NOT NULL DEFAULT 0,   -- number of owners in a row that died with it in hand
  blocked   smallint NOT NULL DEFAULT 0,   -- 1: waits for another message of its key; 2: undecided
  force     boolean NOT NULL DEFAULT false,
  revision  integer NOT NULL DEFAULT 0,    -- how often an operator has rescheduled it in this cycle: an earlier settlement keeps its due
  given_up  boolean NOT NULL DEFAULT false,-- discarded while in hand: it ends with its claim
  okey      text COLLATE "C"
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
  autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);

-- Only for statements that say lane > 0. Other statements look for a seq. They must not use this
-- index and walk over all of it when the statistics say that the table is empty.
CREATE INDEX hf_queue_due ON hf_queue (lane, due, seq) WHERE lane > 0;
CREATE INDEX hf_queue_key ON hf_queue (lane, okey, blocked, seq) WHERE okey IS NOT NULL;
CREATE INDEX hf_queue_unplaced ON hf_queue (lane, okey) WHERE blocked = 2;
CREATE INDEX hf_queue_expires ON hf_queue (expires, seq) WHERE expires < 9223372036854775807;
CREATE INDEX hf_queue_given_up ON hf_queue (seq) WHERE given_up;
CREATE INDEX hf_queue_suspect ON hf_queue (lane, due, seq) WHERE deaths > 0;

-- One row for each final message.
CREATE TABLE hf_final (
  seq       bigint PRIMARY KEY,
  lane      integer NOT NULL,
  state     smallint NOT NULL,
  settled   bigint NOT NULL,
  expires   bigint NOT NULL,
  failures  integer NOT NULL,
  tries     integer NOT NULL,
  cycle     integer NOT NULL,
  first_try bigint,
  force     boolean NOT NULL,
  reason    text,
  okey      text COLLATE "C"
) WITH (autovacuum_vacuum_insert_scale_factor = 0.5);

-- Each is for one list, whose condition on the lane selects it. Other statements must not use them
-- when the statistics know of no such rows.
CREATE INDEX hf_final_aside ON hf_final (state, seq) WHERE state IN (3, 4, 5) AND lane > 0;
CREATE INDEX hf_final_lane ON hf_final (lane, state, seq) WHERE state IN (3, 4, 5) AND lane >= 0;
CREATE INDEX hf_final_expires ON hf_final (expires, seq) WHERE state = 3 AND expires < 9223372036854775807;
CREATE INDEX hf_final_key ON hf_final (lane, okey, seq) WHERE state = 3 AND okey IS NOT NULL;

-- The journal. Rows and transactions are not numbered in the order of their commits. So a follower
-- reads only entries that are older than every open transaction.
CREATE TABLE hf_entry (
  seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tx      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  message bigint,                          -- NULL: it is not about a message of the outbox
  kind    smallint NOT NULL,
  state   smallint NOT NULL DEFAULT 0,
  at      bigint NOT NULL,
  cycle   integer NOT NULL DEFAULT 0,
  attempt integer NOT NULL DEFAULT 0,
  outcome smallint NOT NULL DEFAULT 0,
  charged boolean NOT NULL DEFAULT false,
  maybe   boolean NOT NULL DEFAULT false,
  took    bigint NOT NULL DEFAULT 0,
  reason  text,
  code    text,
  error   text,
  actor   text,
  subject text,                            -- what it is about, in addition to a message or instead of one
  id      bytea,                           -- of a message that is not in the outbox
  detail  text                             -- JSON
);

CREATE INDEX hf_entry_message ON hf_entry (message, seq) WHERE message IS NOT NULL;
CREATE INDEX hf_entry_order ON hf_entry (tx, seq);
CREATE INDEX hf_entry_note ON hf_entry (seq) WHERE message IS NULL;

CREATE TABLE hf_follower (
  name text COLLATE "C" PRIMARY KEY,
  tx   xid8 NOT NULL,                      -- the position up to which it has read
  seq  bigint NOT NULL
);

CREATE TABLE hf_source (
  source integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name   text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE hf_inbox (
  seq       bigint PRIMARY KEY,            -- from hf_seq
  source    integer NOT NULL,
  id        bytea NOT NULL,                -- as in hf_message
  endpoint  text COLLATE "C" NOT NULL,
  hash      bytea NOT NULL,                -- of kind, endpoint and payload
  kept      boolean NOT NULL DEFAULT false,-- waits to be fetched
  received  bigint NOT NULL,
  processed bigint,
  expires   bigint NOT NULL,               -- when the id may be forgotten
  response  bytea,
  UNIQUE (source, id)
);

CREATE INDEX hf_inbox_kept ON hf_inbox (seq) WHERE kept;

CREATE TABLE hf_inbox_body (
  seq     bigint PRIMARY KEY,
  kind    text NOT NULL,
  payload bytea NOT NULL,
  headers text,
  corr    text
);

CREATE TABLE hf_token (
  name    text COLLATE "C" PRIMARY KEY,
  role    text NOT NULL,
  hash    bytea NOT NULL UNIQUE,
  created bigint NOT NULL,
  used    bigint,
  until   bigint                            -- NULL: it does not end
);

CREATE INDEX hf_token_until ON hf_token (until) WHERE until IS NOT NULL;

-- The live nodes. A node that starts gets a new owner number, even under the same name. Claims of
-- its last start then belong to nobody.
CREATE SEQUENCE hf_owner;

CREATE TABLE hf_node (
  name    text COLLATE "C" PRIMARY KEY,
  owner   bigint NOT NULL UNIQUE,
  started bigint NOT NULL,
  beat    bigint NOT NULL,                 -- last heartbeat
  until   bigint NOT NULL,                 -- when its lease ends
  lanes   integer[] NOT NULL,              -- lanes that it delivers for
  about   text NOT NULL                    -- host and process, for people
);

-- Counters, as changes that are summed up, so that no two transactions write the same row.
CREATE TABLE hf_tally (
  owner   bigint NOT NULL,                 -- the owner that has it in memory; 0: none
  lane    integer NOT NULL,                -- 0: the inbox
  pending bigint NOT NULL DEFAULT 0,
  parked  bigint NOT NULL DEFAULT 0,
  expired bigint NOT NULL DEFAULT 0,
  inbox   bigint NOT NULL DEFAULT 0,
  kept    bigint NOT NULL DEFAULT 0
);

CREATE INDEX hf_tally_owner ON hf_tally (owner);

-- What became of an operation, a call or a write: written when its message is purged, if the time of
-- tracking is not over by then.
CREATE TABLE hf_operation (
  seq         bigint PRIMARY KEY,            -- of the message
  id          text COLLATE "C" NOT NULL,     -- of the message, in its canonical form
  category    text NOT NULL,
  destination text NOT NULL,
  endpoint    text NOT NULL,
  source      text NOT NULL,
  origin      text NOT NULL,                 -- JSON: instance, script, runs and trace, as headers
  retry       text NOT NULL,                 -- JSON, as in hf_message
  state       bigint NOT NULL,
  reason      text NOT NULL,
  failures    bigint NOT NULL,
  tries       bigint NOT NULL,
  cycle       bigint NOT NULL,
  code        text NOT NULL,                 -- of the last failure
  error       text NOT NULL,
  created     bigint NOT NULL,
  tried       bigint,
  settled     bigint NOT NULL
);

CREATE INDEX hf_operation_id ON hf_operation (id, seq);
CREATE INDEX hf_operation_settled ON hf_operation (settled);

-- What happened to messages, for people. Its numbers leave no gap but before the first.
CREATE TABLE hf_activity (
  seq         bigint PRIMARY KEY,
  at          bigint NOT NULL,            -- microseconds since 1970, as people are shown it
  noted       bigint NOT NULL,            -- when the line was written
  kind        bigint NOT NULL,
  message     bytea NOT NULL,
  destination text NOT NULL,
  cycle       bigint NOT NULL DEFAULT 0,
  attempt     bigint NOT NULL DEFAULT 0,
  actor       text,
  reason      text,
  code        text,
  error       text
);

CREATE INDEX hf_activity_at ON hf_activity (at, seq);
CREATE INDEX hf_activity_message ON hf_activity (message, seq);
