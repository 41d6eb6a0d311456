-- Names under which programs publish events. Deleted ones stay.
CREATE TABLE hf_topic (
  name          text COLLATE "C" PRIMARY KEY,
  description   text NOT NULL,
  documentation text NOT NULL,             -- a link
  attributes    text NOT NULL,             -- JSON: names
  version       bigint NOT NULL UNIQUE,    -- as in hf_subscription
  gone          boolean NOT NULL,
  changed       bigint NOT NULL
);

-- Each change of a subscription is a row of its own, so that an event can be explained by the
-- subscriptions as they were when it came.
CREATE TABLE hf_subscription (
  id       text COLLATE "C" NOT NULL,
  version  bigint NOT NULL UNIQUE,         -- grows over all changes of topics and subscriptions; the last one is in hf_meta
  until    bigint NOT NULL,                -- the version that took its place, or its own if it is gone; 0: none did
  ended    bigint,                         -- when
  gone     boolean NOT NULL,
  state    bigint NOT NULL,
  why      text NOT NULL,
  actor    text NOT NULL,
  since    bigint NOT NULL,
  topics   text NOT NULL,                  -- JSON
  filter   text NOT NULL,                  -- JSON
  settings text NOT NULL,                  -- JSON
  created  bigint NOT NULL,
  changed  bigint NOT NULL,
  PRIMARY KEY (id, version)
);

CREATE INDEX hf_subscription_ended ON hf_subscription (ended) WHERE ended IS NOT NULL;

-- What programs have published. The payload is in hf_bundle, under the same number.
CREATE TABLE hf_event (
  seq        bigint PRIMARY KEY,
  id         text COLLATE "C" NOT NULL,
  source     text COLLATE "C" NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  subject    text NOT NULL,
  at         bigint NOT NULL,              -- by the publisher's clock
  attributes text NOT NULL,                -- JSON
  media      text NOT NULL,                -- type of the payload; empty: application/json
  actor      text NOT NULL,
  matched    bigint NOT NULL,
  version    bigint NOT NULL,              -- of the subscriptions that it was matched against
  received   bigint NOT NULL
);

CREATE INDEX hf_event_id ON hf_event (id, source);
CREATE INDEX hf_event_topic ON hf_event (topic, seq);

-- One for each message of an event or of a resend, with its seq.
CREATE TABLE hf_delivery (
  seq          bigint PRIMARY KEY,
  event        bigint NOT NULL,            -- of a resend: its bundle
  subscription text COLLATE "C" NOT NULL,
  version      bigint NOT NULL,            -- of the subscription
  message      text NOT NULL,              -- its id
  state        bigint,                     -- this and the next are NULL while hf_message has the row
  settled      bigint,
  resends      bigint,                     -- the event that is sent again; this and the next are NULL of a first delivery
  request      text,                       -- its id
  actor        text                        -- who asked for it
);

CREATE INDEX hf_delivery_event ON hf_delivery (event, seq);
CREATE INDEX hf_delivery_resends ON hf_delivery (resends, seq) WHERE resends IS NOT NULL;
CREATE INDEX hf_delivery_to ON hf_delivery (event, subscription);
CREATE INDEX hf_delivery_open ON hf_delivery (event) WHERE state IS NULL;
