package node_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/adapter/sqlwrite/write"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// SF-02, SF-03, SF-35: a node writes to a database: what it refuses for good
// is parked with its words, a repeat of the same row is a success, and a file
// that is not there holds the destination and charges no message.
func TestWritesToADatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mes.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "create table orders (id text primary key, n integer not null); insert into orders values ('again', 1)"); err != nil {
		t.Fatal(err)
	}
	dsn, missing := filepath.Join(dir, "dsn"), filepath.Join(dir, "missing")
	for name, content := range map[string]string{dsn: path, missing: path + ".missing"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, parse(t, fmt.Sprintf(`
destinations:
  mes:
    write: {driver: sqlite, dsn: {file: %q}, statements: {Book: "insert into orders (id, n) values (:_id, :n)"}, types: {n: integer}, duplicate: delivered}
  away: {write: {driver: sqlite, dsn: {file: %q}, raw: true}, retry: {interval: 20ms, retries: 1}}
`, dsn, missing)))
	for id, c := range map[string]struct {
		to, payload string
		status      int
		answer      string
	}{
		"done":    {"mes", `{"n":7}`, 200, `"response":{"rowsAffected":1}`},
		"again":   {"mes", `{"n":7}`, 200, `"response":{"rowsAffected":0,"duplicate":true}`},
		"refused": {"mes", `{"n":null}`, 422, `"code":"constraint"`},
		"held":    {"away", `{"sql":"select 1"}`, 202, `"outcome":"lane_fault"`},
	} {
		resp, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(fmt.Sprintf(`{"id":%q,"destination":%q,"endpoint":"Book","payload":%s}`, id, c.to, c.payload)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(answer), c.answer) {
			t.Errorf("%s: got %s, %s, want %d with %s", id, resp.Status, answer, c.status, c.answer)
		}
	}
	var rows int
	if err := db.QueryRowContext(t.Context(), "select count(*) from orders where id = 'done' and n = 7 or id = 'again' and n = 1").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("got %d rows, %v", rows, err)
	}
	if err := os.WriteFile(path+".missing", nil, 0o600); err != nil { // an operator has seen to it
		t.Fatal(err)
	}
	var m struct {
		State    string `json:"state"`
		Failures int    `json:"failures"`
	}
	waittest.Until(t, "the message that was held is delivered", func() bool {
		_, text := ask(t, "GET", url+"/v1/messages/held", "")
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m.State == "delivered"
	})
	if m.State != "delivered" || m.Failures != 0 {
		t.Errorf("got %+v", m)
	}
}

// F1-109: what is wrong with the way to a database is said before a start, of
// all that there are, and no secret with it.
func TestPreflightLooksAtDatabases(t *testing.T) {
	t.Parallel()
	c := parse(t, `
destinations:
  away: {write: {driver: mysql, dsn: {env: SECRET}, raw: true}}
  plain: {write: {driver: postgres, dsn: {env: SECRET}, raw: true}}
  wanted: {write: {driver: postgres, dsn: {env: SECRET}, raw: true, unencrypted: true}}
`)
	for name, dsn := range map[string]string{"away": "u:hunter2@h", "plain": "postgres://u:hunter2@db.example/mes", "wanted": "postgres://u:hunter2@db.example/mes"} {
		c.Destinations[name].Foreign.(*write.Settings).DSN = config.NewSecret([]byte(dsn))
	}
	err := node.Preflight(c)
	all, ok := errors.AsType[*config.Error](err)
	if !ok || len(all.Faults) != 2 || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{"destinations.away.write.dsn: cannot be read", "destinations.plain.write.dsn: names another machine without TLS"} {
		if got := all.Faults[i].String(); !strings.HasPrefix(got, want) || i == 1 && !strings.Contains(got, "unencrypted: true") {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	if given := c.GivenUp(); len(given) != 1 || given[0].Key != "destinations.wanted.write.unencrypted" {
		t.Errorf("got %+v as given up", given)
	}
}

// A node never writes into its own database.
func TestADestinationIsNotTheNodesOwnDatabase(t *testing.T) {
	t.Parallel()
	c := parse(t, "destinations: {mes: {write: {driver: sqlite, dsn: {env: SECRET}, raw: true}}}")
	c.Data = t.TempDir()
	c.Destinations["mes"].Foreign.(*write.Settings).DSN = config.NewSecret([]byte(filepath.Join(c.Data, "holdfast.db")))
	if err := node.Serve(t.Context(), c, node.Options{}); err == nil || !strings.Contains(err.Error(), "destination mes: dsn names the database of this node") {
		t.Errorf("got %v", err)
	}
}
