package node_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// A program's follower of the journal is named in metrics; health tells of one that has not read for
// long, with the way out, and so it is forgotten.
func TestAForgottenFollowerIsToldOf(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	c := parse(t, "")
	var err error
	if c.Store, err = config.NewDatabase(dsn); err != nil {
		t.Fatal(err)
	}
	s := openDatabase(t, dsn)
	defer s.Close()
	reads(t, s, "reports")
	if _, err := s.Enqueue(t.Context(), holdfast.Message{ID: "unread", Destination: "nobody", Endpoint: "E", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	reads(t, s, "fine")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `UPDATE hf_entry SET at = at - 3600000000`); err != nil {
		t.Fatal(err)
	}
	url := serve(t, c)
	const want = `"name":"journal","status":"degraded","detail":"not read by reports for 1h0m`
	waittest.Until(t, "health says "+want, func() bool {
		_, health := ask(t, "GET", url+"/_rf/health", "")
		return strings.Contains(health, want) && strings.Contains(health, "holdfast journal forget")
	})
	_, page := ask(t, "GET", url+"/metrics", "")
	for _, want := range []string{"{follower=\"fine\"} 0\n", "{follower=\"reports\"} 36"} {
		if !strings.Contains(page, "holdfast_journal_unread_seconds"+want) {
			t.Errorf("the metrics have no %s:\n%s", want, page)
		}
	}
	if status, text := ask(t, "DELETE", url+"/v1/journal/followers/reports", ""); status != http.StatusNoContent {
		t.Errorf("forget: got %d, %s", status, text)
	}
	// That call is an entry that it has yet to read.
	if _, text := ask(t, "GET", url+"/v1/journal/followers", ""); !strings.Contains(text, `{"name":"fine","running":false,"unread":`) {
		t.Errorf("the followers are %s", text)
	}
}

// A node whose audit log was switched off keeps no journal for it.
func TestAnAuditLogThatIsOffIsForgotten(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	c := parse(t, "")
	var err error
	if c.Store, err = config.NewDatabase(dsn); err != nil {
		t.Fatal(err)
	}
	c.Audit.Off = true
	s := openDatabase(t, dsn)
	defer s.Close()
	reads(t, s, "audit")
	serve(t, c)
	waittest.Until(t, "nothing is kept for it", func() bool {
		list, err := s.Followers(t.Context())
		return err == nil && !slices.ContainsFunc(list, func(f holdfast.FollowerInfo) bool { return f.Name == "audit" })
	})
}

// reads follows until the follower has read all.
func reads(t *testing.T, s store, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Project(ctx, holdfast.Follower{Name: name}, func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) { return nil, nil })
	}()
	waittest.Until(t, "it is known, and has read all", func() bool {
		list, err := s.Followers(ctx)
		return err == nil && slices.ContainsFunc(list, func(f holdfast.FollowerInfo) bool { return f.Name == name && f.Unread.IsZero() })
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
