package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// numbering is a projection that numbers the entries in rows of its own.
type numbering struct {
	db   *sqlite.DB
	next int
	page func(n int) // is called before each page; nil: nothing
	read int
}

func (p *numbering) run(ctx context.Context) error {
	f := holdfast.Follower{Name: "f", Resume: func(ctx context.Context) error {
		book, err := nodestore.New(p.db, nil).Directory.Directory(ctx)
		p.next = len(book.Lists)
		return err
	}}
	return p.db.Project(ctx, f, func(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
		if p.read++; p.page != nil {
			p.page(p.read)
		}
		for i := range page {
			list = append(list, &rows.List{Name: fmt.Sprintf("%06d", p.next), Description: string(page[i].ID), Changed: rows.Now})
			p.next++
		}
		return list, nil
	})
}

// follows runs it until everything is read.
func (p *numbering) follows(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	waittest.Until(t, "all is read", func() bool { return allRead(p.db) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func allRead(db *sqlite.DB) bool {
	all, err := db.Followers(context.Background())
	return err == nil && len(all) == 1 && all[0].Unread.IsZero()
}

// has looks for so many rows, each of another entry.
func (p *numbering) has(t *testing.T, n int) {
	t.Helper()
	got, err := p.db.SQL(t.Context(), "SELECT count(*), count(DISTINCT description) FROM hf_list")
	if err != nil || got[0][0] != int64(n) || got[0][1] != int64(n) {
		t.Fatalf("rows, and different ones: %v, %v; want %d", got, err, n)
	}
}

// projectChild has more to read than a page, and dies before the second one is projected.
func projectChild(db *sqlite.DB) {
	p := &numbering{db: db, page: func(n int) {
		if n == 2 {
			die()
		}
	}}
	go func() {
		for !allRead(db) { // it is not known yet
			runtime.Gosched()
		}
		ms := make([]holdfast.Message, 700)
		for i := range ms {
			ms[i] = make2(holdfast.ID(fmt.Sprint("m", i)), "")
		}
		_, err := db.Enqueue(context.Background(), ms...)
		must(err)
	}()
	must(p.run(context.Background()))
}

// Whoever dies in the middle of a projection has written what it returned before, and no
// more; it goes on there.
func TestKilledDuringAProjection(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the process under test would be the same, only slower")
	path := filepath.Join(t.TempDir(), "holdfast.db")
	_, out := start(t, "project", path)
	if said := strings.Join(out.all(), "; "); said != "" {
		t.Fatalf("the child said %s", said)
	}
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	p := &numbering{db: db}
	p.has(t, 500)
	if allRead(db) {
		t.Error("the follower is said to have read all")
	}
	p.follows(t)
	p.has(t, 700)
}

// A restored backup has the follower where its rows are.
func TestARestoredFollowerGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "holdfast.db")
	db := open(t, path, sqlite.Options{})
	p := &numbering{db: db}
	p.follows(t)
	enqueue(t, db, message("a"), message("b"))
	p.follows(t)
	enqueue(t, db, message("c"))
	backup := filepath.Join(dir, "backup.db")
	if err := db.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, message("d"))
	p.follows(t)
	p.has(t, 4)
	shut(t, db)
	if _, err := sqlite.Restore(t.Context(), backup, path, sqlite.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	p = &numbering{db: db}
	p.has(t, 2)
	enqueue(t, db, message("e"))
	p.follows(t)
	p.has(t, 4) // a, b, c and e
}
