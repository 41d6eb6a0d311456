package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// stored is how many bytes tables and indexes take.
func stored(t *testing.T, db *sqlite.DB) int64 {
	t.Helper()
	rows, err := db.SQL(t.Context(), "SELECT sum(pgsize) FROM dbstat")
	if err != nil {
		t.Fatal(err)
	}
	return rows[0][0].(int64)
}

// However many messages a bundle has, its payload stands once in the file, in memory and in a copy.
func TestABundleHasItsPayloadOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	payload := bytes.Repeat([]byte("0123456789"), 10_000)
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	name := notify.Notification{ID: "n", List: "ops", Origin: notify.Origin{Site: "plant-1"}}
	var ms []holdfast.Message
	var channels []string
	slots := map[string]int{}
	for i := range n {
		c := fmt.Sprint("c", i)
		ms = append(ms, holdfast.Message{ID: notify.MessageID("plant-1", "n", c), Destination: notify.Lane(c), Endpoint: "ops"})
		channels, slots[notify.Lane(c)] = append(channels, c), 1
	}
	ms[0].ID = name.Key()
	if _, err := db.Claim(t.Context(), slots); err != nil { // from here on memory knows what is due
		t.Fatal(err)
	}
	ingest(t, db, notify.BundleOf(&name, [32]byte{1}, payload, ms, channels))
	if got := stored(t, db); got > 1<<20 {
		t.Errorf("the file holds %d bytes", got)
	}
	for _, from := range []string{"memory", "the table"} {
		batch, err := db.Claim(t.Context(), slots)
		if err != nil || len(batch.Claims) < 80 { // as many as one call reads
			t.Fatalf("from %s: %d claims, %v", from, len(batch.Claims), err)
		}
		for _, c := range batch.Claims {
			if got, first := c.Message.Payload, batch.Claims[0].Message.Payload; !bytes.Equal(got, payload) || &got[0] != &first[0] {
				t.Fatalf("from %s: %s has a payload of its own, of %d bytes", from, c.Message.ID, len(got))
			}
		}
		shut(t, db)
		db = open(t, path, sqlite.Options{})
	}
	shut(t, db)
	to := filepath.Join(t.TempDir(), "holdfast.db")
	copied(t, path, to)
	db = open(t, to, sqlite.Options{})
	defer shut(t, db)
	if got := stored(t, db); got > 1<<20 {
		t.Errorf("the copy holds %d bytes", got)
	}
	if batch, err := db.Claim(t.Context(), map[string]int{notify.Lane("c199"): 1}); err != nil || len(batch.Claims) != 1 || !bytes.Equal(batch.Claims[0].Message.Payload, payload) {
		t.Errorf("the copy hands out %d messages, %v, or with another payload", len(batch.Claims), err)
	}
	audit(t, db)
}

// copied moves one file into another.
func copied(t *testing.T, from, to string) {
	t.Helper()
	source, err := sqlite.OpenSource(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	target, err := sqlite.OpenTarget(t.Context(), to, sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storecopy.Copy(t.Context(), source, target, storecopy.Options{From: from, To: to}); err != nil {
		t.Error(err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// pagesOfKind are the pages of a table.
func (s *specimen) pagesOfKind(t *testing.T, table, kind string) (pages []int) {
	t.Helper()
	db, err := sql.Open("sqlite", s.write(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = ?2", table, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var page int
		if err := rows.Scan(&page); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
	}
	if err := rows.Err(); err != nil || len(pages) == 0 {
		t.Fatalf("%s has no %s page: %v", table, kind, err)
	}
	return pages
}

// A page of bundles that is lost costs the content of their messages, which are parked, and no
// name: what is sent again is a duplicate. What only leads to pages costs nothing. A bundle that
// no copy of a notification would take along when it goes is none any more.
//
// Edge cases 20 and 21; OI-12, damaged file.
func TestDamagedBundles(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	for name, test := range map[string]struct {
		table, kind string
		parks       bool
		copies      bool // some are lost
	}{
		"a leaf":                       {table: "hf_bundle", kind: "leaf", parks: true},
		"what leads to the leaves":     {table: "hf_bundle", kind: "internal"},
		"the index of names":           {table: "hf_bundle_name", kind: "leaf"},
		"a leaf of notifications":      {table: "hf_notification", kind: "leaf", copies: true},
		"what leads to notifications":  {table: "hf_notification", kind: "internal"},
		"what leads to notified sites": {table: "hf_notification_rest", kind: "leaf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pages := s.pagesOfKind(t, test.table, test.kind)
			page := pages[len(pages)/2]
			path := s.write(t, func(_ string, content []byte) []byte {
				copy(content[(page-1)*4096:], bytes.Repeat([]byte{0xff}, 4096))
				return content
			})
			db := survives(t, path)
			defer shut(t, db)
			audit(t, db)
			shown, err := db.Notifications(t.Context(), notify.Query{Limit: 500})
			if err != nil || (len(shown.Records) < specimenNotifications) != test.copies {
				t.Errorf("%d notifications are left, %v", len(shown.Records), err)
			}
			for _, r := range shown.Records {
				if results, err := db.Bundle(t.Context(), notification(r.Notification.ID, "plant-1")); err != nil || !results[0].Receipt.Duplicate {
					t.Errorf("sent again: %+v, %v", results, err)
				}
			}
			if v := s.examine(t, db); v.lost > 0 || (v.undecodable > 0) != test.parks {
				t.Errorf("it cost %+v", v)
			}
		})
	}
}

// No hash covers the name of a bundle. A salvage takes it from the notification: what is sent again is a duplicate.
func TestADamagedNameOfABundle(t *testing.T) {
	t.Parallel()
	s := specimen{files: map[string][]byte{}}
	path := s.write(t, nil)
	db := open(t, path, sqlite.Options{Reserve: -1})
	b := notification("a-name-that-is-damaged", "plant-1")
	if results, err := db.Bundle(t.Context(), b); err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	for _, sql := range []string{`UPDATE hf_bundle SET source = 'plant-x'`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.SQL(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, db)
	s.files[""] = contents(t, path)[0]
	path = s.write(t, func(_ string, content []byte) []byte {
		headless(content)
		return content
	})
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	if results, err := db.Bundle(t.Context(), b); err != nil || !results[0].Receipt.Duplicate {
		t.Errorf("sent again: %+v, %v", results, err)
	}
}
