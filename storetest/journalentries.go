package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

func entryKinds(k *kit) {
	l := &ledger{k: k, name: "f"}
	l.read()
	must := func(err error) {
		k.t.Helper()
		if err != nil {
			k.t.Fatal(err)
		}
	}
	must(k.PauseLane(k.ctx(), "a", "anna"))
	must(k.PauseLane(k.ctx(), "a", "berta")) // it is paused already
	must(k.ResumeLane(k.ctx(), "a", "anna"))
	must(k.PutChannel(k.ctx(), notify.Channel{Name: "mail", Kind: "email"}, "anna"))
	must(k.PutList(k.ctx(), notify.List{Name: "ops"}, "anna"))
	book, err := k.Directory(k.ctx())
	must(err)
	must(k.DeleteList(k.ctx(), "ops", book.Lists["ops"].Version, "berta"))
	must(k.DeleteChannel(k.ctx(), "mail", book.Channels["mail"].Version, "berta"))
	must(k.CreateToken(k.ctx(), "ci", "operator", 0, [32]byte{1}, "anna"))
	k.fails(k.CreateToken(k.ctx(), "ci", "operator", 0, [32]byte{2}, "anna"), holdfast.ErrConflict) // nothing has changed
	must(k.DeleteToken(k.ctx(), "ci", false, "berta"))
	must(k.AddSite(k.ctx(), "plant", [32]byte{3}, "anna"))
	_, err = k.EnrollSite(k.ctx(), [32]byte{3}, [32]byte{4})
	must(err)
	_, err = k.EnrollSite(k.ctx(), [32]byte{3}, [32]byte{4}) // its answer was lost
	must(err)
	must(k.RotateSite(k.ctx(), "plant", [32]byte{5}, false, "anna"))
	must(k.RevokeSite(k.ctx(), "plant", "berta"))
	in := holdfast.Message{ID: "in", Source: "plant", Endpoint: "E", Payload: []byte(`{}`)}
	_, err = k.Keep(k.ctx(), time.Hour, in, in)
	must(err)
	must(k.Done(k.ctx(), "plant", "in", []byte("ok")))
	must(k.Done(k.ctx(), "plant", "in", []byte("ok")))
	done := in
	done.ID = "done"
	_, err = k.Record(k.ctx(), time.Hour, holdfast.Processed{Message: done})
	must(err)
	id := k.put(holdfast.Message{})[0]
	target := notify.Target{Channel: "mail", Address: "a@example.org", Result: notify.Accepted, Attempts: 1}
	must(k.RecordTargets(k.ctx(), id, target))
	target.Result, target.Attempts = notify.Refused, 2 // a recipient that has accepted keeps that outcome
	must(k.RecordTargets(k.ctx(), id, target))
	must(k.Append(k.ctx(), holdfast.Entry{Kind: holdfast.Called, Subject: "m", Code: "retryMessage", Actor: "anna"}))
	l.read()
	l.has(
		"paused a anna", "resumed a anna", "channel_put mail anna", "list_put ops anna", "list_removed ops berta", "channel_removed mail berta",
		"token_added ci anna", "token_removed ci berta", "site_added plant anna", "site_enrolled plant", "site_renewed plant anna", "site_revoked plant berta",
		"in kept plant", "in handled plant", "done handled plant", string(id)+" enqueued", string(id)+" reached a@example.org", "called m anna",
	)
	if h := k.get(id).History; len(h) != 1 || h[0].Kind != holdfast.Enqueued {
		k.t.Errorf("the message's own history is %+v", h)
	}
}

func unreadKept(k *kit) {
	l, lost := &ledger{k: k, name: "f"}, &ledger{k: k, name: "lost"}
	l.read()
	lost.read()
	k.put(holdfast.Message{ID: "m"})
	k.put(holdfast.Message{ID: "newest"})
	k.wins(k.one("m"), delivered())
	if err := k.CreateToken(k.ctx(), "ci", "operator", 0, [32]byte{1}, "anna"); err != nil {
		k.t.Fatal(err)
	}
	k.pass(24 * time.Hour)
	purged := func() (n int) {
		k.t.Helper()
		for more := true; more; {
			some, again, err := k.Purge(k.ctx(), holdfast.Retention{Delivered: time.Hour})
			if err != nil {
				k.t.Fatal(err)
			}
			n, more = n+some, again
		}
		return n
	}
	all := func(name string) []string {
		k.t.Helper()
		f := &ledger{k: k, name: name, from: true}
		f.read()
		lines, err := f.lines(k.ctx())
		if err != nil || k.Forget(k.ctx(), name) != nil {
			k.t.Fatal(err)
		}
		return lines
	}
	l.read()
	if n := purged(); n != 0 || len(all("first")) != 4 {
		k.t.Errorf("%d purged before each follower had read of it", n)
	}
	if err := k.Forget(k.ctx(), "lost"); err != nil {
		k.t.Fatal(err)
	}
	if n, left := purged(), all("second"); n != 1 || len(left) != 1 {
		k.t.Errorf("%d purged, want 1; left are %q, want what the other message has", n, left)
	}
	l.has("m enqueued", "newest enqueued", "m attempted", "token_added ci anna")
}

