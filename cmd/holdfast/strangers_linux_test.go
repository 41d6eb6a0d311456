package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

var (
	manyStrangers = flag.Int("strangers", 60, "how many connections of TestStrangers hold a batch without its end")
	manyRefused   = flag.Int("refused", 3000, "how many requests of TestStrangers are refused")
)

// What strangers may cost a node, however many they are.
const (
	mostMemory = 150 << 20
	mostLog    = 1 << 20
)

// TestStrangers attacks a node, first with batches that lack their last byte,
// unsigned, then with requests that are refused. What that costs is bounded, each
// refusal is counted, and not one request of signed senders and of operators
// fails meanwhile (F1-01, F1-03, F1-18). In full by -args -strangers=400
// -refused=100000.
func TestStrangers(t *testing.T) {
	racetest.Without(t, "its own memory is not bounded so closely")
	r := newStrangersRig(t)
	r.friends(t)
	r.hold(t)
	r.guess(t)
	r.end(t)
}

// strangersRig is a node, and those who use it and may do so.
type strangersRig struct {
	node  *child
	log   string // its file
	token string

	stop   func() // ends the friends, and waits for them
	served atomic.Int64
	mu     sync.Mutex
	took   map[string][]time.Duration // by what was asked
}

func newStrangersRig(t *testing.T) *strangersRig {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write(t, secret, base64.StdEncoding.EncodeToString([]byte(rigSecret)))
	r := &strangersRig{
		node: &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "node")},
		log:  filepath.Join(dir, "log"), took: map[string][]time.Duration{},
	}
	var err error
	if r.node.reader, err = os.Create(r.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.node.reader.Close() })
	r.node.args = serveArgs(t, dir, "node", fmt.Sprintf(`
node: {id: node}
listen: %s
data: %s
receive:
  secrets: {friend: {file: %s}}
  endpoints: {Kept: {keep: true}}
`, r.node.address, r.node.data, secret))
	r.node.start()
	t.Cleanup(r.node.kill)
	r.node.ready()
	status, _, text := exchange(t, http.MethodPost, r.node.url()+"/v1/tokens", `{"name": "operator", "role": "operate"}`)
	if r.token = regexp.MustCompile(`hf_\w+`).FindString(text); r.token == "" {
		t.Fatalf("make a token: %d %s", status, text)
	}
	return r
}

