-- Sites that this central knows. Secrets are kept as hashes only.
CREATE TABLE hf_site (
  name         TEXT PRIMARY KEY,
  created      INTEGER NOT NULL,
  token        BLOB UNIQUE,               -- of enrolment; it stays when it is spent, for who lost the answer
  token_until  INTEGER,                   -- NULL: there is none to be spent
  hash         BLOB UNIQUE,               -- of the credential; NULL: none is enrolled
  former       BLOB,                      -- of the credential before
  former_until INTEGER,
  enrolled     INTEGER,
  seen         INTEGER,
  version      TEXT,                      -- of the program at the site
  revoked      INTEGER
) STRICT;

CREATE INDEX hf_site_former ON hf_site (former) WHERE former IS NOT NULL;
