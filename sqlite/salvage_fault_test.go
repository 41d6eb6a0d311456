package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// salvaged is what a salvage has made: rows without the instants at which it wrote them.
func salvaged(t testing.TB, db *sqlite.DB) map[string]string {
	t.Helper()
	made := map[string]string{}
	for table, text := range map[string]string{ // numbers of names depend on the order in which they are met
		"messages": `SELECT m.seq, m.id, l.destination, r.source, r.kind, r.endpoint, m.state, m.failures, m.tries, m.cycle, m.reason, m.okey, m.blocked, m.force
			FROM hf_message AS m JOIN hf_route AS r USING (route) JOIN hf_lane AS l ON l.lane = r.lane ORDER BY m.seq`,
		"lanes":  "SELECT destination, strict, fault, paused, decided_by FROM hf_lane ORDER BY 1",
		"events": "SELECT message, kind, state, cycle, attempt, outcome, reason, code, error, actor FROM hf_entry ORDER BY message, seq",
		"inbox":  "SELECT i.seq, s.name, i.id, i.endpoint, i.hash, i.kept, i.response FROM hf_inbox AS i JOIN hf_source AS s USING (source) ORDER BY 1",
	} {
		made[table] = dump(t, db, text)
	}
	for _, table := range []string{"body", "inbox_body", "token", "site", "follower", "notification", "bundle", "target", "channel", "list", "recipient"} {
		made[table] = dump(t, db, "SELECT * FROM hf_"+table+" ORDER BY 1, 2")
	}
	list := db.Damage()
	if len(list) != 1 || !list[0].Done {
		t.Fatalf("damage: %+v", list)
	}
	made["report"] = fmt.Sprintf("%+v, lost %d, more %t", list[0].Salvaged, list[0].Lost, list[0].More)
	return made
}

func dump(t testing.TB, db *sqlite.DB, text string) string {
	t.Helper()
	rows, err := db.SQL(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}

// An error of any statement of a salvage costs a start, and no row: either the start
// fails, and the next one goes on with it, or nothing is missing.
//
// Edge cases 9 and 61; OI-12, damaged file.
func TestNoErrorOfASalvageIsSwallowed(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a store for each statement of a salvage")
	s := specimens(t)[0]
	pages := s.pagesOf(t)
	damaged := func() string {
		return s.write(t, func(_ string, content []byte) []byte {
			clear(content[:4096])
			for _, table := range []string{"hf_message", "hf_body", "hf_inbox"} { // so that its indexes are asked
				clear(content[(pages[table][1]-1)*4096 : pages[table][1]*4096])
			}
			return content
		})
	}
	calls := map[string]int{}
	var mu sync.Mutex
	p := &tap{}
	p.set(func(sql string) error {
		mu.Lock()
		defer mu.Unlock()
		calls[sql]++
		return nil
	}, nil)
	db := open(t, damaged(), sqlite.Options{Source: "node"}.With(p.wrap))
	p.set(nil, nil)
	want := salvaged(t, db)
	shut(t, db)
	failed := 0
	for sql, count := range calls {
		if strings.HasPrefix(sql, "PRAGMA") || strings.HasPrefix(sql, "CREATE") || strings.HasPrefix(sql, "SAVEPOINT") || strings.HasPrefix(sql, "ROLLBACK") {
			continue
		}
		p := &tap{}
		p.set(nth(count, errors.New("injected"), sql), nil) // the last call: most is there before
		path := damaged()
		o := sqlite.Options{Source: "node", Adopt: true}.With(p.wrap)
		db, err := sqlite.Open(t.Context(), path, o)
		p.set(nil, nil)
		if err != nil {
			failed++
			db = open(t, path, o)
		}
		if diff := cmp.Diff(salvaged(t, db), want); diff != "" {
			t.Errorf("call %d of %s (the start failed: %t):\n%s", count, sql, err != nil, diff)
		}
		shut(t, db)
	}
	t.Logf("%d statements, %d starts failed", len(calls), failed)
	if failed < 40 {
		t.Errorf("only %d starts failed", failed)
	}
}

// A report of a damaged file that cannot be read is told, since nobody knows whether the
// salvage of that file has ended.
func TestAnUnreadableReportIsTold(t *testing.T) {
	t.Parallel()
	path, aside := halfSalvaged(t)
	if err := os.WriteFile(aside+".json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	db := open(t, path, sqlite.Options{Source: "node", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer shut(t, db)
	if !strings.Contains(log.String(), "report of a damaged file is not readable") || !strings.Contains(log.String(), filepath.Base(aside)) {
		t.Errorf("log: %s", log.String())
	}
	if d := db.Damage(); len(d) != 1 || !d[0].More {
		t.Errorf("damage: %+v", d)
	}
}

// What a salvage that was cut short has counted is told when it cannot be read.
func TestAnUnreadableCountIsTold(t *testing.T) {
	t.Parallel()
	path, _ := halfSalvaged(t)
	run(t, raw(t, path), "UPDATE hf_meta SET value = substr(value, 1, length(value) - 1) WHERE key = 'salvaging'")
	var log bytes.Buffer
	db := open(t, path, sqlite.Options{Source: "node", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer shut(t, db)
	if !strings.Contains(log.String(), "the counts of the interrupted salvage are not readable") {
		t.Errorf("log: %s", log.String())
	}
}

// F1-55, OI-12: a salvage that waits for room on the disk says so, once, and goes on.
func TestASalvageThatWaitsIsTold(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	path := s.write(t, func(_ string, content []byte) []byte {
		clear(content[:4096])
		return content
	})
	told, release := make(chan struct{}), make(chan struct{})
	waits := slog.New(watch{slog.DiscardHandler, func(r slog.Record) {
		if r.Message == "salvage waits for room on the disk" {
			close(told) // panics the second time
		}
	}})
	p := &tap{}
	p.set(func(sql string) error {
		select {
		case <-release:
		default:
			if strings.HasPrefix(sql, "INSERT INTO hf_body") {
				return errFull
			}
		}
		return nil
	}, nil)
	db := open(t, path, sqlite.Options{Source: "node", SalvageWait: time.Millisecond, Logger: waits}.With(p.wrap))
	<-told
	close(release)
	waittest.Until(t, "the salvage has ended", func() bool { return !db.Recovering() })
	if v := s.examine(t, db); v != (verdictOf{}) {
		t.Errorf("it cost %+v", v)
	}
	shut(t, db)
}

// watch sees what is logged.
type watch struct {
	slog.Handler
	see func(r slog.Record)
}

func (w watch) Enabled(context.Context, slog.Level) bool { return true }

func (w watch) Handle(_ context.Context, r slog.Record) error {
	w.see(r)
	return nil
}
