-- People who sign in.
CREATE TABLE hf_person (
  name      TEXT PRIMARY KEY,
  display   TEXT NOT NULL,
  role      TEXT NOT NULL,                -- as in hf_token
  password  TEXT NOT NULL,                -- argon2id, with its parameters; empty: none
  subject   TEXT NOT NULL,                -- issuer and subject at the provider; empty: none
  totp      TEXT NOT NULL,                -- sealed; empty: none
  step      INTEGER NOT NULL,             -- of the last code that was taken
  codes     TEXT NOT NULL,                -- hashes of recovery codes
  created   INTEGER NOT NULL,
  changed   INTEGER NOT NULL,
  signed_in INTEGER,
  disabled  INTEGER                       -- NULL: may sign in
) STRICT;

CREATE UNIQUE INDEX hf_person_subject ON hf_person (subject) WHERE subject <> '';

CREATE TABLE hf_session (
  id      TEXT PRIMARY KEY,
  person  TEXT NOT NULL,
  hash    BLOB NOT NULL UNIQUE,
  via     TEXT NOT NULL,
  sender  TEXT NOT NULL,
  pending INTEGER NOT NULL,               -- the second factor is still to come
  idle    INTEGER NOT NULL,
  created INTEGER NOT NULL,
  seen    INTEGER NOT NULL,
  until   INTEGER NOT NULL
) STRICT;

CREATE INDEX hf_session_person ON hf_session (person, id);
CREATE INDEX hf_session_until ON hf_session (until);
