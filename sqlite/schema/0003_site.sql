-- Sites that this central knows. Secrets are kept as hashes only.
CREATE TABLE hf_site (
  name         TEXT PRIMARY KEY,
  created      INTEGER NOT NULL,
  token        BLOB UNIQUE,               -- of enrolment; kept after its use, for a site that lost the answer
  token_until  INTEGER,                   -- NULL: no token can be used
  hash         BLOB UNIQUE,               -- of the credential; NULL: the site is not enrolled
  former       BLOB,                      -- of the credential before this one
  former_until INTEGER,
  enrolled     INTEGER,
  seen         INTEGER,
  version      TEXT,                      -- of the program at the site
  revoked      INTEGER
) STRICT;

CREATE INDEX hf_site_former ON hf_site (former) WHERE former IS NOT NULL;

-- The last report of each node of a site, as JSON.
CREATE TABLE hf_site_health (
  site   TEXT NOT NULL,
  node   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  report TEXT NOT NULL,
  PRIMARY KEY (site, node)
) STRICT, WITHOUT ROWID;
