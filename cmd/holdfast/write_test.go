package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/doctor"
)

// SF-02: a message becomes a row; and the doctor logs in where rows go, and
// writes none.
func TestSendWritesToADatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "mes.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "create table orders (id text primary key, n integer)"); err != nil {
		t.Fatal(err)
	}
	there, away := filepath.Join(dir, "dsn"), filepath.Join(dir, "away")
	write(t, there, path)
	write(t, away, "postgres://holdfast:hunter2@"+freeAddress(t)+"/mes?sslmode=disable")
	wrong := filepath.Join(dir, "wrong")
	write(t, wrong, path+".nowhere")
	statements := `statements: {Book: "insert into orders (id, n) values (:_id, :n)"}, types: {n: integer}`
	c := serving(t, fmt.Sprintf(`{node: {id: n}, destinations: {
  mes: {write: {driver: sqlite, dsn: {file: %s}, %[4]s}}, away: {write: {driver: postgres, dsn: {file: %[2]s}, %[4]s}},
  wrong: {write: {driver: sqlite, dsn: {file: %[3]s}, %[4]s}}}}`, there, away, wrong, statements))
	if out := succeeds(t, "send", "mes", "Book", `{"n":7}`, "--id", "a", "--url", c.url()); !strings.Contains(out, `it is delivered; the answer: {"rowsAffected":1}`) {
		t.Errorf("it said %q", out)
	}
	if out := succeeds(t, "send", "away", "Book", `{"n":7}`, "--wait", "20s", "--url", c.url()); !strings.Contains(out, "it is pending (unreachable: ") {
		t.Errorf("it said %q", out)
	}
	refused(t, exitConflict, []string{"message b is refused", `no statement is named "Sell"`}, "send", "mes", "Sell", "--id", "b", "--url", c.url())
	checks, _, _, out := examined(t, c.args[2:]...)
	wantChecks(t, checks, map[string]doctor.Status{"mes": doctor.OK, "away": doctor.Warning, "wrong": doctor.Failing})
	var n int
	if err := db.QueryRowContext(t.Context(), "select count(*) from orders").Scan(&n); err != nil || n != 1 || strings.Contains(out, "hunter2") {
		t.Errorf("got %d rows, %v; the doctor says %s", n, err, out)
	}
}
