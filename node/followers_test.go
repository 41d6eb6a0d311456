package node_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// A program's follower of the journal is named in health and metrics; one that has not
// read for long is told of, with the way out, since the journal is kept for it.
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
	put := func(id holdfast.ID) {
		t.Helper()
		if _, err := s.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: "nobody", Endpoint: "E", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	follows, stop := context.WithCancel(t.Context())
	defer stop()
	read, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		ended <- s.Project(follows, holdfast.Follower{Name: "reports", FromStart: true}, func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) {
			if first {
				close(read)
			}
			first = false
			return nil, nil
		})
	}()
	put("read")
	<-read
	waittest.Until(t, "the page is read", func() bool {
		list, err := s.Followers(t.Context())
		return err == nil && len(list) == 1 && list[0].Unread.IsZero()
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	url := serve(t, c)
	shows := func(check, metric string) {
		t.Helper()
		health := ""
		waittest.Until(t, "health says "+check, func() bool {
			_, health = ask(t, "GET", url+"/_rf/health", "")
			return strings.Contains(health, check)
		})
		if _, page := ask(t, "GET", url+"/metrics", ""); !strings.Contains(page, metric) {
			t.Errorf("health is %s, and the metrics have no %s:\n%s", health, metric, page)
		}
	}
	shows(`"name":"journal","status":"ok","detail":"followed by audit, reports"`, "holdfast_journal_unread_seconds{follower=\"reports\"} 0\n")
	put("unread")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `UPDATE hf_entry SET at = at - 3600000000`); err != nil {
		t.Fatal(err)
	}
	shows(`"name":"journal","status":"degraded","detail":"not read by reports for 1h0m`, "holdfast_journal_unread_seconds{follower=\"reports\"} 36")
}
