package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/rows"
)

// journal tests holdfast.Journal.
func journal(t *testing.T, m Maker) {
	t.Helper()
	m.meet(t, map[string]func(k *kit){
		"each entry counts once":                entriesOnce,
		"what ends together is told one by one": settledTogether,
		"a projection that fails writes none":   projectionFails,
		"a follower learns of each commit":      learnsAtOnce,
		"a new follower begins where it says":   followerBegins,
		"who is forgotten ends":                 followerForgotten,
		"a page is bounded":                     pageBounded,
		"of two of one name each page is once":  twoOfOneName,
		"every kind says who and what":          entryKinds,
		"what is unread is kept":                unreadKept,
		"what is appended is checked":           appendChecked,
		"an entry says what its message says":   entryAbout,
		"what was answered is told":             answersTold,
	})
}

// ledger is a projection that numbers the entries, so that an entry that is counted twice, or not
// at all, shows. Its rows are lists named by the numbers.
type ledger struct {
	k    *kit
	name string
	from bool

	mu    sync.Mutex
	next  int // the number of the next row
	pages []int
	spoil func() error // makes a fault after a page is made; nil: none
}

func (l *ledger) follower() holdfast.Follower {
	return holdfast.Follower{Name: l.name, FromStart: l.from, Resume: func(ctx context.Context) error {
		lines, err := l.lines(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.next = len(lines)
		return err
	}}
}

func (l *ledger) project(_ context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = append(l.pages, len(page))
	if !slices.IsSortedFunc(page, func(a, b holdfast.Entry) int { return cmp.Compare(a.Seq, b.Seq) }) {
		l.k.t.Error("a page is not in the order of Seq")
	}
	for i := range page {
		e := &page[i]
		line := strings.Join(strings.Fields(fmt.Sprint(e.ID, " ", e.Kind, " ", e.Subject, " ", e.Actor)), " ")
		list = append(list, &rows.List{Name: fmt.Sprintf("%s %06d", l.name, l.next), Description: line, Changed: rows.Now})
		l.next++
	}
	if l.spoil != nil {
		err = l.spoil()
	}
	return list, err
}

// lines returns what it has written so far, in order.
func (l *ledger) lines(ctx context.Context) (lines []string, err error) {
	b, err := l.k.Directory(ctx)
	for _, name := range slices.Sorted(maps.Keys(b.Lists)) {
		if strings.HasPrefix(name, l.name+" ") {
			lines = append(lines, b.Lists[name].Description)
		}
	}
	return lines, err
}

// start follows until stop is called, which returns the result of Project.
func (l *ledger) start() (stop func() error) {
	l.k.t.Helper()
	ctx, cancel := context.WithCancel(l.k.ctx())
	ended := make(chan error, 1)
	go func() { ended <- l.k.Project(ctx, l.follower(), l.project) }()
	waittest.Until(l.k.t, "the follower is known", func() bool { _, known := l.stands(); return known })
	return func() error {
		cancel()
		return <-ended
	}
}

func (l *ledger) stands() (info holdfast.FollowerInfo, known bool) {
	l.k.t.Helper()
	all, err := l.k.Followers(l.k.ctx())
	if err != nil {
		l.k.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(i holdfast.FollowerInfo) bool { return i.Name == l.name })
	if i < 0 {
		return info, false
	}
	return all[i], true
}

// read follows until everything is read.
func (l *ledger) read() {
	l.k.t.Helper()
	stop := l.start()
	l.reads()
	if err := stop(); err != nil {
		l.k.t.Errorf("follow: %v", err)
	}
}

func (l *ledger) reads() {
	l.k.t.Helper()
	waittest.Until(l.k.t, "all is read", func() bool { info, known := l.stands(); return known && info.Unread.IsZero() })
}

// has compares what it has written. The store decides the order of different messages.
func (l *ledger) has(want ...string) {
	l.k.t.Helper()
	got, err := l.lines(l.k.ctx())
	if err != nil {
		l.k.t.Fatal(err)
	}
	of := func(lines []string) map[string][]string {
		by := map[string][]string{}
		for _, line := range lines {
			id, _, _ := strings.Cut(line, " ")
			by[id] = append(by[id], line)
		}
		return by
	}
	equal(l.k, "entries of "+l.name, of(got), of(want))
}

func entriesOnce(k *kit) {
	k.put(holdfast.Message{ID: "early"}) // before the follower: not for it
	l := &ledger{k: k, name: "f"}
	stop := l.start()
	k.put(holdfast.Message{ID: "m"})
	k.put(holdfast.Message{ID: "n"})
	for _, c := range k.claim(3) {
		if c.Message.ID == "n" {
			k.wins(c, parked())
		} else {
			k.wins(c, delivered())
		}
	}
	l.reads()
	if err := stop(); err != nil {
		k.t.Error(err)
	}
	l.has("m enqueued", "n enqueued", "early attempted", "m attempted", "n attempted")
	k.reopen()
	k.requeue("n") // before the follower is back: kept for it
	k.wins(k.one("n"), delivered())
	l.read()
	l.read()
	l.has("m enqueued", "n enqueued", "early attempted", "m attempted", "n attempted", "n requeued anna", "n attempted")
}

func settledTogether(k *kit) {
	l := &ledger{k: k, name: "f"}
	l.read()
	k.put(many(3, "m", holdfast.Message{})...)
	var list []holdfast.Settlement
	for _, c := range k.claim(3) {
		s := delivered()
		s.Seq, s.Token, s.Took = c.Seq, c.Token, time.Duration(c.Seq)*time.Second
		list = append(list, s)
	}
	won, err := k.Settle(k.ctx(), list...)
	if err != nil {
		k.t.Fatal(err)
	}
	equal(k, "who won", won, []bool{true, true, true})
	l.read()
	l.has("m-0 enqueued", "m-1 enqueued", "m-2 enqueued", "m-0 attempted", "m-1 attempted", "m-2 attempted")
	for _, id := range []holdfast.ID{"m-0", "m-1", "m-2"} {
		r := k.get(id)
		if e := r.History[len(r.History)-1]; e.Kind != holdfast.Attempted || e.State != holdfast.Delivered || e.Took != time.Duration(r.Seq)*time.Second {
			k.t.Errorf("the last of %s is %+v, want its own attempt", id, e)
		}
	}
}

// learnsAtOnce waits for some settlements to be read, each after the one before. A follower that
// only polls needs a second for each.
func learnsAtOnce(k *kit) {
	l := &ledger{k: k, name: "f"}
	k.put(many(5, "m", holdfast.Message{})...)
	claims := k.claim(5)
	stop := l.start()
	fastest := time.Hour
	for i, c := range claims {
		began := time.Now()
		k.wins(c, delivered())
		if l.reads(); i > 0 { // a new follower looks by itself
			fastest = min(fastest, time.Since(began))
		}
	}
	if err := stop(); err != nil {
		k.t.Error(err)
	}
	if fastest > 500*time.Millisecond {
		k.t.Errorf("the fastest was read after %v", fastest)
	}
}

func projectionFails(k *kit) {
	l := &ledger{k: k, name: "f"}
	l.read()
	k.put(holdfast.Message{ID: "m"})
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		spoil func() error
		want  func(err error) bool
	}{
		"an error":                             {func() error { return broken }, func(err error) bool { return errors.Is(err, broken) }},
		"a panic":                              {func() error { panic("torn") }, func(err error) bool { return err != nil && strings.Contains(err.Error(), "torn") }},
		"an error that looks like the store's": {func() error { return holdfast.ErrDiskFull }, func(err error) bool { return errors.Is(err, holdfast.ErrDiskFull) }},
	} {
		l.spoil = c.spoil
		if err := k.Project(k.ctx(), l.follower(), l.project); !c.want(err) {
			k.t.Errorf("%s: got %v", name, err)
		}
		l.has()
	}
	ctx, cancel := context.WithCancel(k.ctx())
	l.spoil = func() error { cancel(); return nil }
	if err := k.Project(ctx, l.follower(), l.project); err != nil {
		k.t.Errorf("cancelled: got %v", err)
	}
	l.has()
	for name, r := range map[string]holdfast.Row{
		"of no table": foreignRow{}, "of another type": &foreignRow{"hf_list"}, "that no feature writes": &rows.Message{}, "nil": nil, "a nil list": (*rows.List)(nil),
	} {
		if err := k.Project(k.ctx(), l.follower(), func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) {
			return []holdfast.Row{r}, nil
		}); !errors.Is(err, holdfast.ErrInvalid) {
			k.t.Errorf("a row %s: got %v, want ErrInvalid", name, err)
		}
	}
	l.spoil = nil
	l.read()
	l.has("m enqueued")
}

