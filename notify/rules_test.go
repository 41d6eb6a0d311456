package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-99, NO-04: of two copies the one that wants a person's eye more is told of,
// whichever comes first; all delivered is delivered, when the last one was.
func TestWhichCopyANotificationStandsAs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	order := []notify.Status{notify.Delivered, notify.Discarded, notify.Pending, notify.Retrying, notify.Parked, "new"}
	copyOf := func(i int) notify.Record {
		return notify.Record{
			Notification: notify.Notification{ID: "n"}, Status: order[i], Tries: i + 2, LastError: fmt.Sprint("error ", i),
			Created: at.Add(time.Duration(i) * time.Second), Ended: at.Add(time.Duration(i) * time.Hour),
		}
	}
	for i := range order {
		for j := range order {
			worst := max(i, j)
			want := notify.Standing{ID: "n", Status: order[worst], Retries: worst + 1, LastError: fmt.Sprint("error ", worst), Enqueued: at.Add(time.Duration(i) * time.Second)}
			if worst == 0 {
				want.Delivered = at
			}
			if diff := cmp.Diff(notify.StandingOf([]notify.Record{copyOf(i), copyOf(j)}), want); diff != "" {
				t.Errorf("%s and %s (-got +want):\n%s", order[i], order[j], diff)
			}
		}
	}
	early, late := copyOf(0), copyOf(0)
	late.Ended = at.Add(time.Minute)
	for _, copies := range [][]notify.Record{{early, late}, {late, early}} {
		if got := notify.StandingOf(copies); !got.Delivered.Equal(late.Ended) {
			t.Errorf("delivered at %s, want %s", got.Delivered, late.Ended)
		}
	}
}

// F1-99: what a message's state is called among notifications.
func TestStatusOfAState(t *testing.T) {
	t.Parallel()
	for state, want := range map[holdfast.State][2]notify.Status{
		holdfast.Pending: {notify.Pending, notify.Retrying}, holdfast.Claimed: {notify.Pending, notify.Retrying},
		holdfast.Delivered: {notify.Delivered, notify.Delivered}, holdfast.Discarded: {notify.Discarded, notify.Discarded},
		holdfast.Parked: {notify.Parked, notify.Parked}, holdfast.Expired: {notify.Parked, notify.Parked},
	} {
		for tries, want := range want {
			if got := notify.StatusOf(state, tries); got != want {
				t.Errorf("%s after %d tries: got %s, want %s", state, tries, got, want)
			}
		}
	}
}

// F1-99, NO-17: what is stuck, and which questions are not about what was
// delivered.
func TestWhatAQueryAsksFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after  time.Duration
		status notify.Status
		age    time.Duration
		want   bool
	}{
		"pending too long":     {time.Hour, notify.Pending, time.Hour + 1, true},
		"retrying too long":    {time.Hour, notify.Retrying, 2 * time.Hour, true},
		"not for longer":       {time.Hour, notify.Pending, time.Hour, false},
		"parked":               {time.Hour, notify.Parked, 2 * time.Hour, false},
		"delivered":            {time.Hour, notify.Delivered, 2 * time.Hour, false},
		"nobody said how long": {0, notify.Pending, 2 * time.Hour, false},
	} {
		q := notify.Query{StuckAfter: c.after}
		if got := q.IsStuck(&notify.Record{Status: c.status, Created: now.Add(-c.age)}, now); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		q    notify.Query
		want bool
	}{
		"all":              {notify.Query{}, false},
		"what is stuck":    {notify.Query{OnlyStuck: true}, true},
		"parked":           {notify.Query{Status: []notify.Status{notify.Parked}}, true},
		"parked, or ended": {notify.Query{Status: []notify.Status{notify.Parked, notify.Delivered}}, false},
	} {
		if got := c.q.Waits(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// F1-99: figures of several sites are sums, and the oldest is the oldest of all.
func TestFiguresAreAdded(t *testing.T) {
	t.Parallel()
	got := notify.KPIs{Depth: 1, Stuck: 2, Parked: 3, Delivered: 4, Oldest: time.Hour}
	got.Add(notify.KPIs{Depth: 10, Stuck: 20, Parked: 30, Delivered: 40, Oldest: time.Minute})
	got.Add(notify.KPIs{Oldest: 2 * time.Hour})
	if diff := cmp.Diff(got, notify.KPIs{Depth: 11, Stuck: 22, Parked: 33, Delivered: 44, Oldest: 2 * time.Hour}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// F1-99: what is awaited is awaited until the last answer; without a counter it
// costs nothing.
func TestAwaitedAnswersAreCounted(t *testing.T) {
	t.Parallel()
	var a notify.Answers
	ctx := a.With(t.Context())
	first, second := notify.Await(ctx), notify.Await(ctx)
	first()
	if !a.Awaited() {
		t.Error("one answer is under way, and nobody waits for it")
	}
	second()
	if a.Awaited() {
		t.Error("both have come, and somebody waits")
	}
	var none *notify.Answers
	notify.Await(none.With(context.Background()))()
}

// F1-99: who changes a channel or a list must have seen it as it is.
func TestWhoChangesABookHasSeenIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found         bool
		present, seen int64
		end           bool
		want          error
	}{
		"new":               {false, 0, 0, false, nil},
		"seen":              {true, 3, 3, false, nil},
		"its end, seen":     {true, 3, 3, true, nil},
		"its end, gone":     {false, 0, 3, true, holdfast.ErrNotFound},
		"gone":              {false, 0, 3, false, holdfast.ErrState},
		"there by now":      {true, 3, 0, false, holdfast.ErrState},
		"changed meanwhile": {true, 3, 2, false, holdfast.ErrState},
	} {
		if err := notify.Seen(c.found, c.present, c.seen, c.end); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// F1-99: what a store relies on: each recipient of a list once, and within the
// bounds of a key.
func TestListsAreChecked(t *testing.T) {
	t.Parallel()
	to := func(channel, address string) notify.Recipient {
		return notify.Recipient{Channel: channel, Address: address}
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	for want, l := range map[string]notify.List{
		"":                          {Name: "ops", Recipients: []notify.Recipient{to("mail", "a"), to("room", "a"), to("mail", x(notify.MaxAddressLen)), to(x(holdfast.MaxNameLen), "a")}},
		"name":                      {Name: "a b"},
		"twice on channel mail":     {Name: "ops", Recipients: []notify.Recipient{to("mail", "a"), to("mail", "a")}},
		"has 513 bytes":             {Name: "ops", Recipients: []notify.Recipient{to("mail", x(notify.MaxAddressLen+1))}},
		"names a channel of length": {Name: "ops", Recipients: []notify.Recipient{to(x(holdfast.MaxNameLen+1), "a")}},
	} {
		err := l.Validate()
		want = strings.TrimSuffix(want, " length")
		if want == "" && err == nil {
			continue
		}
		if !errors.Is(err, holdfast.ErrInvalid) || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// F1-99: only an id of version 7 says when: the bytes of another one are no time.
func TestOnlyAnIDWithATimeGivesItsTime(t *testing.T) {
	t.Parallel()
	for id, same := range map[holdfast.ID]bool{
		"0195a5f0-1234-7000-8000-00000000000a": true, "0195a5f0-1234-4000-8000-00000000000a": false, "order 1": false,
	} {
		if got := notify.MessageID("plant-7", id, ""); (got[:13] == "0195a5f0-1234") != same {
			t.Errorf("%s: the message is %s", id, got)
		}
	}
}
