package postgres_test

import (
	"crypto/sha256"
	"os"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/postgres"
)

// Tables of the first release are brought up to date with all that is in them. SF-16.
func TestTablesOfTheFirstReleaseAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, postgres.Options{})
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "waits", Destination: "a", Endpoint: "E"}); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	first, err := os.ReadFile("schema/0001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := sql(t.Context(), dsn, `DO $do$ DECLARE name text; BEGIN
			FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'hf\_%' AND position('CREATE TABLE ' || relname || ' ' IN $text$`+string(first)+`$text$) = 0 LOOP
				EXECUTE 'DROP TABLE ' || name;
			END LOOP; END $do$`,
		`UPDATE hf_meta SET value = '1' WHERE key = 'schema'`); err != nil {
		t.Fatal(err)
	}
	from, to, err := postgres.Migrate(t.Context(), dsn)
	if err != nil || from != 1 || to < 2 {
		t.Fatalf("from %d to %d, %v", from, to, err)
	}
	db = opened(t, dsn, postgres.Options{})
	if r, err := db.Get(t.Context(), "waits"); err != nil || r.State != holdfast.Pending {
		t.Errorf("%+v, %v", r, err)
	}
	results, err := db.Bundle(t.Context(), notification("n", "plant-1"))
	if err != nil || results[0].Err != nil {
		t.Errorf("ingest: %+v, %v", results, err)
	}
}

func notification(id holdfast.ID, site string) holdfast.Bundle {
	n := notify.Notification{ID: id, Type: "Alarm", List: "ops", Subject: "Pump 3 stopped", Body: "It stopped at noon.", Origin: notify.Origin{Site: site}}
	payload, err := notify.Encode(n)
	if err != nil {
		panic(err)
	}
	first := holdfast.Message{ID: n.Key(), Source: site, Destination: notify.LanePrefix + "mail", Endpoint: notify.Endpoint, Kind: holdfast.Command}
	return notify.BundleOf(&n, sha256.Sum256([]byte(id)), payload, []holdfast.Message{first}, []string{"mail"})
}