type foreignRow struct{ table string }

func (f foreignRow) Table() string { return f.table }

func followerBegins(k *kit) {
	known := &ledger{k: k, name: "known"} // so that something is written
	known.read()
	k.put(holdfast.Message{ID: "old"})
	end, start := &ledger{k: k, name: "end"}, &ledger{k: k, name: "start", from: true}
	end.read()
	start.read()
	k.put(holdfast.Message{ID: "new"})
	start.from = false // it is known
	end.read()
	start.read()
	end.has("new enqueued")
	start.has("old enqueued", "new enqueued")
}

func followerForgotten(k *kit) {
	k.fails(k.Forget(k.ctx(), "nobody"), holdfast.ErrNotFound)
	l := &ledger{k: k, name: "f"}
	l.read()
	if info, known := l.stands(); !known || info.Running {
		k.t.Errorf("known %t, %+v, want one that does not run", known, info)
	}
	stop := l.start()
	waittest.Until(k.t, "it runs", func() bool { info, _ := l.stands(); return info.Running })
	k.put(holdfast.Message{ID: "m"})
	l.reads()
	ended := make(chan error, 1)
	if err := k.Forget(k.ctx(), "f"); err != nil {
		k.t.Fatal(err)
	}
	go func() { ended <- stop() }()
	_, known := l.stands()
	if err := <-ended; known || err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("known %t, ended with %v", known, err)
	}
	if err := k.PauseLane(k.ctx(), "a", "anna"); err != nil { // no dispatcher is there to be told
		k.t.Fatal(err)
	}
	again := &ledger{k: k, name: "again", from: true}
	again.read()
	again.has("m enqueued")
}

