package node_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// F1-55: a database server whose disk is full takes nothing new, and the node is
// not ready; once there is room, it is again, although nobody has sent anything.
func TestAFullDatabaseServerIsNotReady(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	run := func(statements ...string) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		for _, s := range statements {
			if _, err := c.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	url := serve(t, parse(t, fmt.Sprintf("store: %q\nlease: 1s\ndestinations: {erp: {url: 'http://127.0.0.1:1', secret: {env: SECRET}}}\n", dsn)))
	const message = `{"id": %q, "destination": "erp", "endpoint": "E", "payload": 1}`
	is := func(what string, status int, part string) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			got, text := ask(t, "GET", url+"/readyz", "")
			return got == status && strings.Contains(text, part)
		})
	}
	if status, answer := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(message, "before")); status != http.StatusAccepted {
		t.Fatalf("got %d %s", status, answer)
	}
	is("ready", 200, "ready")
	// What the server says when no file can be extended.
	run(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE SQLSTATE ''53100'' USING MESSAGE = ''could not extend file''; END'`,
		`CREATE TRIGGER full_disk BEFORE INSERT ON hf_message EXECUTE FUNCTION full_disk()`, `CREATE TRIGGER full_disk BEFORE INSERT ON hf_meta EXECUTE FUNCTION full_disk()`)
	if status, answer := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(message, "late")); status != http.StatusInsufficientStorage {
		t.Errorf("got %d %s", status, answer)
	}
	is("not ready", 503, "disk full")
	waittest.Until(t, "health tells of the disk, once it has looked at the server", func() bool {
		_, health := ask(t, "GET", url+"/_rf/health", "")
		return strings.Contains(health, `"name":"disk","status":"degraded"`)
	})
	for range 3 { // it has not found room where there is none
		is("still not ready", 503, "disk full")
	}
	run(`DROP TRIGGER full_disk ON hf_message`, `DROP TRIGGER full_disk ON hf_meta`)
	is("ready again", 200, "ready")
	if status, answer := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(message, "late")); status != http.StatusAccepted {
		t.Errorf("got %d %s", status, answer)
	}
	var n int
	c2, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close(t.Context())
	if err := c2.QueryRow(t.Context(), "SELECT count(*) FROM hf_meta WHERE key = 'room'").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d trial rows are left, %v", n, err)
	}
}
