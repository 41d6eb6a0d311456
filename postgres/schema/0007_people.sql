-- People who sign in.
CREATE TABLE hf_person (
  name      text COLLATE "C" PRIMARY KEY,
  display   text NOT NULL,
  role      text NOT NULL,                -- as in hf_token
  password  text NOT NULL,                -- argon2id, with its parameters; empty: none
  subject   text COLLATE "C" NOT NULL,    -- issuer and subject at the provider; empty: none
  totp      text NOT NULL,                -- sealed; empty: none
  step      bigint NOT NULL,              -- of the last code that was taken
  codes     text NOT NULL,                -- hashes of recovery codes
  created   bigint NOT NULL,
  changed   bigint NOT NULL,
  signed_in bigint,
  disabled  bigint                        -- NULL: may sign in
);

CREATE UNIQUE INDEX hf_person_subject ON hf_person (subject) WHERE subject <> '';

CREATE TABLE hf_session (
  id      text COLLATE "C" PRIMARY KEY,
  person  text COLLATE "C" NOT NULL,
  hash    bytea NOT NULL UNIQUE,
  via     text NOT NULL,
  sender  text NOT NULL,
  pending boolean NOT NULL,               -- the second factor is still to come
  idle    bigint NOT NULL,
  created bigint NOT NULL,
  seen    bigint NOT NULL,
  until   bigint NOT NULL
);

CREATE INDEX hf_session_person ON hf_session (person, id);
CREATE INDEX hf_session_until ON hf_session (until);
