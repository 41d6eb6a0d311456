package nodestore_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var listSize = flag.Int("list-messages", 6000, "how many messages the test of lists has; the time of pages is judged from a million on, on a quiet machine")

// Ten destinations; of 20 messages one is parked, one discarded, one pending and the others are delivered.
const (
	fillSQLite = `WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
		INSERT INTO hf_message (seq, id, route, lane, state, due, created, settled, tries, okey)
		SELECT n, unhex(printf('%032x', n * 7919)), 1, 1, CASE n % 20 WHEN 3 THEN 3 WHEN 5 THEN 5 ELSE 2 END, 0, m.created - (?1 - n) * 1000, m.created, 1, CASE WHEN n % 3 = 0 THEN 'k' || n % 1000 END
		FROM n, hf_message AS m WHERE m.seq = 1`
	fillBodies  = `INSERT INTO hf_body (seq, headers, corr, payload) SELECT seq, '{"shift":"night"}', 'run-' || seq / 8, CAST('{"order":' || seq || ',"text":"` + longText + `"}' AS BLOB) FROM hf_message WHERE seq > 1`
	fillEntries = `INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, code, error) SELECT seq, 2, state, created, 1, 1, 'http_503', 'order ' || seq || ' is unknown' FROM hf_message WHERE state = 3`
	longText    = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore"
)

func millionInSQLite(t *testing.T, n int) *sqlite.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	open := func() *sqlite.DB {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{Reserve: -1})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "first", Destination: "erp", Endpoint: "E", Kind: holdfast.Command, Payload: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fillSQLite, fillBodies, fillEntries} {
		var args []any
		if strings.Contains(s, "?1") {
			args = append(args, n)
		}
		if _, err := raw.ExecContext(t.Context(), s, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	return open()
}

func millionInPostgres(t *testing.T, n int) *postgres.DB {
	t.Helper()
	dsn := pgtest.Start(t, pgtest.Options{}).Database(t)
	db, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "first", Destination: "erp", Endpoint: "E", Kind: holdfast.Command, Payload: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	raw, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close(context.WithoutCancel(t.Context())) }()
	for _, s := range []string{
		fmt.Sprintf(`INSERT INTO hf_message (seq, id, route, lane, created, payload, headers, corr, delay, okey)
			SELECT m.seq - n, '\x01'::bytea || int8send(n::bigint * 7919) || int8send(n), m.route, m.lane, m.created - n::bigint * 1000, convert_to('{"order":' || n || ',"text":"%s"}', 'UTF8'), '{"shift":"night"}', 'run-' || n / 8, 0, CASE WHEN n %% 3 = 0 THEN 'k' || n %% 1000 END
			FROM generate_series(1, %d) AS n, hf_message AS m`, longText, n),
		`INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, force) SELECT seq, lane, CASE (seq % 20 + 20) % 20 WHEN 3 THEN 3 WHEN 5 THEN 5 ELSE 2 END, created, 9223372036854775807, 1, 1, 1, false FROM hf_message AS m WHERE NOT EXISTS (SELECT FROM hf_queue AS q WHERE q.seq = m.seq)`,
		`INSERT INTO hf_entry (message, kind, state, at, cycle, attempt, code, error) SELECT seq, 2, 3, settled, 1, 1, 'http_503', 'order ' || seq || ' is unknown' FROM hf_final WHERE state = 3`,
		`ANALYZE`,
	} {
		if _, err := raw.Exec(t.Context(), s); err != nil {
			t.Fatal(s, err)
		}
	}
	return db
}

// NO-18: the first page of each filter, each pair, and all at once, comes in 300 ms, or says how far it looked.
func TestPagesOfMessagesComeSoon(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, n int) (holdfast.Outbox, func() error){
		"sqlite": func(t *testing.T, n int) (holdfast.Outbox, func() error) {
			t.Helper()
			db := millionInSQLite(t, n)
			return db, db.Close
		},
		"postgres": func(t *testing.T, n int) (holdfast.Outbox, func() error) {
			t.Helper()
			db := millionInPostgres(t, n)
			return db, db.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, shut := open(t, *listSize)
			defer func() { _ = shut() }()
			pagesComeSoon(t, admin.Messages{Service: &admin.Service{Outbox: store, Destinations: func() []admin.Destination { return nil }}})
		})
	}
}

func pagesComeSoon(t *testing.T, all admin.Messages) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	fields := []struct {
		name string
		set  func(q *admin.MessageQuery)
	}{
		{"state", func(q *admin.MessageQuery) { q.States = []string{"parked"} }},
		{"destination", func(q *admin.MessageQuery) { q.Destination = "erp" }},
		{"id", func(q *admin.MessageQuery) { q.ID = "00ff" }},
		{"endpoint", func(q *admin.MessageQuery) { q.Endpoint = "none" }},
		{"key", func(q *admin.MessageQuery) { q.Key = "k3" }},
		{"correlation", func(q *admin.MessageQuery) { q.Correlation = "run-1" }},
		{"event", func(q *admin.MessageQuery) { q.Event = "e" }},
		{"topic", func(q *admin.MessageQuery) { q.Topic = "t" }},
		{"from", func(q *admin.MessageQuery) { q.From = "2026-01-01" }},
		{"to", func(q *admin.MessageQuery) { q.To = now }},
		{"code", func(q *admin.MessageQuery) { q.Code = "http_404" }},
		{"error", func(q *admin.MessageQuery) { q.Error = "is unknown" }},
		{"grep", func(q *admin.MessageQuery) { q.Grep = "nothing" }},
		{"cause", func(q *admin.MessageQuery) { q.Cause = "x" }},
	}
	took := func(name string, ask func(ctx context.Context) (int, bool, error)) {
		began := time.Now()
		n, whole, err := ask(t.Context())
		d := time.Since(began)
		if err != nil {
			t.Fatal(name, err)
		}
		t.Logf("%-28s %8.1f ms, %d, all looked at: %v", name, float64(d.Microseconds())/1000, n, whole)
		if *listSize >= 1_000_000 && d > 300*time.Millisecond {
			t.Errorf("%s took %s", name, d)
		}
	}
	page := func(q admin.MessageQuery) func(ctx context.Context) (int, bool, error) {
		q.Limit = 50
		return func(ctx context.Context) (int, bool, error) {
			p, err := all.List(ctx, &q)
			if err == nil && len(p.Messages) < q.Limit && p.Next != "" && p.LookedUntil.IsZero() {
				t.Errorf("%+v: a short page does not say how far it looked", q)
			}
			return len(p.Messages), p.LookedUntil.IsZero(), err
		}
	}
	var every admin.MessageQuery
	for i, a := range fields {
		for _, b := range fields[i:] {
			var q admin.MessageQuery
			a.set(&q)
			b.set(&q)
			took(a.name+"+"+b.name, page(q))
		}
		a.set(&every)
	}
	took("nothing", page(admin.MessageQuery{}))
	took("all", page(every))
	took("parked, counted", page(admin.MessageQuery{States: []string{"parked"}, Count: 10_000}))
	took("all states, counted", page(admin.MessageQuery{Count: 10_000}))
	took("causes", func(ctx context.Context) (int, bool, error) {
		list, err := all.Causes(ctx, &admin.CauseQuery{})
		return int(list.Looked), list.LookedUntil.IsZero(), err
	})
}
