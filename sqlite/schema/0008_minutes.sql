-- What each node did in each minute of the last day.
CREATE TABLE hf_minute (
  minute  INTEGER NOT NULL,               -- since 1970
  node    TEXT NOT NULL,
  noted   INTEGER NOT NULL,
  seconds INTEGER NOT NULL,               -- that the row covers
  numbers TEXT NOT NULL,                  -- JSON
  PRIMARY KEY (minute, node)
) STRICT, WITHOUT ROWID;
