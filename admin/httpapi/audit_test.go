package httpapi_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// audited is a server with an audit log in a real store, which records what it is asked.
func audited(t *testing.T) (*fixture, *sqlite.DB) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.OpenKey(filepath.Join(t.TempDir(), "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	kept := nodestore.New(db, nil)
	d := &audit.Describer{Site: "plant", Node: "n", Incarnation: kept.Audit.Incarnation, Category: func(string) holdfast.Category { return "" }}
	l := &audit.Log{Store: kept.Audit, Journal: db, Describe: d.Describe, Site: "plant", Node: "n", Key: key}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the log follows the journal", func() bool {
		list, err := db.Followers(t.Context())
		return err == nil && len(list) == 1
	})
	return serve(t, func(s *httpapi.Server) { s.Records, s.Calls, s.AuditLog = kept.Audit, db, l }), db
}

// calls appends a call of each subject to the journal, and waits until all are recorded.
func calls(t *testing.T, f *fixture, db *sqlite.DB, subjects ...string) {
	t.Helper()
	for _, s := range subjects {
		if err := db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: s, Actor: "anna", Outcome: holdfast.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	recorded(t, f, db)
}

func recorded(t *testing.T, f *fixture, db *sqlite.DB) {
	t.Helper()
	waittest.Until(t, "all is recorded", func() bool {
		list, err := db.Followers(t.Context())
		return err == nil && list[0].Unread.IsZero()
	})
}

// Cases A9 and A10: CSV has all columns, no cell that a table would run, and a trailer; JSON Lines are exact.
func TestAnExportIsExactAndHarmless(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	subjects := []string{`=HYPERLINK("http://x")`, "+1", "-1", "@a", "plain, \"quoted\""}
	calls(t, f, db, subjects...)
	w := f.do(t, call{method: http.MethodGet, path: "/v1/audit/export?format=csv&actor=anna"})
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != len(subjects)+2 || len(rows[0]) != 25 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	target, n := 14, len(rows)-1
	for i, s := range subjects {
		want := "'" + s
		if s[0] == 'p' {
			want = s
		}
		if got := rows[1+i][target]; got != want {
			t.Errorf("CSV has %q, want %q", got, want)
		}
	}
	if rows[n][0] != "records" || rows[n][1] != "5" || rows[n][24] != rows[n-1][24] {
		t.Errorf("trailer %q", rows[n])
	}
	for _, name := range []string{"id", "occurred", "channel", "kind", "status", "site", "node", "actor", "target", "error", "log", "seq", "hash"} {
		if !strings.Contains(strings.Join(rows[0], ","), name) {
			t.Errorf("no column %s", name)
		}
	}

	recorded(t, f, db) // the first export is recorded
	w = f.do(t, call{method: http.MethodGet, path: "/v1/audit/export"})
	var head audit.ExportHeader
	var tail audit.ExportTrailer
	lines := bufio.NewScanner(w.Body)
	lines.Buffer(nil, 1<<20)
	next := func(v any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the export ends: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), v); err != nil {
			t.Fatal(err)
		}
	}
	next(&head)
	hash, seq, targets := audit.Hash{}, int64(0), []string(nil)
	for {
		var r audit.ExportRecord
		next(&r)
		if r.Leaf == nil {
			if err := json.Unmarshal(lines.Bytes(), &tail); err != nil {
				t.Fatal(err)
			}
			break
		}
		seq++
		if hash = audit.ChainHash(seq, hash, audit.LeafHash(r.Leaf)); hexOf(hash) != r.Hash || r.Seq != seq {
			t.Fatalf("line %d has the number %d and the hash %s", seq, r.Seq, r.Hash)
		}
		record, err := audit.Read(r.Leaf, nil)
		if err != nil {
			t.Fatal(err)
		}
		if record.Actor == "anna" {
			targets = append(targets, record.Target)
		}
	}
	if diff := cmp.Diff(targets, subjects); diff != "" || tail.Count != seq || tail.Last != hexOf(hash) || head.From != 1 || head.Filter != nil {
		t.Errorf("header %+v, trailer %+v; targets (-got +want):\n%s", head, tail, diff)
	}
}

