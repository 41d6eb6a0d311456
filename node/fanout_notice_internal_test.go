package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// People are told once a day of each subscription that a node has disabled, and of each that parks messages: by
// several nodes, after restarts, and after a store that was away.
func TestNoticesOfSubscriptions(t *testing.T) {
	t.Parallel()
	stored := map[holdfast.ID]string{}
	away := errors.New("away")
	var fails error
	node := func() *hubNotices {
		return &hubNotices{list: "ops", log: slog.New(slog.DiscardHandler), submit: func(_ context.Context, n notify.Notification) (holdfast.Receipt, error) {
			if fails != nil {
				return holdfast.Receipt{}, fails
			}
			if _, err := notify.Encode(n); err != nil || n.List != "ops" {
				t.Errorf("%+v: %v", n, err)
			}
			if was, known := stored[n.ID]; known && was != n.Body {
				return holdfast.Receipt{}, holdfast.ErrConflict
			}
			stored[n.ID] = n.Body
			return holdfast.Receipt{}, nil
		}}
	}
	at := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	parked := func(after time.Duration, subscription, id string) holdfast.Entry {
		return holdfast.Entry{
			Kind: holdfast.Attempted, State: holdfast.Parked, Reason: holdfast.ReasonExhausted, Destination: "subscription:" + subscription, ID: holdfast.ID(id), At: at.Add(after), Attempt: 8, Error: "HTTP 500",
		}
	}
	disabled := func(actor string) holdfast.Entry {
		return holdfast.Entry{Kind: holdfast.SubscriptionPut, Code: "disabled", Subject: "shop", Actor: actor, Error: "it never answers", At: at}
	}
	permanent := parked(0, "shop", "m")
	permanent.Reason = holdfast.ReasonPermanent
	first, second := node(), node()
	for _, c := range []struct {
		name  string
		by    *hubNotices
		entry holdfast.Entry
		want  int
	}{
		{"a message parks", first, parked(0, "shop", "a"), 1},
		{"another one", first, parked(time.Hour, "shop", "b"), 1},
		{"at another node", second, parked(90*time.Minute, "shop", "c"), 1},
		{"after a restart", node(), parked(100*time.Minute, "shop", "d"), 1},
		{"of another subscription", first, parked(0, "other", "e"), 2},
		{"on the next day", first, parked(3*time.Hour, "shop", "f"), 3},
		{"a node disables", first, disabled("node plant"), 4},
		{"another sees it, too", second, disabled("node plant"), 4},
		{"a person disables", first, disabled("anna"), 4},
		{"it parks for another reason", first, permanent, 4},
		{"another destination", first, holdfast.Entry{Kind: holdfast.Attempted, State: holdfast.Parked, Reason: holdfast.ReasonExhausted, Destination: "erp", At: at}, 4},
	} {
		fails = away
		if _, err := c.by.project(t.Context(), []holdfast.Entry{c.entry}); err != nil && !errors.Is(err, away) {
			t.Errorf("%s, the store away: %v", c.name, err)
		}
		fails = nil
		if _, err := c.by.project(t.Context(), []holdfast.Entry{c.entry}); err != nil || len(stored) != c.want {
			t.Errorf("%s: %d notices, %v, want %d", c.name, len(stored), err, c.want)
		}
	}
}
