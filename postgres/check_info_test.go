package postgres_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a := opened(t, dsn, postgres.Options{Node: "a", Lease: time.Minute})
	b := opened(t, dsn, postgres.Options{Node: "b", Lease: time.Minute})
	if _, err := b.Enqueue(t.Context(), holdfast.Message{Destination: "far", Endpoint: "e", Kind: holdfast.Command}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Claim(t.Context(), map[string]int{"far": 1}); err != nil {
		t.Fatal(err)
	}
	pass(t, dsn, 10*time.Second)
	list, err := a.Nodes(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("Nodes = %+v, %v", list, err)
	}
	type seen struct {
		Name  string
		Lanes []string
		Self  bool
	}
	got := []seen{}
	for _, n := range list {
		got = append(got, seen{n.Name, n.Lanes, n.Self})
		if n.Up < 10*time.Second || n.Up > time.Minute || n.Heard > n.Up || n.Left > time.Minute || n.Left < 0 || !strings.HasPrefix(n.About, "process ") || n.Owner == 0 {
			t.Errorf("node %+v", n)
		}
	}
	if diff := cmp.Diff([]seen{{"a", []string{}, true}, {"b", []string{"far"}, false}}, got); diff != "" {
		t.Error(diff)
	}
}

// Case 62, the gauge: who holds the past, and how many dead rows there are.
func TestServerTellsWhoHoldsThePast(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{NoSync: true, Settings: map[string]string{"max_prepared_transactions": "2", "wal_level": "logical"}})
	dsn := s.Database(t)
	if err := sql(t.Context(), dsn, `CREATE ROLE plain LOGIN PASSWORD 'plain'`, `GRANT CREATE ON SCHEMA public TO plain`, `CREATE TABLE other (n bigint)`); err != nil {
		t.Fatal(err)
	}
	plain := with(t, dsn, func(u *url.URL) { u.User = url.UserPassword("plain", "plain") })
	db := opened(t, plain, postgres.Options{})
	held, err := pgx.Connect(t.Context(), with(t, dsn, setting("application_name", "report")))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close(context.WithoutCancel(t.Context()))
	if _, err := held.Exec(t.Context(), `BEGIN; INSERT INTO other VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	if err := sql(t.Context(), dsn, `BEGIN`, `INSERT INTO other VALUES (2)`, `PREPARE TRANSACTION 'two phases'`); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := db.Own(t.Context(), `UPDATE hf_meta SET value = value`); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() (info postgres.ServerInfo, who []string) {
		t.Helper()
		info, err := db.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range info.Holders {
			who = append(who, h.Kind+" "+h.Who)
			if h.Back < 20 {
				t.Errorf("%+v holds %d transactions, want 20 or more", h, h.Back)
			}
		}
		return info, who
	}
	has := func(who []string, words ...string) bool {
		return slices.ContainsFunc(who, func(line string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
		})
	}
	info, who := ask()
	if !has(who, "session", "report", "not to be seen") || !has(who, "prepared transaction", "two phases") || info.Hidden != 1 {
		t.Errorf("holders %q, %d hidden", who, info.Hidden)
	}
	if info.Oldest() <= 0 || info.Oldest() > time.Minute {
		t.Errorf("oldest %v", info.Oldest())
	}
	if err := sql(t.Context(), dsn, `GRANT pg_read_all_stats TO plain`); err != nil {
		t.Fatal(err)
	}
	info, who = ask()
	if !has(who, "session", "report", "idle in transaction") || info.Hidden != 0 {
		t.Errorf("holders with pg_read_all_stats %q, %d hidden", who, info.Hidden)
	}
	if !strings.HasPrefix(info.Version, "1") || !strings.HasPrefix(info.Address, "127.0.0.1:") || info.Role != "plain" || info.Pooled || info.Connections < 2 || info.Most != 200 {
		t.Errorf("server %+v", info)
	}
	if info.SynchronousCommit != "on" || info.Fsync || !info.FullPageWrites || info.SynchronousWith != "" {
		t.Errorf("settings %+v", info)
	}
	if info.ClockAhead.Abs() > 5*time.Second || info.ClockDoubt <= 0 || info.ClockDoubt > 5*time.Second {
		t.Errorf("clock ahead %v ± %v", info.ClockAhead, info.ClockDoubt)
	}
	if info.Queue().Name != "hf_queue" || info.Queue().Size <= 0 || info.Queue().Vacuumed != -1 || info.Size < info.Queue().Size || len(info.Tables) < 10 {
		t.Errorf("tables %+v", info.Tables)
	}
	if err := sql(t.Context(), dsn, `ROLLBACK PREPARED 'two phases'`, `VACUUM ANALYZE hf_queue`); err != nil {
		t.Fatal(err)
	}
	if info, _ = ask(); info.Queue().Vacuumed < 0 || info.Queue().Vacuumed > time.Minute {
		t.Errorf("vacuumed %v ago", info.Queue().Vacuumed)
	}
}

func TestServerBehindAPooler(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	db := opened(t, pgtest.Bouncer(t, s, pgtest.Session).Through(t, database(t)), postgres.Options{})
	info, err := db.Server(t.Context())
	if err != nil || !info.Pooled {
		t.Errorf("Server = %+v, %v; want it to be pooled", info, err)
	}
	// What a lost commit waits for is the server's process, not the pooler's.
	if taken, is, err := db.Processes(t.Context()); err != nil || taken != is {
		t.Errorf("the connection takes %d for its process, which is %d: %v", taken, is, err)
	}
}
