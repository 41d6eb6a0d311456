package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var cycles = flag.Int("cycles", 6, "how many times TestKill kills a process; TestKillSiteAndCentral does half of it, and 12 at least")

// ledger is what the test knows, outside of every process that is killed:
// what was acknowledged to it, and what took effect.
type ledger struct {
	mu       sync.Mutex
	tried    map[string]string // id → endpoint
	accepted map[string]bool
	called   map[string]int // by the Idempotency-Key of forwards
}

func (l *ledger) try(id, endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[id] = endpoint
}

func (l *ledger) accept(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted[id] = true
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

func (l *ledger) call(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called[id]++
}

// The three ways in which a message takes effect at its receiver.
const (
	kept   = "Kept"   // a row of the receiving node
	called = "Called" // a call of a program, at least once, with the same key
	booked = "Booked" // a row of the program's own, in the transaction of the inbox
)

// TestKill kills a real sender and two real receivers with SIGKILL at random,
// under load, and then counts: 0 acknowledged messages lost, one effect per
// id (OI-12; edge cases 2, 8, 10, 12). Any number of cycles by
// -args -cycles=N.
func TestKill(t *testing.T) {
	book := &ledger{tried: map[string]string{}, accepted: map[string]bool{}, called: map[string]int{}}
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		book.call(r.Header.Get("Idempotency-Key"))
		_, _ = io.WriteString(w, `{"done": true}`)
	}))
	defer program.Close()
	rig := newRig(t, program.URL)
	ctx, stopProducers := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	for n := range 6 {
		producers.Go(func() { produce(ctx, book, rig.sender.url(), n) })
	}
	kills := 0
	for n := range *cycles {
		if n%2 == 0 { // else, on a busy machine, no node would ever have started before it is killed
			before := book.count()
			eventuallyWithin(t, "messages are accepted after a kill", 2*time.Minute, func() bool { return book.count() > before+1 })
		}
		pause(t.Context(), time.Duration(20+rand.IntN(160))*time.Millisecond)
		victims := []*child{rig.all()[rand.IntN(3)]}
		if rand.IntN(5) == 0 { // both sides at once
			victims = rig.all()
		}
		for _, p := range victims {
			p.kill()
			kills++
		}
		for _, p := range victims {
			p.start()
		}
	}
	stopProducers()
	producers.Wait()
	rig.drain(t)
	rig.stop(t)
	check(t, book, rig, kills)
}

// produce submits messages one after the other, each until it is
// acknowledged: an id without an answer is submitted again.
func produce(ctx context.Context, book *ledger, url string, producer int) {
	destinations := map[string]string{kept: "node", called: "node", booked: "library"}
	endpoints := []string{kept, called, booked}
	for n := 0; ctx.Err() == nil; n++ {
		id, endpoint := fmt.Sprintf("p%d-%d", producer, n), endpoints[rand.IntN(3)]
		body := fmt.Sprintf(`{"id": %q, "destination": %q, "endpoint": %q, "payload": {"id":  %q}}`, id, destinations[endpoint], endpoint, id)
		book.try(id, endpoint)
		for !submit(url, body) {
			// Goes on after the stop of the test until the answer is there.
			pause(context.WithoutCancel(ctx), 5*time.Millisecond)
		}
		book.accept(id)
		pause(ctx, time.Duration(rand.IntN(6))*time.Millisecond)
	}
}

func submit(url, body string) bool { return submitTo(url+"/v1/messages", body) }

func submitTo(url, body string) bool {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusOK
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// drain waits until the sender has nothing left.
func (r *rig) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stats struct{ Pending, Sending, Failed, Expired int }
	for ctx.Err() == nil {
		if err := getJSON(r.sender.url()+"/_rf/outbox/stats", &stats); err == nil && stats.Pending == 0 {
			break
		}
		pause(ctx, 20*time.Millisecond)
	}
	if stats.Pending != 0 || stats.Failed != 0 || stats.Expired != 0 {
		t.Errorf("after the kills: %+v; want nothing waiting, parked or expired\n%s", stats, r.sender.tail())
	}
}

func getJSON(url string, into any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// check compares the ledger with what the receivers hold.
func check(t *testing.T, book *ledger, r *rig, kills int) {
	t.Helper()
	effects := map[string]int{}
	for id, n := range book.called {
		effects[id] += min(n, 1) // at least once; the program knows repeats by the key
	}
	repeats := 0
	for _, n := range book.called {
		repeats += n - 1
	}
	keptRows(t, filepath.Join(r.node.data, "holdfast.db"), effects)
	bookedRows(t, r.library.data, effects)
	lost, doubled, foreign := 0, 0, 0
	for id := range book.accepted {
		if effects[id] == 0 {
			lost++
			t.Errorf("%s (%s) was acknowledged and is lost", id, book.tried[id])
		}
	}
	for id, n := range effects {
		if n > 1 {
			doubled++
			t.Errorf("%s (%s) took effect %d times", id, book.tried[id], n)
		}
		if _, ok := book.tried[id]; !ok {
			foreign++
			t.Errorf("%s took effect and was never sent", id)
		}
	}
	t.Logf("%d kills, %d acknowledged, %d effects, %d lost, %d doubled, %d foreign; %d calls repeated with the same key",
		kills, len(book.accepted), len(effects), lost, doubled, foreign, repeats)
}

func keptRows(t *testing.T, path string, effects map[string]int) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for after := int64(0); ; {
		page, err := db.Kept(t.Context(), holdfast.KeptQuery{Limit: 500, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			effects[string(m.Message.ID)]++
			if want := fmt.Sprintf(`{"id":  %q}`, m.Message.ID); string(m.Message.Payload) != want {
				t.Errorf("payload of %s is %s, want %s", m.Message.ID, m.Message.Payload, want)
			}
		}
		if after = page.Next; after == 0 {
			return
		}
	}
}

func bookedRows(t *testing.T, path string, effects map[string]int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT id, count(*) FROM effect GROUP BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			t.Fatal(err)
		}
		effects[id] += n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// tailWriter is a writer that keeps the end of what a process printed.
type tailWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *tailWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.Len() > 64<<10 {
		w.text.Reset()
	}
	return w.text.Write(b)
}

func (w *tailWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.text.String()
	return s[max(0, len(s)-2000):]
}
