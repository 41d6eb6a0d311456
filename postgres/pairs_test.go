package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/postgres"
	rowkinds "github.com/holdfast-mq/holdfast/rows"
)

// Outbox case 1: whoever takes a node for dead by what it read a moment ago
// changes nothing of what was settled, or claimed by another, meanwhile.
func TestCase1ALateReaper(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b, reaper := opened(t, dsn, quick("a")), opened(t, dsn, quick("b")), opened(t, dsn, quick("r"))
	put(t, a, holdfast.Message{ID: "settled"})
	settleAll(t, a, until(t, a, 1), done())
	put(t, a, holdfast.Message{ID: "claimed"})
	held := until(t, a, 1)
	back := holdfast.Settlement{Outcome: holdfast.NotStarted}
	settleAll(t, a, held, back)
	again := until(t, b, 1)
	before := number(t, dsn, "SELECT count(*) FROM hf_entry")
	if err := reaper.Bury(t.Context(), a.Owner()); err != nil {
		t.Fatal(err)
	}
	r, err := reaper.Get(t.Context(), "settled")
	if err != nil || r.State != holdfast.Delivered || r.Tries != 1 {
		t.Errorf("the settled one is %s after %d tries: %v", r.State, r.Tries, err)
	}
	if n := number(t, dsn, "SELECT count(*) FROM hf_entry"); n != before {
		t.Errorf("the reaper wrote %d events", n-before)
	}
	r, err = reaper.Get(t.Context(), "claimed")
	if err != nil || r.State != holdfast.Claimed || r.Tries != 0 || !b.Holds(again[0]) {
		t.Errorf("the claimed one is %s after %d tries: %v", r.State, r.Tries, err)
	}
	if n := settleAll(t, b, again, done()); n != 1 {
		t.Error("the other node's settlement did not take effect")
	}
}

// Outbox case 6: the row is deleted while it is worked on. The settlement is
// without effect, and others' take effect.
func TestCase6TheRowIsDeleted(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	for i, s := range []holdfast.Settlement{done(), parkIt(), {State: holdfast.Pending, Outcome: holdfast.Unreachable}, {Outcome: holdfast.NotStarted}} {
		gone, stays := fmt.Sprint("gone", i), fmt.Sprint("stays", i)
		put(t, db, holdfast.Message{ID: holdfast.ID(gone)}, holdfast.Message{ID: holdfast.ID(stays)})
		claims := take(t, db, 10)
		var seq int64
		for _, c := range claims {
			if string(c.Message.ID) == gone {
				seq = c.Seq
			}
		}
		if err := sql(t.Context(), dsn, fmt.Sprint("DELETE FROM hf_queue WHERE seq = ", seq), fmt.Sprint("DELETE FROM hf_message WHERE seq = ", seq)); err != nil {
			t.Fatal(err)
		}
		if n := settleAll(t, db, claims, s); n != len(claims)-1 {
			t.Errorf("%s: %d of %d settlements took effect, want all but one", s.State, n, len(claims))
		}
		settleAll(t, db, take(t, db, 10), done())
	}
	if n := number(t, dsn, "SELECT count(*) FROM hf_final WHERE seq NOT IN (SELECT seq FROM hf_message)"); n != 0 {
		t.Errorf("%d rows came back", n)
	}
}

// Outbox case 54: a parked message holds neither its ordering key nor, once it
// is purged, its id.
func TestCase54KeysOfParkedMessages(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	put(t, db, holdfast.Message{ID: "1", OrderingKey: "k"})
	settleAll(t, db, take(t, db, 1), parkIt())
	put(t, db, holdfast.Message{ID: "2", OrderingKey: "k"})
	settleAll(t, db, until(t, db, 1), done())
	pass(t, dsn, time.Hour)
	if n := purgeAll(t, db, holdfast.Retention{Parked: time.Minute}); n != 1 {
		t.Fatalf("%d purged, want the parked one", n)
	}
	put(t, db, holdfast.Message{ID: "1", OrderingKey: "k", Payload: []byte("other")})
	if got := until(t, db, 1); got[0].Message.ID != "1" || string(got[0].Message.Payload) != "other" {
		t.Errorf("claimed %s: %s", got[0].Message.ID, got[0].Message.Payload)
	}
}

// A token that one node makes is known to the other, and so is its end.
func TestTokensOverTwoNodes(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	ctx, hash := t.Context(), [32]byte{1}
	if err := nodestore.New(a, nil).Tokens.CreateToken(ctx, "ci", "viewer", 0, hash, ""); err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(b, nil).Tokens.CreateToken(ctx, "ci", "admin", 0, [32]byte{2}, ""); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a second token of the name: %v", err)
	}
	if name, role, err := nodestore.New(b, nil).Tokens.FindToken(ctx, hash); name != "ci" || role != "viewer" || err != nil {
		t.Errorf("FindToken = %q, %q, %v", name, role, err)
	}
	var list []string
	if err := nodestore.New(a, nil).Tokens.EachToken(ctx, func(name, role string, created, used, _ time.Time, _ bool) {
		if created.IsZero() || used.IsZero() {
			t.Errorf("%s: created %s, used %s", name, created, used)
		}
		list = append(list, name+" "+role)
	}); err != nil || strings.Join(list, ",") != "ci viewer" {
		t.Errorf("tokens %v, %v", list, err)
	}
	if err := nodestore.New(b, nil).Tokens.DeleteToken(ctx, "ci", false, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := nodestore.New(a, nil).Tokens.FindToken(ctx, hash); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a token that was revoked: %v", err)
	}
	if err := nodestore.New(a, nil).Tokens.DeleteToken(ctx, "ci", false, ""); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

// Of two nodes that follow under one name each page is written once.
func TestTwoFollowersOfOneName(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a, b := opened(t, dsn, quick("a")), opened(t, dsn, quick("b"))
	ctx, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for _, db := range []*postgres.DB{a, b} {
		both.Go(func() {
			next := 0
			f := holdfast.Follower{Name: "f", Resume: func(ctx context.Context) error {
				book, err := nodestore.New(db, nil).Directory.Directory(ctx)
				next = len(book.Lists)
				return err
			}}
			if err := db.Project(ctx, f, func(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
				for i := range page {
					list = append(list, &rowkinds.List{Name: fmt.Sprint(next), Description: fmt.Sprint(page[i].Seq), Changed: rowkinds.Now})
					next++
				}
				return list, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, dsn, "SELECT count(*) FROM hf_follower", 1)
	for i := range 10 {
		put(t, a, numbered(20, holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i, "-"))})...)
		settleAll(t, b, until(t, b, 20), done())
	}
	waitFor(t, dsn, "SELECT count(DISTINCT description) FROM hf_list", 400)
	stop()
	both.Wait()
	if all, distinct := number(t, dsn, "SELECT count(*) FROM hf_list"), number(t, dsn, "SELECT count(DISTINCT description) FROM hf_list"); all != 400 || distinct != 400 {
		t.Errorf("%d entries were told, %d different ones; want 400 once each", all, distinct)
	}
}
