-- A notification is a bundle of the kind notification, with its site as source. It has one copy per
-- channel. The row of a copy has the seq of the message that delivers it, and the state of the copy
-- is the state of that message. Like a message, the row is never rewritten.
CREATE TABLE hf_notification (
  seq       bigint PRIMARY KEY,
  bundle    bigint NOT NULL,               -- hf_bundle, with the text
  copy      integer NOT NULL,              -- 0: the first
  id        bytea NOT NULL,                -- as in hf_message
  message   bytea NOT NULL,                -- id of the message
  channel   text COLLATE "C" NOT NULL,
  type      text COLLATE "C" NOT NULL,
  list      text COLLATE "C" NOT NULL,
  subject   text COLLATE "C" NOT NULL,
  site      text COLLATE "C" NOT NULL,
  instance  text COLLATE "C" NOT NULL,
  script    text COLLATE "C" NOT NULL,
  execution text COLLATE "C" NOT NULL,
  parent    text COLLATE "C" NOT NULL,
  enqueued  bigint,                        -- at its site, by the site's clock
  created   bigint NOT NULL
);

-- The first copy is found by hf_bundle.first.
CREATE INDEX hf_notification_copy ON hf_notification (bundle, copy) WHERE copy > 0;

-- The final state of each copy that was delivered or whose message is purged.
CREATE TABLE hf_notification_end (
  seq        bigint PRIMARY KEY,
  site       text COLLATE "C" NOT NULL,
  state      smallint NOT NULL,
  settled    bigint NOT NULL,
  failures   integer NOT NULL,
  tries      integer NOT NULL,
  cycle      integer NOT NULL,
  reason     text,
  last_error text,
  tried      bigint                        -- the last attempt
);

-- For statements that say settled > 0, and for the list that says state > 2. Other statements look
-- for a seq, and must not use these indexes.
CREATE INDEX hf_notification_end_settled ON hf_notification_end (settled, seq) INCLUDE (state, site) WHERE settled > 0;
CREATE INDEX hf_notification_end_aside ON hf_notification_end (seq) WHERE state > 2;

-- The outcome for a recipient. seq is that of the message.
CREATE TABLE hf_target (
  seq       bigint NOT NULL,
  channel   text COLLATE "C" NOT NULL,
  address   text COLLATE "C" NOT NULL,
  name      text NOT NULL,
  result    smallint NOT NULL,
  code      text NOT NULL,
  text      text NOT NULL,
  receipt   text NOT NULL,
  maybe     boolean NOT NULL,
  attempts  integer NOT NULL,
  cycle     integer NOT NULL, -- of the message, at the last attempt for this recipient
  server    text NOT NULL,
  tls       text NOT NULL,
  truncated boolean NOT NULL,
  at        bigint NOT NULL,
  PRIMARY KEY (seq, channel, address)
);

-- The book: channels, lists and recipients. Its version is in hf_meta.
CREATE TABLE hf_channel (
  name     text COLLATE "C" PRIMARY KEY,
  kind     text NOT NULL,
  settings bytea,
  attempts bigint NOT NULL,
  interval bigint NOT NULL,
  waits    text,                           -- microseconds, as JSON
  workers  bigint NOT NULL,
  disabled boolean NOT NULL,
  changed  bigint NOT NULL
);

CREATE TABLE hf_list (
  name        text COLLATE "C" PRIMARY KEY,
  description text NOT NULL,
  partial     boolean NOT NULL,
  recipients  bigint NOT NULL,             -- number of recipients
  changed     bigint NOT NULL
);

CREATE TABLE hf_recipient (
  list     text COLLATE "C" NOT NULL,
  place    bigint NOT NULL,                -- position in the list, from 0
  channel  text COLLATE "C" NOT NULL,
  address  text COLLATE "C" NOT NULL,
  name     text NOT NULL,
  disabled boolean NOT NULL,
  PRIMARY KEY (list, place)
);
