-- A notification is a bundle of messages, one per channel that delivers it. The bundle has its name
-- and its text. Each message has a row here, its copy, with the same seq. While the message exists,
-- its state is the copy's. When the message is purged, the last columns keep its last state.
CREATE TABLE hf_notification (
  seq        INTEGER PRIMARY KEY,
  id         ANY NOT NULL,                -- as in hf_message
  copy       INTEGER NOT NULL,            -- 0: the first copy, whose message's id follows from site and id
  message    ANY,                         -- id of the message of any other copy
  channel    TEXT NOT NULL,
  type       TEXT NOT NULL,
  list       TEXT NOT NULL,
  subject    TEXT NOT NULL,
  site       TEXT NOT NULL,
  instance   TEXT NOT NULL,
  script     TEXT NOT NULL,
  execution  TEXT NOT NULL,
  parent     TEXT NOT NULL,
  enqueued   INTEGER,                     -- at its site, by the site's clock
  bundle     INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  delivered  INTEGER,                     -- final
  state      INTEGER,                     -- this and the following columns are NULL while hf_message has the row
  settled    INTEGER,
  failures   INTEGER,
  tries      INTEGER,
  cycle      INTEGER,
  reason     TEXT,
  last_error TEXT,
  tried      INTEGER                      -- time of the last attempt
) STRICT;

-- The first copy is found by its bundle, and needs no entry in this index.
CREATE UNIQUE INDEX hf_notification_copy ON hf_notification (bundle, copy) WHERE copy > 0;

-- With the column delivered, which is always NULL, the index answers queries without the table.
CREATE INDEX hf_notification_rest ON hf_notification (seq, site, created, delivered) WHERE delivered IS NULL;
CREATE INDEX hf_notification_delivered ON hf_notification (delivered, seq, site) WHERE delivered IS NOT NULL;
CREATE INDEX hf_notification_gone ON hf_notification (settled, seq) WHERE delivered IS NULL AND state IS NOT NULL;

-- The outcome for each recipient. seq is the message's.
CREATE TABLE hf_target (
  seq       INTEGER NOT NULL,
  channel   TEXT NOT NULL,
  address   TEXT NOT NULL,
  name      TEXT NOT NULL,
  result    INTEGER NOT NULL,
  code      TEXT NOT NULL,
  text      TEXT NOT NULL,
  receipt   TEXT NOT NULL,
  maybe     INTEGER NOT NULL,
  attempts  INTEGER NOT NULL,
  cycle     INTEGER NOT NULL,             -- of the message, at its last attempt for the recipient
  server    TEXT NOT NULL,
  tls       TEXT NOT NULL,
  truncated INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (seq, channel, address)
) STRICT, WITHOUT ROWID;

-- The book: channels and lists. Its version is in hf_meta.
CREATE TABLE hf_channel (
  name     TEXT PRIMARY KEY,
  kind     TEXT NOT NULL,
  settings BLOB,
  attempts INTEGER NOT NULL,
  interval INTEGER NOT NULL,
  waits    TEXT,                          -- microseconds, as JSON
  workers  INTEGER NOT NULL,
  disabled INTEGER NOT NULL,
  changed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_list (
  name        TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  partial     INTEGER NOT NULL,
  recipients  INTEGER NOT NULL,           -- number of recipients, so that a salvage knows how many are lost
  changed     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_recipient (
  list     TEXT NOT NULL,
  place    INTEGER NOT NULL,              -- in the list, from 0
  channel  TEXT NOT NULL,
  address  TEXT NOT NULL,
  name     TEXT NOT NULL,
  disabled INTEGER NOT NULL,
  PRIMARY KEY (list, place)
) STRICT, WITHOUT ROWID;
