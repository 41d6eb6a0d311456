package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakRig is a sender and a receiver, and what happens to them.
type soakRig struct {
	t                *testing.T
	sender, receiver *child
	gate             *gate
	unit             time.Duration // of outages and retentions
	client           *http.Client

	accepted, called, done, outagesSeen, discarded, requeued, listed, snapshots, peakWAL atomic.Int64
}

func newSoakRig(t *testing.T, unit time.Duration) *soakRig {
	t.Helper()
	unit = min(unit, 10*time.Second)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write(t, secret, base64.StdEncoding.EncodeToString([]byte(rigSecret)))
	r := &soakRig{
		t: t, unit: unit, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 30 * time.Second},
		sender:   &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "sender")},
		receiver: &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "receiver")},
	}
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		r.called.Add(1)
	}))
	t.Cleanup(program.Close)
	t.Cleanup(r.client.CloseIdleConnections)
	r.gate = &gate{address: freeAddress(t), to: r.receiver.address, conns: map[net.Conn]struct{}{}}
	if err := r.gate.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.gate.shut)
	to := func(url string, ttl time.Duration) string {
		return fmt.Sprintf("{url: %q, secret: {file: %s}, ttl: %s, timeout: 2s, retry: {base: 50ms, cap: 500ms, jitter: 20ms, retries: 0}}", url, secret, ttl)
	}
	r.sender.args = serveArgs(t, dir, "sender", fmt.Sprintf(`
node: {id: sender}
listen: %s
data: %s
log: {level: error}
retention: {delivered: %[3]s, expired: %[3]s, discarded: %[3]s, parked: %[3]s, sweep: 1s}
destinations:
  node: %s
  flaky: %s
  gone: %s
`, r.sender.address, r.sender.data, unit, to(r.receiver.url(), 4*unit), to("http://"+r.gate.address, 4*unit), to("http://"+freeAddress(t), time.Second)))
	window := 4*unit + 2*time.Second
	r.receiver.args = serveArgs(t, dir, "receiver", fmt.Sprintf(`
node: {id: receiver}
listen: %s
data: %s
log: {level: error}
retention: {inbox: %s, sweep: 1s}
receive:
  window: %s
  secrets: {sender: {file: %s}}
  endpoints:
    Kept: {keep: true}
    Called: {forward: "%s"}
`, r.receiver.address, r.receiver.data, 2*window, window, secret, program.URL))
	for _, p := range []*child{r.receiver, r.sender} {
		p.start()
		t.Cleanup(p.kill)
		p.ready()
	}
	return r
}

// ask makes a request and decodes the answer, if into is not nil.
func (r *soakRig) ask(ctx context.Context, method, url string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, b)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// fails tells whether work failed for another reason than its end.
func (r *soakRig) fails(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() == nil {
		r.t.Error(err)
		return true
	}
	return false
}

// send is steady traffic: most of it arrives, some cannot.
func (r *soakRig) send(ctx context.Context, n int) {
	filler := strings.Repeat("x", 50<<10)
	for i := 0; ctx.Err() == nil; i++ {
		to, endpoint, size := "node", "Called", rand.IntN(800)
		switch k := rand.IntN(100); {
		case k < 15:
			endpoint = "Kept"
		case k < 40:
			to = "flaky"
		case k < 43:
			endpoint = "Nobody" // is parked
		case k < 46:
			to = "gone" // expires
		case k < 50:
			size = rand.IntN(len(filler))
		}
		err := r.ask(ctx, http.MethodPost, r.sender.url()+"/v1/messages", map[string]any{
			"id": fmt.Sprintf("s%d-%d", n, i), "destination": to, "endpoint": endpoint, "payload": filler[:size],
		}, nil)
		if r.fails(ctx, err) {
			return
		}
		r.accepted.Add(1)
		pause(ctx, 10*time.Millisecond)
	}
}

// outages takes the way to one destination down, and up again.
func (r *soakRig) outages(ctx context.Context) {
	for pause(ctx, r.unit); ctx.Err() == nil; pause(ctx, r.unit) {
		r.gate.shut()
		pause(ctx, r.unit)
		if r.fails(ctx, r.gate.open()) {
			return
		}
		r.outagesSeen.Add(1)
	}
}

// fetch is the program that does what is kept for it.
func (r *soakRig) fetch(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
		var page struct {
			Messages []struct{ ID string }
		}
		if r.fails(ctx, r.ask(ctx, http.MethodGet, r.receiver.url()+"/v1/inbox?limit=500", nil, &page)) {
			return
		}
		for _, m := range page.Messages {
			if r.fails(ctx, r.ask(ctx, http.MethodPost, r.receiver.url()+"/v1/inbox/"+m.ID+"/done", map[string]any{"response": 1}, nil)) {
				return
			}
			r.done.Add(1)
		}
	}
}