func hexOf(h audit.Hash) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range h {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// Case A13: who searches and exports is recorded, with what for; an export before it begins.
func TestSearchesAndExportsAreRecorded(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x")
	page := ok[api.AuditPage](t, f, call{method: http.MethodGet, path: "/v1/audit?target=x&channel=ApiInbound"})
	if len(page.Records) != 1 || page.Records[0].Actor != "anna" || page.Next != "" {
		t.Fatalf("got %+v", page)
	}
	again := ok[api.AuditRecord](t, f, call{method: http.MethodGet, path: "/v1/audit/" + page.Records[0].ID})
	if diff := cmp.Diff(again, page.Records[0]); diff != "" {
		t.Errorf("the record by its id (-got +want):\n%s", diff)
	}
	f.do(t, call{method: http.MethodGet, path: "/v1/audit/export?errors=true"})
	recorded(t, f, db)
	list := ok[api.AuditPage](t, f, call{method: http.MethodGet, path: "/v1/audit?actor=local"})
	if len(list.Records) != 2 {
		t.Fatalf("got %d records of two calls: %+v", len(list.Records), list.Records)
	}
	if r := list.Records[0]; r.Kind != "Export" || r.Channel != "Operator" || !strings.Contains(r.Request, `"errors":"true"`) || !strings.Contains(string(r.Extra), `"format":"jsonl"`) {
		t.Errorf("the export is recorded as %+v, %s", r, r.Extra)
	}
	if r := list.Records[1]; r.Kind != "ApiCall" || r.HTTPStatus != 200 || r.DurationMs <= 0 || !strings.Contains(string(r.Extra), `"rows":1`) || !strings.Contains(r.Request, `"target":"x"`) || strings.Contains(string(r.Extra), "target") {
		t.Errorf("the search is recorded as %+v, %s", r, r.Extra)
	}
	k := ok[api.AuditKPIs](t, f, call{method: http.MethodGet, path: "/v1/audit/kpis"})
	if k.Records < 4 || k.Errors != 0 || time.Since(k.Newest) > time.Minute {
		t.Errorf("numbers %+v", k)
	}
}

// The overview has what its reader may see, and tells of a part that cannot be read without hiding another.
func TestTheOverviewOfANode(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	f.Lanes = func() []holdfast.LaneStatus {
		return []holdfast.LaneStatus{{Destination: "billing", Up: true}, {Destination: "inventory", Problem: "refused"}}
	}
	f.Health = func() api.Health { return api.Health{Status: api.Failing} }
	if _, err := f.store.Enqueue(t.Context(), holdfast.Message{ID: "m", Destination: "old", Endpoint: "E", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Change("m", func(r *holdfast.Record) { r.State = holdfast.Parked }); err != nil {
		t.Fatal(err)
	}
	calls(t, f, db, "x")
	o := ok[api.Overview](t, f, call{method: http.MethodGet, path: "/v1/health"})
	if o.Status != api.Failing || o.Node != "plant-7" || o.Audit == nil || o.Audit.Records == 0 || o.Sites == nil || o.Notifications == nil || o.SiteCalls != nil || len(o.Unknown) != 0 {
		t.Errorf("got %+v", o)
	}
	want := []api.LaneBrief{{Name: "inventory", Lane: "down", Problem: "refused"}, {Name: "old", Lane: "unknown", Parked: 1}}
	if diff := cmp.Diff(want, o.Lanes); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	f.AuditLag = func(context.Context) (time.Duration, error) { return 0, errors.New("away") }
	if o := ok[api.Overview](t, f, call{method: http.MethodGet, path: "/v1/health"}); o.Audit != nil || len(o.Unknown) != 1 || o.Unknown[0] != "audit" || o.Sites == nil {
		t.Errorf("a part is away: %+v", o)
	}
	reader := api.Grant{Rights: []api.Right{api.Read}}
	if o := (admin.Node{Service: f.Service}).Overview(admin.As(t.Context(), "anna", reader)); o.Audit != nil || len(o.Unknown) != 0 {
		t.Errorf("without the right: %+v", o)
	}
}

// An export that cannot be recorded does not begin; any other call is answered all the same (AU-09).
func TestNoExportWithoutItsRecord(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x")
	f.Calls = &failingLog{}
	w := f.do(t, call{method: http.MethodGet, path: "/v1/audit/export"})
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "leaf") {
		t.Errorf("the export: got %d %s", w.Code, w.Body)
	}
	if page := ok[api.AuditPage](t, f, call{method: http.MethodGet, path: "/v1/audit?target=x"}); len(page.Records) != 1 {
		t.Errorf("the search: got %+v", page)
	}
}

type failingLog struct{}

func (*failingLog) Append(context.Context, ...holdfast.Entry) error { return holdfast.ErrUnavailable }
