-- What each node did in each minute of the last day.
CREATE TABLE hf_minute (
  minute  bigint NOT NULL,                -- since 1970
  node    text COLLATE "C" NOT NULL,
  noted   bigint NOT NULL,
  seconds bigint NOT NULL,                -- that the row covers
  numbers text NOT NULL,                  -- JSON
  PRIMARY KEY (minute, node)
);