// operate is a person with the operator API open: lists, retries, discards.
func (r *soakRig) operate(ctx context.Context) {
	type page struct {
		Messages []struct{ ID string }
		Next     string
	}
	for ; ctx.Err() == nil; pause(ctx, 500*time.Millisecond) {
		var parked page
		if r.fails(ctx, r.ask(ctx, http.MethodGet, r.sender.url()+"/v1/messages?state=parked&limit=20", nil, &parked)) {
			return
		}
		for i, m := range parked.Messages {
			// It may have been purged meanwhile.
			if i%2 == 0 && r.ask(ctx, http.MethodPost, r.sender.url()+"/v1/messages/"+m.ID+"/discard", nil, nil) == nil {
				r.discarded.Add(1)
			}
			if i%4 == 1 && r.ask(ctx, http.MethodPost, r.sender.url()+"/v1/messages/"+m.ID+"/retry", map[string]any{}, nil) == nil {
				r.requeued.Add(1)
			}
		}
		for list := (page{Next: " "}); list.Next != "" && ctx.Err() == nil; {
			after := list.Next
			list = page{}
			if r.fails(ctx, r.ask(ctx, http.MethodGet, r.sender.url()+"/v1/messages?limit=500&after="+url.QueryEscape(strings.TrimSpace(after)), nil, &list)) {
				return
			}
			r.listed.Add(int64(len(list.Messages)))
		}
	}
}

// readLong is a foreign program that reads one snapshot of a node's file for
// long, now and then.
func (r *soakRig) readLong(ctx context.Context) {
	for pause(ctx, r.unit/2); ctx.Err() == nil; pause(ctx, 2*r.unit) {
		for _, p := range []*child{r.sender, r.receiver} {
			if r.fails(ctx, snapshot(ctx, filepath.Join(p.data, "holdfast.db"), r.unit/2)) {
				return
			}
			r.snapshots.Add(1)
		}
	}
}

func snapshot(ctx context.Context, path string, hold time.Duration) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM hf_message").Scan(&n); err != nil {
		return err
	}
	pause(ctx, hold)
	return nil
}

// happened fails the test if something that it is about did not happen.
func (r *soakRig) happened(t *testing.T) {
	t.Helper()
	values, err := scrape(r.sender.url())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.sender.data, "holdfast.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows int64
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM hf_message").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	purged := r.accepted.Load() - rows
	t.Logf("%d accepted, %d calls, %d kept and done, %.0f parked, %.0f expired, %d discarded, %d requeued, %d purged, %d outages, %d snapshots held, %d rows listed; largest log %.1f MiB",
		r.accepted.Load(), r.called.Load(), r.done.Load(), values["rf_outbox_failed_count"], values["rf_outbox_expired_count"],
		r.discarded.Load(), r.requeued.Load(), purged, r.outagesSeen.Load(), r.snapshots.Load(), r.listed.Load(), float64(r.peakWAL.Load())/mega)
	for _, what := range r.missing(values) {
		t.Errorf("%s: nothing of it in %s: the test did not test", what, *soakFor)
	}
	if purged <= 0 {
		t.Errorf("nothing was purged in %s", *soakFor)
	}
}

// missing names what has not happened yet; values are the sender's metrics.
func (r *soakRig) missing(values map[string]float64) (names []string) {
	for what, n := range map[string]int64{
		"calls": r.called.Load(), "done": r.done.Load(), "parked": int64(values["rf_outbox_failed_count"]), "expired": int64(values["rf_outbox_expired_count"]),
		"discarded": r.discarded.Load(), "requeued": r.requeued.Load(), "outages": r.outagesSeen.Load(), "snapshots": r.snapshots.Load(),
		"listed": r.listed.Load(), "log": r.peakWAL.Load(),
	} {
		if n <= 0 {
			names = append(names, what)
		}
	}
	return names
}

// gate is a way to a node that can be shut: connections are cut, new ones
// refused.
type gate struct {
	address, to string
	mu          sync.Mutex
	listener    net.Listener // nil: shut
	conns       map[net.Conn]struct{}
	all         sync.WaitGroup
}

func (g *gate) open() error {
	l, err := net.Listen("tcp", g.address)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listener = l
	g.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			g.all.Go(func() { g.pass(in) })
		}
	})
	return nil
}

func (g *gate) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", g.to)
	if err != nil {
		return
	}
	defer out.Close()
	g.mu.Lock()
	if g.listener == nil {
		g.mu.Unlock()
		return
	}
	g.conns[in] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.conns, in)
		g.mu.Unlock()
	}()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		in.Close()
	})
	_, _ = io.Copy(out, in)
	out.Close()
	back.Wait()
}

func (g *gate) shut() {
	g.mu.Lock()
	if g.listener != nil {
		g.listener.Close()
		g.listener = nil
	}
	for c := range g.conns {
		c.Close()
	}
	g.mu.Unlock()
	g.all.Wait()
}
