package mariatest_test

import (
	"database/sql"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/mariatest"
)

func TestAServerKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	s := mariatest.Start(t)
	db, err := sql.Open("mysql", s.DSN(s.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "create table t as select 7 as n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("it answers after its end")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "select n from t").Scan(&n); err != nil || n != 7 {
		t.Errorf("got %d, %v", n, err)
	}
}
