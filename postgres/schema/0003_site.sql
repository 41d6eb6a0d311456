-- Sites that this central knows. Secrets are stored only as hashes.
CREATE TABLE hf_site (
  name         text COLLATE "C" PRIMARY KEY,
  created      bigint NOT NULL,
  token        bytea UNIQUE,              -- of enrolment; a spent token stays, for a site that lost the answer
  token_until  bigint,                    -- NULL: there is no token to spend
  hash         bytea UNIQUE,              -- of the credential; NULL: not enrolled
  former       bytea,                     -- of the previous credential
  former_until bigint,
  enrolled     bigint,
  seen         bigint,
  version      text,                      -- of the program at the site
  revoked      bigint
);

CREATE INDEX hf_site_former ON hf_site (former) WHERE former IS NOT NULL;

-- The last report of each node of a site, as JSON.
CREATE TABLE hf_site_health (
  site   text COLLATE "C" NOT NULL,
  node   text COLLATE "C" NOT NULL,
  at     bigint NOT NULL,
  report text NOT NULL,
  PRIMARY KEY (site, node)
);
