package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/sqlwrite/write"
	"github.com/holdfast-mq/holdfast/config"
)

const book = `driver: postgres, dsn: {env: PLAIN}, statements: {Book: "insert into orders (id) values (:_id)"}`

// SF-02, SF-07, SF-32: a database has the defaults of a call.
func TestADatabaseHasTheDefaultsOfACall(t *testing.T) {
	t.Parallel()
	got := parse(t, "destinations: {mes: {concurrency: 4, write: {"+book+"}}}").Destinations["mes"]
	want := config.DefaultForeign()
	want.Concurrency, want.Foreign = 4, &write.Settings{
		Driver: write.Postgres, DSN: config.NewSecret([]byte("correct horse battery")), Duplicate: write.DuplicatePermanent,
		Statements: map[string]string{"Book": "insert into orders (id) values (:_id)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultsOfDatabases(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "driver: is empty",
		`{driver: oracle, dsn: {env: PLAIN}, raw: true}`:                                                 `"oracle" is not one of sqlite, postgres, mysql and sqlserver`,
		`{driver: sqlite, raw: true}`:                                                                    "dsn: is missing",
		`{driver: sqlite, dsn: "hunter2", raw: true}`:                                                    "does not say where the secret is",
		`{driver: sqlite, dsn: {env: EMPTY}, raw: true}`:                                                 "it is empty",
		`{driver: sqlite, dsn: {env: PLAIN}}`:                                                            "statements: are missing, and payloads may not bring statements",
		`{driver: sqlite, dsn: {env: PLAIN}, statements: [a]}`:                                           "is a list",
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {A: "commit"}}`:                                 `statements.A: begins with "COMMIT"`,
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select ?"}}`:                                "write a name, such as :amount",
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {A: "select 1; select 2"}}`:                     "has a second statement",
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {A: "select :_created"}}`:                       ":_created",
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {"a b": "select 1"}}`:                           "is no endpoint that a message can have",
		`{driver: sqlite, dsn: {env: PLAIN}, raw: true, duplicate: ignored}`:                             `"ignored" is not one of permanent and delivered`,
		`{driver: sqlite, dsn: {env: PLAIN}, raw: perhaps}`:                                              "raw",
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select :a.b, :a.b"}}`:                       `types."a.b": is missing, and statement A takes :a.b; write what its column is, such as a.b: integer, with one of text, integer, decimal(20,6)`, // F1-102
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {A: "select :a"}, types: {a: "decimal(16,2)"}}`: `types.a: "decimal(16,2)" must be decimal(digits,digits behind the point), with 1 to 15 digits`,
		`{driver: sqlite, dsn: {env: PLAIN}, statements: {A: "select :a"}, types: {a: date}}`:            `types.a: "date" is no type of a parameter: write one of text, integer`,
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select :a"}, types: {a: decimal(20,6)}}`:    `put one with a comma in quotes`,
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select :a"}, types: {a: text, b: text}}`:    `types.b: is not a parameter of any statement`,
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select :_id"}, types: {_id: text}}`:         `types._id: is the message's own`,
		`{driver: mysql, dsn: {env: PLAIN}, statements: {A: "select :a"}, types: [a]}`:                   "types: is a list",
		`{` + book + `}, url: "http://h"`:                                                                "belongs to a peer, but this destination is a database",
		`{` + book + `}, secret: {env: GOOD}`:                                                            "remove it, or remove write",
		`{` + book + `}, call: {url: "http://h"}`:                                                        "stands beside call",
	} {
		_, _, err := config.Parse("holdfast.yaml", []byte("destinations: {mes: {write: "+text+"}}"), world(nil), config.Overrides{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "correct horse") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
