-- Sites that this central knows. Secrets are kept as hashes only.
CREATE TABLE hf_site (
  name         text COLLATE "C" PRIMARY KEY,
  created      bigint NOT NULL,
  token        bytea UNIQUE,              -- of enrolment; it stays when it is spent, for who lost the answer
  token_until  bigint,                    -- NULL: there is none to be spent
  hash         bytea UNIQUE,              -- of the credential; NULL: none is enrolled
  former       bytea,                     -- of the credential before
  former_until bigint,
  enrolled     bigint,
  seen         bigint,
  version      text,                      -- of the program at the site
  revoked      bigint
);

CREATE INDEX hf_site_former ON hf_site (former) WHERE former IS NOT NULL;
