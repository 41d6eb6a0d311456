package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// pagesOf are the pages of a specimen's tables and indexes, by name.
func (s *specimen) pagesOf(t *testing.T) map[string][]int {
	t.Helper()
	db, err := sql.Open("sqlite", s.write(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT name, pageno FROM dbstat WHERE pagetype = 'leaf'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	pages := map[string][]int{}
	for rows.Next() {
		var name string
		var page int
		if err := rows.Scan(&name, &page); err != nil {
			t.Fatal(err)
		}
		pages[name] = append(pages[name], page)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return pages
}

// A name of a destination, sender or endpoint stands in its table and in an
// index: whichever of them is damaged, or lacks the name, nothing is lost.
//
// Edge cases 20 and 21; OI-12, damaged file.
func TestDamagedNames(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	s := specimens(t)[0]
	pages := s.pagesOf(t)
	flipped := func(t *testing.T, at int, mask byte) {
		t.Helper()
		t.Run(fmt.Sprintf("%d^%#02x", at, mask), func(t *testing.T) {
			t.Parallel()
			path := s.write(t, func(_ string, content []byte) []byte {
				content[at] ^= mask
				return content
			})
			if v, damage := s.judge(t, path); v != (verdictOf{}) || len(damage) == 0 {
				t.Errorf("it cost %+v; damage: %v", v, damage)
			}
		})
	}
	for table, names := range map[string][]string{"hf_lane": {"keyed", "later"}, "hf_source": {"sender0", "sender2"}, "hf_route": {"E3", "E5"}} {
		for _, where := range []string{table, "sqlite_autoindex_" + table + "_1"} {
			t.Run(where, func(t *testing.T) {
				if len(pages[where]) != 1 {
					t.Fatalf("%d pages", len(pages[where]))
				}
				from := (pages[where][0] - 1) * 4096
				page := s.files[""][from : from+4096]
				for _, name := range names {
					at := bytes.LastIndex(page, []byte(name))
					if at < 0 {
						t.Fatalf("no %q on page %d", name, pages[where][0])
					}
					flipped(t, from+at, 0x02)
				}
				flipped(t, from+4, page[4]^(page[4]-1)) // one cell fewer
				flipped(t, from+4, page[4])             // none
				flipped(t, from+4, page[4]^(page[4]+1)) // one more
			})
		}
	}
}

// A byte of a kept message's content costs this message: it is listed as
// damaged, the store goes on, and the check reports it.
//
// Edge case 21.
func TestDamagedKeptMessage(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	from := (s.pagesOf(t)["hf_inbox_body"][0] - 1) * 4096
	at := bytes.Index(s.files[""][from:from+4096], []byte("in105"))
	if at < 0 {
		t.Fatal("the payload of the kept message is not where its page is")
	}
	path := s.write(t, func(_ string, content []byte) []byte {
		content[from+at] ^= 0x04
		return content
	})
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "node", Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := db.Check(t.Context()); r.Err != nil || r.Broken != 1 {
		t.Errorf("check: %+v", r)
	}
	shut(t, db)
	if v, damage := s.judge(t, path); v != (verdictOf{keptLost: 1}) || len(damage) != 0 {
		t.Errorf("it cost %+v; damage: %v", v, damage)
	}
}

// A damaged message is listed like any other also where a caller's pool has one
// connection.
func TestDamagedKeptMessageInACallersDatabase(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		own := h.open(t, filepath.Join(t.TempDir(), "shop.db"))
		defer own.Close()
		db, err := sqlite.Attach(t.Context(), own, sqlite.Options{Source: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, db)
		if _, err := db.Keep(t.Context(), time.Hour, holdfast.Message{ID: "kept", Source: "s", Endpoint: "E", Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if _, err := own.ExecContext(t.Context(), "UPDATE hf_inbox_body SET payload = x'00'"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if p, err := db.Kept(ctx, holdfast.KeptQuery{}); err != nil || len(p.Messages) != 1 || !p.Messages[0].Damaged {
			t.Errorf("listed %+v, %v", p.Messages, err)
		}
	})
}
