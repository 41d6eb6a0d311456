package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
	hfrows "github.com/holdfast-mq/holdfast/rows"
)

// line is the list that a follower writes for the nth entry that it reads, so that an entry that counts twice, or
// not at all, shows.
func line(n int, e *holdfast.Entry) holdfast.Row {
	return &hfrows.List{Name: fmt.Sprintf("%06d", n), Description: string(e.ID), Changed: hfrows.Now}
}

// follow is a process that follows a journal. It kills itself once it has read so many pages, before the
// rows of the last one are written; 0: somebody else kills it.
func follow(args []string) {
	dsn, name := args[0], args[1]
	most, err := strconv.Atoi(args[2])
	survive(err)
	db, err := postgres.Open(context.Background(), dsn, postgres.Options{Source: "shop", Node: name, Lease: chaosLease, Timeout: 5 * time.Second}.Relaxed())
	survive(err)
	pages, next := 0, 0
	survive(db.Project(context.Background(), followerOf(dsn, &next), func(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
		for i := range page {
			list = append(list, line(next, &page[i]))
			next++
		}
		if pages++; pages == most {
			self, err := os.FindProcess(os.Getpid())
			survive(err)
			survive(self.Kill())
			select {}
		}
		return list, nil
	}))
}

func followerOf(dsn string, next *int) holdfast.Follower {
	return holdfast.Follower{Name: "f", FromStart: true, Resume: func(ctx context.Context) error {
		return onConsole(ctx, dsn, func(c *pgx.Conn) error { return c.QueryRow(ctx, "SELECT count(*) FROM hf_list").Scan(next) })
	}}
}

// readAll follows until nothing is unread.
func readAll(t *testing.T, db *postgres.DB, dsn string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended, next := make(chan error, 1), 0
	go func() {
		ended <- db.Project(ctx, followerOf(dsn, &next), func(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
			for i := range page {
				list = append(list, line(next, &page[i]))
				next++
			}
			return list, nil
		})
	}()
	waittest.Until(t, "all is read", func() bool {
		all, err := db.Followers(t.Context())
		return err == nil && len(all) == 1 && all[0].Unread.IsZero()
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// once holds that each message's one entry counted once.
func once(t *testing.T, dsn string, n int) {
	t.Helper()
	got, want := texts(t, dsn, "SELECT description FROM hf_list"), map[string]bool{}
	for i := range n {
		want[nth(i)] = true
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("entries (-got +want):\n%s", d)
	}
	if got := number(t, dsn, "SELECT count(*) FROM hf_list"); got != n {
		t.Errorf("%d entries count, want %d", got, n)
	}
}

func nth(n int) string { return fmt.Sprintf("m%04d", n) }

// A follower whose process is killed between a page and its commit, or at any other moment, counts each entry
// once (issue 13, item 1).
func TestAFollowerIsKilled(t *testing.T) {
	racetest.Without(t, "its processes are killed")
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, quick("producer"))
	const most = 400
	readAll(t, db, dsn)
	produced := 0
	produce := func(n int) {
		for range n {
			put(t, db, holdfast.Message{ID: holdfast.ID(nth(produced))})
			produced++
		}
	}
	for run, pages := range []int{1, 2, 1, 3, 0, 0, 0, 0} {
		produce(20)
		child := exec.Command(os.Args[0], dsn, fmt.Sprint("follower-", run), strconv.Itoa(pages))
		child.Env = append(os.Environ(), childEnv+"=follow")
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = child.Wait()
			close(ended)
		}()
		if pages == 0 { // killed while it works
			before := number(t, dsn, "SELECT count(*) FROM hf_list")
			waittest.Until(t, "it reads", func() bool {
				produce(1)
				return produced >= most || number(t, dsn, "SELECT count(*) FROM hf_list") > before+run
			})
			_ = child.Process.Kill()
		}
		waittest.Until(t, "it is killed", func() bool {
			select {
			case <-ended:
				return true
			default:
				produce(1)
				return false
			}
		})
	}
	readAll(t, db, dsn)
	once(t, dsn, produced)
}

// A dump that is restored into another cluster, where transactions have other numbers, is followed from
// where its follower was (issue 13, item 1).
func TestAFollowerOfARestoredDump(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, quick("a"))
	readAll(t, db, dsn)
	for i := range 10 {
		put(t, db, holdfast.Message{ID: holdfast.ID(nth(i))})
	}
	readAll(t, db, dsn)
	for i := range 10 {
		put(t, db, holdfast.Message{ID: holdfast.ID(nth(10 + i))})
	}
	shut(t, db)

	other := pgtest.Start(t, pgtest.Options{NoSync: true})
	there := other.Database(t)
	for _, tool := range [][]string{
		{"pg_dump", "--format=custom", "--file=a.dump", "--dbname=" + dsn},
		{"pg_restore", "--exit-on-error", "--no-owner", "--dbname=" + there, "a.dump"},
	} {
		if err := other.Tool(tool[0], tool[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	db = opened(t, there, quick("b"))
	for i := range 10 {
		put(t, db, holdfast.Message{ID: holdfast.ID(nth(20 + i))})
	}
	readAll(t, db, there)
	once(t, there, 30)
}
