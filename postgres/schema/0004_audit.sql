-- Logs of audit records: those of this database, one for each of its histories, and copies of those
-- of other nodes.
CREATE TABLE hf_audit_log (
  log      bigint PRIMARY KEY,
  origin   text COLLATE "C" NOT NULL UNIQUE,
  own      boolean NOT NULL,              -- appended by this store
  opened   bigint NOT NULL,
  size     bigint NOT NULL,               -- number of the last record
  head     bytea NOT NULL,                -- chain hash of the last record
  cut      bigint NOT NULL,               -- records up to here were purged
  cut_hash bytea,                         -- chain hash of the last purged record
  site     text COLLATE "C"               -- of a copy: whose credential it came with
);

CREATE INDEX hf_audit_log_site ON hf_audit_log (site) WHERE site IS NOT NULL;

-- The records. leaf and hash are the record; the other columns are taken from it, to search by.
CREATE TABLE hf_audit (
  log      bigint NOT NULL,
  seq      bigint NOT NULL,
  id       bytea NOT NULL,                -- of the event, as in hf_message; it has the record's time
  at       bigint NOT NULL,               -- microseconds since 1970, by the clock of whoever saw it
  stored   bigint NOT NULL,
  channel  text COLLATE "C" NOT NULL,
  kind     text COLLATE "C" NOT NULL,
  status   text COLLATE "C" NOT NULL,
  failed   boolean NOT NULL,
  site     text COLLATE "C" NOT NULL,
  node     text COLLATE "C" NOT NULL,
  instance text COLLATE "C",
  actor    text COLLATE "C",
  target   text COLLATE "C",              -- NULL: none, or in hf_audit_value
  corr     text COLLATE "C",
  leaf     bytea NOT NULL,
  hash     bytea NOT NULL,
  PRIMARY KEY (log, seq)
);

CREATE INDEX hf_audit_at ON hf_audit (at, log, seq);
CREATE INDEX hf_audit_site ON hf_audit (site, at, log, seq);
CREATE INDEX hf_audit_actor ON hf_audit (actor, at, log, seq) WHERE actor <> 'system'; -- most records are of what nobody asked for
CREATE INDEX hf_audit_target ON hf_audit (target, at, log, seq) WHERE target IS NOT NULL;
CREATE INDEX hf_audit_corr ON hf_audit (corr, at, log, seq) WHERE corr IS NOT NULL;
CREATE INDEX hf_audit_failed ON hf_audit (at, log, seq) WHERE failed;

-- A record never changes, and goes only with the prefix that a signed record of the purge names.
CREATE OR REPLACE FUNCTION hf_audit_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit records do not change';
END $$;

CREATE OR REPLACE FUNCTION hf_audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM hf_audit_log WHERE log = OLD.log AND cut >= OLD.seq) THEN
    RAISE EXCEPTION 'audit records are deleted by a purge only';
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER hf_audit_fixed BEFORE UPDATE ON hf_audit FOR EACH ROW EXECUTE FUNCTION hf_audit_fixed();
CREATE TRIGGER hf_audit_kept BEFORE DELETE ON hf_audit FOR EACH ROW EXECUTE FUNCTION hf_audit_kept();
CREATE TRIGGER hf_audit_whole BEFORE TRUNCATE ON hf_audit FOR EACH STATEMENT EXECUTE FUNCTION hf_audit_fixed();

-- Personal values, to which the records have commitments. They can be erased.
CREATE TABLE hf_audit_value (
  log   bigint NOT NULL,
  seq   bigint NOT NULL,
  field text COLLATE "C" NOT NULL,
  at    bigint NOT NULL,                  -- the record's, to search by
  salt  bytea NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (log, seq, field)
);

CREATE INDEX hf_audit_value_target ON hf_audit_value (value, at, log, seq) WHERE field = 'target';

-- The Merkle tree of each log: 256 hashes in a tile.
CREATE TABLE hf_audit_tile (
  log    bigint NOT NULL,
  level  bigint NOT NULL,
  number bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (log, level, number)
);

-- Signed checkpoints: of this database's logs, and those of others that it keeps as a witness.
CREATE TABLE hf_audit_checkpoint (
  origin text COLLATE "C" NOT NULL,
  size   bigint NOT NULL,
  root   bytea NOT NULL,
  note   text NOT NULL,
  seen   bigint NOT NULL,
  PRIMARY KEY (origin, size)
);

CREATE INDEX hf_audit_checkpoint_keys ON hf_audit_checkpoint (origin, size) WHERE note LIKE '%key %key %'; -- hand over

-- Ranges of records that copies of logs lack.
CREATE TABLE hf_audit_gap (
  log   bigint NOT NULL,
  first bigint NOT NULL,
  last  bigint NOT NULL,
  hash  bytea NOT NULL, -- of the chain at the last of them
  PRIMARY KEY (log, first)
);

-- Values that were erased here, and not yet, as far as is known, at the other end of the link.
CREATE TABLE hf_audit_erasure (
  log    bigint NOT NULL,
  seq    bigint NOT NULL,
  field  text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  since  bigint NOT NULL,
  PRIMARY KEY (log, seq, field)
);

CREATE TABLE hf_audit_hold (
  name   text COLLATE "C" PRIMARY KEY,
  filter text NOT NULL,
  reason text NOT NULL,
  actor  text COLLATE "C" NOT NULL,
  since  bigint NOT NULL
);

-- What sites say of their operations: central shows it, and never delivers it. The site's times are
-- microseconds since 1970, by its clock.
CREATE TABLE hf_sitecall (
  site        text COLLATE "C" NOT NULL,
  id          text COLLATE "C" NOT NULL,
  epoch       bigint NOT NULL,           -- history of the site's store
  revision    bigint NOT NULL,           -- within the epoch
  node        text COLLATE "C" NOT NULL,
  category    text COLLATE "C" NOT NULL,
  destination text COLLATE "C" NOT NULL,
  endpoint    text COLLATE "C" NOT NULL,
  status      text COLLATE "C" NOT NULL,
  retries     bigint NOT NULL,
  last_error  text COLLATE "C",
  http        bigint,
  instance    text COLLATE "C",
  script      text COLLATE "C",
  execution   text COLLATE "C",
  created     bigint NOT NULL,
  attempted   bigint,
  ended       bigint,
  seen        bigint NOT NULL,
  PRIMARY KEY (site, id)
);

CREATE INDEX hf_sitecall_created ON hf_sitecall (created, site, id);
CREATE INDEX hf_sitecall_site ON hf_sitecall (site, created, id);
CREATE INDEX hf_sitecall_status ON hf_sitecall (status, created, site, id);
CREATE INDEX hf_sitecall_waits ON hf_sitecall (site, node, status, created) WHERE ended IS NULL;
CREATE INDEX hf_sitecall_ended ON hf_sitecall (seen) WHERE ended IS NOT NULL;
