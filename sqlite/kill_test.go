package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// killable is a piece of work during which a child dies.
type killable struct {
	prepare func(db *sqlite.DB) []holdfast.Claim
	work    func(db *sqlite.DB, claims []holdfast.Claim) error
	// before and after are the states of all messages if the work has not
	// happened, and if it has.
	before, after map[holdfast.ID]holdfast.State
}

func make2(id holdfast.ID, key string) holdfast.Message {
	return holdfast.Message{ID: id, Destination: "a", Endpoint: "E", OrderingKey: key, Headers: map[string]string{"h": "v"}}
}

func prepare(ms ...holdfast.Message) func(db *sqlite.DB) []holdfast.Claim {
	return func(db *sqlite.DB) []holdfast.Claim {
		_, err := db.Enqueue(context.Background(), ms...)
		must(err)
		b, err := db.Claim(context.Background(), map[string]int{"a": 10})
		must(err)
		return b.Claims
	}
}

type states = map[holdfast.ID]holdfast.State

var works = map[string]killable{
	"enqueue": {
		prepare: prepare(make2("known", "k")),
		work: func(db *sqlite.DB, _ []holdfast.Claim) error {
			other := make2("y", "")
			other.Destination = "new lane"[:3]
			_, err := db.Enqueue(context.Background(), make2("x", "k"), other)
			return err
		},
		before: states{"known": holdfast.Pending},
		after:  states{"known": holdfast.Pending, "x": holdfast.Pending, "y": holdfast.Pending},
	},
	"settle": {
		prepare: prepare(make2("ok", ""), make2("retry", ""), make2("bad", "k"), make2("next", "k")),
		work: func(db *sqlite.DB, c []holdfast.Claim) error {
			s := make([]holdfast.Settlement, len(c))
			for i := range c {
				s[i] = holdfast.Settlement{Seq: c[i].Seq, Token: c[i].Token, State: holdfast.Delivered}
				switch c[i].Message.ID {
				case "retry":
					s[i].State = holdfast.Pending
				case "bad":
					s[i].State, s[i].Reason = holdfast.Parked, holdfast.ReasonPermanent
				}
			}
			won, err := db.Settle(context.Background(), s...)
			if slices.Contains(won, false) {
				err = errors.New("a settlement did not take effect")
			}
			return err
		},
		before: states{"ok": holdfast.Pending, "retry": holdfast.Pending, "bad": holdfast.Pending, "next": holdfast.Pending},
		after:  states{"ok": holdfast.Delivered, "retry": holdfast.Pending, "bad": holdfast.Parked, "next": holdfast.Pending},
	},
	"process": {
		prepare: func(*sqlite.DB) []holdfast.Claim { return nil },
		work: func(db *sqlite.DB, _ []holdfast.Claim) error {
			_, err := db.Process(context.Background(), inbound, time.Hour, func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
				if _, err := tx.ExecContext(ctx, "INSERT INTO business VALUES (42)"); err != nil {
					return nil, err
				}
				_, err := tx.Enqueue(ctx, make2("effect", ""))
				return []byte("answer"), err
			})
			return err
		},
		before: states{},
		after:  states{"effect": holdfast.Pending},
	},
}

var inbound = holdfast.Message{ID: "in", Source: "s", Endpoint: "E", Payload: []byte(`1`)}

// F: what was acknowledged is there, and nothing is there by half, wherever
// the process dies.
//
// Outbox case 48; edge cases 2, 18.
func TestKilledBetweenTwoStatements(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the process under test would be the same, only slower")
	template := filepath.Join(t.TempDir(), "template.db")
	db := open(t, template, sqlite.Options{})
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE business (n)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acknowledged := false
			for n := 1; !acknowledged; n++ {
				path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n))
				b := contents(t, template)[0]
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				_, out := start(t, "step", path, name, fmt.Sprint(n))
				acknowledged = len(out.all()) > 0
				died(t, w, path, n, acknowledged)
				if n > 60 {
					t.Fatal("the work has no end")
				}
			}
		})
	}
}

func died(t *testing.T, w killable, path string, n int, acknowledged bool) {
	t.Helper()
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	audit(t, db)
	p, err := db.List(t.Context(), holdfast.Query{})
	if err != nil {
		t.Fatal(err)
	}
	got := states{}
	for _, r := range p.Records {
		got[r.Message.ID] = r.State
	}
	happened := maps.Equal(got, w.after)
	if acknowledged && !happened || !happened && !maps.Equal(got, w.before) {
		t.Errorf("killed at statement %d, acknowledged %t: got %v, want %v or %v", n, acknowledged, got, w.before, w.after)
	}
	business, err := db.SQL(t.Context(), "SELECT (SELECT count(*) FROM business), (SELECT count(*) FROM hf_inbox)")
	if err != nil {
		t.Fatal(err)
	}
	effect := int64(0)
	if _, ok := got["effect"]; ok {
		effect = 1
	}
	if d := cmp.Diff(business, [][]any{{effect, effect}}); d != "" {
		t.Errorf("killed at statement %d: business and inbox rows (-got +want):\n%s", n, d)
	}
	if db.Careful() == 0 {
		t.Errorf("killed at statement %d: the stop was taken for a clean one", n)
	}
	// Everything that is not final can be claimed, one of each key.
	b, err := db.Claim(t.Context(), map[string]int{"a": 10, "new": 10})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	want := 0
	for id, s := range got {
		r, err := db.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if k := r.Message.OrderingKey; s == holdfast.Pending && (k == "" || !keys[k]) {
			keys[k] = true
			want++
		}
	}
	if len(b.Claims) != want {
		t.Errorf("killed at statement %d: %d claims, want %d", n, len(b.Claims), want)
	}
}

// Case 30: a message that kills the process runs out of attempts, and those
// that were in hand with it are delivered, uncharged.
func TestMessageThatKillsTheProcessIsParkedInTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	var innocent []holdfast.ID
	for i := range 60 {
		innocent = append(innocent, holdfast.ID(fmt.Sprint("m", i)))
		m := message(innocent[i])
		m.Destination = []string{"a", "b", "c"}[i%3]
		enqueue(t, db, m)
		if i == 30 {
			enqueue(t, db, message("poison"))
		}
	}
	shut(t, db)
	deaths := 0
	for ; deaths < 20; deaths++ {
		if _, out := start(t, "deliver", path); slices.Contains(out.all(), "drained") {
			break
		}
	}
	// A budget of 3; the first death was after a clean stop, so that its claims
	// were in memory, and some others leave it open who was to blame.
	if deaths < 4 || deaths > 9 {
		t.Errorf("the process died %d times, want 4 to 9", deaths)
	}
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	audit(t, db)
	for _, id := range innocent {
		if r, err := db.Get(t.Context(), id); err != nil || r.State != holdfast.Delivered || r.Failures != 0 {
			t.Errorf("%s is %s, with %d failures, %v", id, r.State, r.Failures, err)
		}
	}
	r, err := db.Get(t.Context(), "poison")
	if err != nil {
		t.Fatal(err)
	}
	if r.State != holdfast.Parked || r.Reason != holdfast.ReasonExhausted {
		t.Errorf("the message is %s, reason %q", r.State, r.Reason)
	}
	reclaimed := 0
	for _, e := range r.History {
		if e.Kind == holdfast.Reclaimed {
			reclaimed++
		}
	}
	if reclaimed < 2 {
		t.Errorf("the history has %d reclaims: %+v", reclaimed, r.History)
	}
}