// friends send and look until the rig stops them. Each of their requests must
// succeed.
func (r *strangersRig) friends(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	r.stop = func() { cancel(); all.Wait() }
	t.Cleanup(r.stop)
	key, err := wire.NewSecret([]byte(rigSecret))
	if err != nil {
		t.Fatal(err)
	}
	client, err := transport.NewClient(transport.ClientConfig{URL: r.node.url(), Source: "friend", Secrets: []*wire.Secret{key}, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	send := func(ctx context.Context, id string) error {
		m := holdfast.Message{ID: holdfast.ID(id), Endpoint: "Kept", Kind: holdfast.Signal, Payload: []byte(strings.Repeat("1", 1000))}
		_, err := client.Deliver(ctx, m)
		return err
	}
	operator := oneConnection()
	look := func(ctx context.Context, _ string) error {
		status, _, err := request(ctx, operator, http.MethodGet, r.node.url()+"/v1/inbox?limit=10", r.token, "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("got %d", status)
		}
		return err
	}
	for n, work := range []func(ctx context.Context, id string) error{send, send, look} {
		all.Go(func() {
			what := []string{"send", "send", "look"}[n]
			for i := 0; ctx.Err() == nil; i++ {
				r.time(t, what, func() error {
					each, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
					defer cancel()
					return work(each, fmt.Sprintf("m%d-%d", n, i))
				})
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
}

func (r *strangersRig) time(t *testing.T, what string, do func() error) {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Errorf("%s: %v after %s", what, err, time.Since(began))
	}
	r.served.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took[what] = append(r.took[what], time.Since(began))
}

// hold opens the connections of strangers, and waits until friends have been
// served while all of them were there.
func (r *strangersRig) hold(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var there, again atomic.Int64
	for range *manyStrangers {
		all.Go(func() {
			if there.Add(1); !r.stall(ctx) {
				return
			}
			for again.Add(1); r.stall(ctx); again.Add(1) { // it had to give way, and comes again
			}
		})
	}
	eventuallyWithin(t, "all strangers are there, and some gave way", 5*time.Minute, func() bool {
		return there.Load() == int64(*manyStrangers) && again.Load() >= int64(*manyStrangers/4)
	})
	before := r.served.Load()
	eventuallyWithin(t, "friends are served", 5*time.Minute, func() bool { return r.served.Load() >= before+50 })
	cancel()
	all.Wait()
	t.Logf("%d strangers held batches, and had to give way %d times; memory %s", *manyStrangers, again.Load(), memory(t, r.node))
	if n := refusals(t, r.node)["crowded"]; n == 0 {
		t.Error("nobody had to give way: the test did not test")
	}
}

// stall sends a batch without its last byte, and waits for that to be refused.
// It reports false once ctx has ended.
func (r *strangersRig) stall(ctx context.Context) bool {
	c, err := net.Dial("tcp", r.node.address)
	if err != nil {
		pause(ctx, 10*time.Millisecond)
		return ctx.Err() == nil
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	const size = 4 << 20
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", wire.ReceivePath, wire.BatchType, size)
	part := make([]byte, 64<<10)
	for left := size - 1; left > 0 && err == nil; {
		var n int
		n, err = c.Write(part[:min(left, len(part))])
		left -= n
	}
	_, _ = io.Copy(io.Discard, c) // until it is refused
	return ctx.Err() == nil
}

// guess sends requests that are refused, over a few connections at a time, and
// wants each of them counted.
func (r *strangersRig) guess(t *testing.T) {
	t.Helper()
	before := refusals(t, r.node)
	var next atomic.Int64
	var all sync.WaitGroup
	var mu sync.Mutex
	want := map[string]int{}
	for range 6 {
		all.Go(func() {
			client := oneConnection()
			defer client.CloseIdleConnections()
			for i := int(next.Add(1)); i <= *manyRefused; i = int(next.Add(1)) {
				reason, err := r.guessOnce(t.Context(), client, i)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				mu.Lock()
				want[reason]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d requests refused: %v", *manyRefused, want)
	counted := func(reason string) int { return refusals(t, r.node)[reason] - before[reason] }
	// net/http keeps such a connection a while, and some of those that held
	// batches may still be counted.
	eventuallyWithin(t, "what was no request is counted", time.Minute, func() bool { return counted(noRequest) >= want[noRequest] })
	delete(want, noRequest)
	for reason, n := range want {
		if got := counted(reason); got != n {
			t.Errorf("%s: the metric has %d, want %d", reason, got, n)
		}
	}
}

// noRequest is the reason by which is counted what net/http refuses by itself.
const noRequest = "no_request"

// guessOnce sends one request that is refused, and tells by which reason it is
// to be counted.
func (r *strangersRig) guessOnce(ctx context.Context, client *http.Client, i int) (reason string, err error) {
	if i%50 == 0 {
		return noRequest, r.tooLong()
	}
	method, path, token, body := http.MethodGet, "/v1/messages", "", ""
	switch i % 4 {
	case 0:
		token = bearer.New("hf_")
	case 1:
		method, path = http.MethodPost, wire.ReceivePath
		body, err = forged(i)
	case 2:
		path = fmt.Sprintf("/nothing/%d", i)
	case 3:
		token, path = "hf_wrong", path+"/"+strings.Repeat("x", 20<<10)
	}
	if err != nil {
		return "", err
	}
	status, text, err := request(ctx, client, method, r.node.url()+path, token, body)
	if err == nil && (status < http.StatusBadRequest || len(text) > 1<<10) {
		err = fmt.Errorf("got %d with %d bytes", status, len(text))
	}
	return fmt.Sprint("http_", status), err
}

// tooLong sends more of a path than net/http reads.
func (r *strangersRig) tooLong() error {
	c, err := net.Dial("tcp", r.node.address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _ = fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", strings.Repeat("x", 64<<10))
	_, _ = io.Copy(io.Discard, c) // the answer may be lost on the way
	return nil
}

// forged is a message of a friend with the signature of somebody else.
func forged(i int) (string, error) {
	key, err := wire.NewSecret([]byte("a secret that nobody here knows"))
	if err != nil {
		return "", err
	}
	m := holdfast.Message{ID: holdfast.ID(fmt.Sprint("forged", i)), Source: "friend", Endpoint: "Kept", Kind: holdfast.Signal, Payload: []byte(`1`)}
	text, err := wire.Encode(nil, &m, wire.Seal{Secret: key, Now: time.Now()})
	return string(text), err
}

// end says what the strangers have cost.
func (r *strangersRig) end(t *testing.T) {
	t.Helper()
	r.stop()
	for what, took := range r.took {
		slices.Sort(took)
		t.Logf("%s: %d requests served, half of them in %s, 99%% in %s, all in %s", what, len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
	peak := memory(t, r.node)
	log, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	log = slices.Concat(slices.DeleteFunc(bytes.SplitAfter(log, []byte("\n")), func(line []byte) bool {
		return bytes.Contains(line, []byte(`msg="message processed"`)) // of a friend
	})...)
	t.Logf("memory %s, log %d bytes, %d lines", peak, len(log), bytes.Count(log, []byte("\n")))
	if peak.most > mostMemory {
		t.Errorf("the node took %d MiB", peak.most>>20)
	}
	if len(log) > mostLog {
		t.Errorf("the log has %d bytes; it begins:\n%.2000s", len(log), log)
	}
	if err := r.node.end(); err != nil {
		t.Errorf("stop: %v\n%.2000s", err, log)
	}
}

// oneConnection is a client that opens one connection at a time, and none that
// brings no request.
func oneConnection() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: time.Minute}
}

func request(ctx context.Context, client *http.Client, method, url, token, body string) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// refusals are the counts of refused requests, by reason.
func refusals(t *testing.T, p *child) map[string]int {
	t.Helper()
	_, _, text := exchange(t, http.MethodGet, p.url()+"/metrics", "")
	counts := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^holdfast_requests_refused_count\{.*reason="(\w+)".*\} (\S+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[found[1]] = int(n)
	}
	return counts
}

// used is the memory of a process, in bytes.
type used struct{ now, most int }

func (u used) String() string { return fmt.Sprintf("%d MiB, at most %d MiB", u.now>>20, u.most>>20) }

func memory(t *testing.T, p *child) (u used) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]*int{"VmRSS": &u.now, "VmHWM": &u.most} {
		found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("no %s in\n%s", name, text)
		}
		kb, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		*into = kb << 10
	}
	return u
}
