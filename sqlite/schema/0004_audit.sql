-- Logs of audit records: this node's own, one for each history of the store, and copies of those of
-- other nodes.
CREATE TABLE hf_audit_log (
  log      INTEGER PRIMARY KEY,
  origin   TEXT NOT NULL UNIQUE,
  own      INTEGER NOT NULL,              -- 1: appended by this store
  opened   INTEGER NOT NULL,
  size     INTEGER NOT NULL,              -- number of the last record
  head     BLOB NOT NULL,                 -- chain hash of the last record
  cut      INTEGER NOT NULL,              -- records up to here were purged
  cut_hash BLOB,                          -- chain hash of the last purged record
  site     TEXT                           -- of a copy: whose credential it came with
) STRICT;

CREATE INDEX hf_audit_log_site ON hf_audit_log (site) WHERE site IS NOT NULL;

-- The records. leaf and hash are the record; the other columns are taken from it, to search by.
CREATE TABLE hf_audit (
  log      INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  id       ANY NOT NULL,                  -- of the event, as in hf_message; it has the record's time
  at       INTEGER NOT NULL,              -- microseconds since 1970, by the clock of whoever saw it
  stored   INTEGER NOT NULL,
  channel  TEXT NOT NULL,
  kind     TEXT NOT NULL,
  status   TEXT NOT NULL,
  failed   INTEGER NOT NULL,
  site     TEXT NOT NULL,
  node     TEXT NOT NULL,
  instance TEXT,
  actor    TEXT,
  target   TEXT,                          -- NULL: none, or in hf_audit_value
  corr     TEXT,
  leaf     BLOB NOT NULL,
  hash     BLOB NOT NULL,
  PRIMARY KEY (log, seq)
) STRICT;

CREATE INDEX hf_audit_at ON hf_audit (at, log, seq);
CREATE INDEX hf_audit_site ON hf_audit (site, at, log, seq);
CREATE INDEX hf_audit_actor ON hf_audit (actor, at, log, seq) WHERE actor <> 'system'; -- most records are of what nobody asked for
CREATE INDEX hf_audit_target ON hf_audit (target, at, log, seq) WHERE target IS NOT NULL;
CREATE INDEX hf_audit_corr ON hf_audit (corr, at, log, seq) WHERE corr IS NOT NULL;
CREATE INDEX hf_audit_failed ON hf_audit (at, log, seq) WHERE failed = TRUE;

-- A record never changes, and goes only with the prefix that a signed record of the purge names.
CREATE TRIGGER hf_audit_fixed BEFORE UPDATE ON hf_audit BEGIN
  SELECT RAISE(ABORT, 'audit records do not change');
END;

CREATE TRIGGER hf_audit_kept BEFORE DELETE ON hf_audit
WHEN NOT EXISTS (SELECT 1 FROM hf_audit_log WHERE log = OLD.log AND cut >= OLD.seq) BEGIN
  SELECT RAISE(ABORT, 'audit records are deleted by a purge only');
END;

-- Personal values, to which the records have commitments. They can be erased.
CREATE TABLE hf_audit_value (
  log   INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  field TEXT NOT NULL,
  at    INTEGER NOT NULL,                 -- the record's, to search by
  salt  BLOB NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (log, seq, field)
) STRICT, WITHOUT ROWID;

CREATE INDEX hf_audit_value_target ON hf_audit_value (value, at, log, seq) WHERE field = 'target';

-- The Merkle tree of each log: 256 hashes in a tile.
CREATE TABLE hf_audit_tile (
  log    INTEGER NOT NULL,
  level  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (log, level, number)
) STRICT;

-- Signed checkpoints: of this node's logs, and those of others that it keeps as a witness.
CREATE TABLE hf_audit_checkpoint (
  origin TEXT NOT NULL,
  size   INTEGER NOT NULL,
  root   BLOB NOT NULL,
  note   TEXT NOT NULL,
  seen   INTEGER NOT NULL,
  PRIMARY KEY (origin, size)
) STRICT, WITHOUT ROWID;

CREATE INDEX hf_audit_checkpoint_keys ON hf_audit_checkpoint (origin, size) WHERE note LIKE '%key %key %'; -- hand over

-- Ranges of records that copies of logs lack.
CREATE TABLE hf_audit_gap (
  log   INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last  INTEGER NOT NULL,
  hash  BLOB NOT NULL, -- of the chain at the last of them
  PRIMARY KEY (log, first)
) STRICT, WITHOUT ROWID;

-- Values that were erased here, and not yet, as far as is known, at the other end of the link.
CREATE TABLE hf_audit_erasure (
  log    INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  field  TEXT NOT NULL,
  reason TEXT NOT NULL,
  since  INTEGER NOT NULL,
  PRIMARY KEY (log, seq, field)
) STRICT, WITHOUT ROWID;

CREATE TABLE hf_audit_hold (
  name   TEXT PRIMARY KEY,
  filter TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor  TEXT NOT NULL,
  since  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What sites say of their operations: central shows it, and never delivers it. The site's times are
-- microseconds since 1970, by its clock.
CREATE TABLE hf_sitecall (
  site        TEXT NOT NULL,
  id          TEXT NOT NULL,
  epoch       INTEGER NOT NULL,           -- history of the site's store
  revision    INTEGER NOT NULL,           -- within the epoch
  node        TEXT NOT NULL,
  category    TEXT NOT NULL,
  destination TEXT NOT NULL,
  endpoint    TEXT NOT NULL,
  status      TEXT NOT NULL,
  retries     INTEGER NOT NULL,
  last_error  TEXT,
  http        INTEGER,
  instance    TEXT,
  script      TEXT,
  execution   TEXT,
  created     INTEGER NOT NULL,
  attempted   INTEGER,
  ended       INTEGER,
  seen        INTEGER NOT NULL,
  PRIMARY KEY (site, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hf_sitecall_created ON hf_sitecall (created, site, id);
CREATE INDEX hf_sitecall_site ON hf_sitecall (site, created, id);
CREATE INDEX hf_sitecall_status ON hf_sitecall (status, created, site, id);
CREATE INDEX hf_sitecall_waits ON hf_sitecall (site, node, status, created) WHERE ended IS NULL;
CREATE INDEX hf_sitecall_ended ON hf_sitecall (seen) WHERE ended IS NOT NULL;