func pageBounded(k *kit) {
	l := &ledger{k: k, name: "f"}
	l.read()
	k.put(many(1200, "m", holdfast.Message{})...)
	entries := make([]holdfast.Entry, 300)
	for i := range entries {
		entries[i] = holdfast.Entry{Kind: holdfast.Called, Subject: fmt.Sprint("s", i), Detail: []byte(`"` + strings.Repeat("x", 4000) + `"`)}
	}
	for some := range slices.Chunk(entries, holdfast.MaxEntries) {
		if err := k.Append(k.ctx(), some...); err != nil {
			k.t.Fatal(err)
		}
	}
	l.read()
	lines, err := l.lines(k.ctx())
	if err != nil || len(lines) != 1500 || len(l.pages) < 4 || slices.Max(l.pages) > 500 {
		k.t.Errorf("%d entries in pages of %v, %v; want 1500 in pages of 500 at most", len(lines), l.pages, err)
	}
	if last := l.pages[len(l.pages)-1]; last > 262 {
		k.t.Errorf("the last page has %d entries of 4 KB, want 1 MiB at most", last)
	}
}

func twoOfOneName(k *kit) {
	a, b := &ledger{k: k, name: "f"}, &ledger{k: k, name: "f"}
	stopA, stopB := a.start(), b.start()
	var want []string
	for i := range 20 {
		for _, id := range k.put(many(20, fmt.Sprint("m", i), holdfast.Message{})...) {
			want = append(want, string(id)+" enqueued")
		}
	}
	a.reads()
	if err := errors.Join(stopA(), stopB()); err != nil {
		k.t.Error(err)
	}
	a.has(want...)
}