func appendChecked(k *kit) {
	for name, e := range map[string]holdfast.Entry{
		"of the store":      {Kind: holdfast.Enqueued, Subject: "m"},
		"too long":          {Kind: holdfast.Called, Detail: []byte(`"` + strings.Repeat("x", holdfast.MaxDetail) + `"`)},
		"not JSON":          {Kind: holdfast.Called, Detail: []byte(`{`)},
		"with a long title": {Kind: holdfast.Called, Subject: strings.Repeat("x", holdfast.MaxSubject+1)},
		"of a message":      {Kind: holdfast.Called, ID: "m"},
		"with a number":     {Kind: holdfast.Called, Seq: 7},
		"with a state":      {Kind: holdfast.Called, State: holdfast.Parked},
	} {
		if err := k.Append(k.ctx(), e); !errors.Is(err, holdfast.ErrInvalid) {
			k.t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	k.fails(k.Append(k.ctx(), slices.Repeat([]holdfast.Entry{{Kind: holdfast.Called}}, holdfast.MaxEntries+1)...), holdfast.ErrInvalid)
	k.fails(k.Project(k.ctx(), holdfast.Follower{}, nil), holdfast.ErrInvalid)
	(&ledger{k: k, name: "f"}).read()
	want := []holdfast.Entry{
		{Kind: holdfast.Called, Subject: "m", Outcome: holdfast.Permanent, Code: "retryMessage", Error: "no such message", Actor: "anna", Detail: []byte(`{"n": 1}`)},
		{Kind: holdfast.Called, Subject: "n"},
	}
	if err := k.Append(k.ctx(), want...); err != nil {
		k.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(k.ctx())
	defer stop()
	var got []holdfast.Entry
	if err := k.Project(ctx, holdfast.Follower{Name: "f"}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
		got = slices.Clone(page)
		stop()
		return nil, nil
	}); err != nil || len(got) != 2 || got[0].Seq >= got[1].Seq || got[0].At.IsZero() {
		k.t.Fatalf("told of %+v, %v", got, err)
	}
	for i := range got {
		got[i].Seq, got[i].At = 0, time.Time{}
	}
	equal(k, "appended entries", got, want)
}

func entryAbout(k *kit) {
	known := &ledger{k: k, name: "known"}
	known.read()
	m := holdfast.Message{
		ID: "m", Source: "plant", Endpoint: "E", Kind: holdfast.Command, CorrelationID: "c", Headers: map[string]string{"hf-script": "s", "traceparent": "00-1"},
		Payload: []byte(`"` + strings.Repeat("x", 100<<10) + `"`), // on many pages
	}
	k.put(m, holdfast.Message{ID: "n"})
	for _, c := range k.claim(2) {
		k.wins(c, parked())
	}
	if err := k.Append(k.ctx(), holdfast.Entry{Kind: holdfast.Called, Subject: "m", Code: "retryMessage"}); err != nil {
		k.t.Fatal(err)
	}
	created := k.get("m").Created
	for _, asks := range []bool{true, false} {
		ctx, cancel := context.WithCancel(k.ctx())
		seen := map[holdfast.ID][]*holdfast.About{}
		n := 0
		err := k.Project(ctx, holdfast.Follower{Name: fmt.Sprint("asks ", asks), FromStart: true, About: asks}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
			for i := range page {
				seen[page[i].ID] = append(seen[page[i].ID], page[i].About)
			}
			if n += len(page); n == 5 {
				cancel()
			}
			return nil, nil
		})
		cancel()
		if err != nil {
			k.t.Fatal(err)
		}
		want := map[holdfast.ID][]*holdfast.About{"m": {nil, nil}, "n": {nil, nil}, "": {nil}}
		if asks {
			a := &holdfast.About{Source: m.Source, Endpoint: m.Endpoint, Kind: m.Kind, CorrelationID: m.CorrelationID, Headers: m.Headers, Created: created}
			b := &holdfast.About{Source: k.get("n").Message.Source, Kind: holdfast.Signal, Endpoint: k.get("n").Message.Endpoint, Created: k.get("n").Created}
			want["m"], want["n"] = []*holdfast.About{a, a}, []*holdfast.About{b, b}
		}
		equal(k, fmt.Sprintf("what entries say of messages, asked: %v", asks), seen, want)
	}
}
