-- Names under which programs publish events. Deleted ones stay.
CREATE TABLE hf_topic (
  name          TEXT PRIMARY KEY,
  description   TEXT NOT NULL,
  documentation TEXT NOT NULL,            -- a link
  attributes    TEXT NOT NULL,            -- JSON: names
  version       INTEGER NOT NULL,         -- as in hf_subscription
  gone          INTEGER NOT NULL,
  changed       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX hf_topic_version ON hf_topic (version);

-- Each change of a subscription is a row of its own, so that an event can be explained by the
-- subscriptions as they were when it came.
CREATE TABLE hf_subscription (
  id       TEXT NOT NULL,
  version  INTEGER NOT NULL,              -- grows over all changes of topics and subscriptions; the last one is in hf_meta
  until    INTEGER NOT NULL,              -- the version that took its place, or its own if it is gone; 0: none did
  ended    INTEGER,                       -- when
  gone     INTEGER NOT NULL,
  state    INTEGER NOT NULL,
  why      TEXT NOT NULL,
  actor    TEXT NOT NULL,
  since    INTEGER NOT NULL,
  topics   TEXT NOT NULL,                 -- JSON
  filter   TEXT NOT NULL,                 -- JSON
  settings TEXT NOT NULL,                 -- JSON
  created  INTEGER NOT NULL,
  changed  INTEGER NOT NULL,
  PRIMARY KEY (id, version)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX hf_subscription_version ON hf_subscription (version);
CREATE INDEX hf_subscription_ended ON hf_subscription (ended) WHERE ended IS NOT NULL;

-- What programs have published. The payload is in hf_bundle, under the same number.
CREATE TABLE hf_event (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL,
  source     TEXT NOT NULL,
  topic      TEXT NOT NULL,
  type       TEXT NOT NULL,
  subject    TEXT NOT NULL,
  at         INTEGER NOT NULL,            -- by the publisher's clock
  attributes TEXT NOT NULL,               -- JSON
  media      TEXT NOT NULL,               -- type of the payload; empty: application/json
  actor      TEXT NOT NULL,
  matched    INTEGER NOT NULL,
  version    INTEGER NOT NULL,            -- of the subscriptions that it was matched against
  received   INTEGER NOT NULL
) STRICT;

CREATE INDEX hf_event_id ON hf_event (id, source);
CREATE INDEX hf_event_topic ON hf_event (topic, seq);

-- One for each message of an event or of a resend, with its seq.
CREATE TABLE hf_delivery (
  seq          INTEGER PRIMARY KEY,
  event        INTEGER NOT NULL,          -- of a resend: its bundle
  subscription TEXT NOT NULL,
  version      INTEGER NOT NULL,          -- of the subscription
  message      TEXT NOT NULL,             -- its id
  state        INTEGER,                   -- this and the next are NULL while hf_message has the row
  settled      INTEGER,
  resends      INTEGER,                   -- the event that is sent again; this and the next are NULL of a first delivery
  request      TEXT,                      -- its id
  actor        TEXT                       -- who asked for it
) STRICT;

CREATE INDEX hf_delivery_event ON hf_delivery (event, seq);
CREATE INDEX hf_delivery_resends ON hf_delivery (resends, seq) WHERE resends IS NOT NULL;
CREATE INDEX hf_delivery_to ON hf_delivery (event, subscription);
CREATE INDEX hf_delivery_open ON hf_delivery (event) WHERE state IS NULL;
