package postgres_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

var cycles = flag.Int("cycles", 8, "how many times TestChaos disturbs three nodes on one server")

const (
	childEnv   = "HOLDFAST_TEST_NODE"
	chaosLease = 1500 * time.Millisecond
	chaosLimit = 6 // requests that each destination bears, over all nodes
)

// node is a process that produces, delivers and receives until it is killed.
// It says which messages it was told are durable.
func node(name string, producers int, args []string) {
	dsn, url := args[0], args[1]
	ctx := context.Background()
	db, err := postgres.Open(ctx, dsn, postgres.Options{Source: "shop", Node: name, Lease: chaosLease, Timeout: 5 * time.Second}.Relaxed())
	survive(err)
	in := db.Inbox()
	survive(in.Handle("Book", func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
		_, err := tx.Exec(ctx, "INSERT INTO effects VALUES ($1)", string(m.ID))
		return nil, err
	}))
	retry := holdfast.RetryPolicy{First: 20 * time.Millisecond, Max: 200 * time.Millisecond, Factor: 2, Jitter: -1, Attempts: holdfast.Unlimited}
	post := holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) { return call(ctx, url, m) })
	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
		"books": {Retry: retry, Limit: chaosLimit, Deliverer: holdfast.DelivererFunc(in.Receive)},
		"wire":  {Retry: retry, Limit: chaosLimit, Deliverer: post},
		"keyed": {Retry: retry, Limit: chaosLimit, Deliverer: post},
	}}
	for p := range producers {
		go keepProducing(db, fmt.Sprintf("%s-%d-%d", name, os.Getpid(), p))
	}
	survive(d.Run(ctx))
}

func call(ctx context.Context, url string, m holdfast.Message) (r holdfast.Receipt, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return r, err
	}
	req.Header.Set("Destination", m.Destination)
	req.Header.Set("Id", string(m.ID))
	req.Header.Set("Key", m.OrderingKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("status %d", resp.StatusCode)
	}
	return r, nil
}

// keepProducing writes one message after the other, each until the answer says that
// it is there, in the ways that there are.
func keepProducing(db *postgres.DB, name string) {
	destinations := []string{"books", "wire", "keyed"}
	for i := 0; ; i++ {
		m := holdfast.Message{
			ID: holdfast.ID(fmt.Sprintf("%s-%06d", name, i)), Endpoint: "Book",
			Destination: destinations[rand.IntN(3)], Payload: []byte(`{}`),
		}
		if m.Destination == "keyed" {
			m.OrderingKey = name
		}
		for tried := 0; ; tried++ {
			if err := submit(db, m, i%2 == 0); err == nil {
				break
			} else if tried == 2000 {
				survive(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println(m.ID)
		time.Sleep(time.Duration(rand.IntN(6)) * time.Millisecond)
	}
}

func submit(db *postgres.DB, m holdfast.Message, together bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if !together {
		_, err := db.Enqueue(ctx, m)
		return err
	}
	return db.Do(ctx, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1) ON CONFLICT DO NOTHING", string(m.ID)); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, m)
		return err
	})
}

func survive(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// receiver is the other side, which counts.
type receiver struct {
	mu       sync.Mutex
	calls    map[string]int // by id
	keyed    map[string]string
	busy     map[string]int // requests of a key
	active   map[string]int // by destination
	most     map[string]int
	overlaps []string
	disorder []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	id, key, destination := req.Header.Get("Id"), req.Header.Get("Key"), req.Header.Get("Destination")
	r.mu.Lock()
	r.calls[id]++
	r.active[destination]++
	r.most[destination] = max(r.most[destination], r.active[destination])
	if key != "" {
		if r.busy[key]++; r.busy[key] > 1 {
			r.overlaps = append(r.overlaps, id)
		}
		if r.calls[id] == 1 {
			if last := r.keyed[key]; last > id {
				r.disorder = append(r.disorder, last+" before "+id)
			}
			r.keyed[key] = id
		}
	}
	r.mu.Unlock()
	time.Sleep(time.Duration(1+rand.IntN(4)) * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active[destination]--
	if key != "" {
		r.busy[key]--
	}
	if rand.IntN(50) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		r.calls[id]-- // it did not take it
	}
}

// member is one of the nodes, started again whenever it is killed.
type member struct {
	name string
	args []string
	cmd  *exec.Cmd
	done chan struct{}

	mu  *sync.Mutex
	ids map[string]bool
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.cmd = exec.Command(os.Args[0], m.args...)
	m.cmd.Env = append(os.Environ(), childEnv+"="+m.name)
	m.cmd.Stderr = os.Stderr
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.done = make(chan struct{})
	go m.hear(out, m.done)
}

// hear reads what the node says. A line that was cut off is none.
func (m *member) hear(out io.Reader, done chan struct{}) {
	defer close(done)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		m.mu.Lock()
		m.ids[strings.TrimSpace(line)] = true
		m.mu.Unlock()
	}
}

func (m *member) kill() {
	_ = m.cmd.Process.Kill()
	<-m.done
	_ = m.cmd.Wait()
}

// TestChaos disturbs three nodes on one server at random, under load, and then
// counts: 0 acknowledged messages lost, one effect per id, duplicates at the
// receiver no more than were in flight, keys in order and one at a time. Any
// number of disturbances by -args -cycles=N.
func TestChaos(t *testing.T) {
	racetest.Without(t, "the step chaos disturbs them more often")
	server := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := server.Database(t)
	if err := sql(t.Context(), dsn, "CREATE TABLE orders (id text PRIMARY KEY)", "CREATE TABLE effects (id text)"); err != nil {
		t.Fatal(err)
	}
	far := &receiver{calls: map[string]int{}, keyed: map[string]string{}, busy: map[string]int{}, active: map[string]int{}, most: map[string]int{}}
	web := httptest.NewServer(far)
	defer web.Close()
	acknowledged, mu := map[string]bool{}, &sync.Mutex{}
	var members []*member
	for i := range 3 {
		m := &member{name: fmt.Sprint("n", i), args: []string{dsn, web.URL}, mu: mu, ids: acknowledged}
		m.start(t)
		members = append(members, m)
		t.Cleanup(m.kill)
	}
	began := time.Now()
	said := map[string]int{}
	lost := 0 // claims may have been given to others while they were in flight
	for n := range *cycles {
		wait(t, time.Duration(100+rand.IntN(600))*time.Millisecond)
		m := members[rand.IntN(3)]
		what, cost := disturb(t, server, dsn, m, n)
		said[what]++
		lost += cost
	}
	wait(t, time.Second)
	for _, m := range members {
		m.kill()
	}
	lost += 3 * 3 * chaosLimit
	t.Logf("%d disturbances in %s: %v; %d acknowledged", *cycles, time.Since(began).Round(time.Second), said, len(acknowledged))
	settleDown(t, dsn, web.URL)
	judge(t, dsn, far, acknowledged, lost)
}

// disturb does one of the things that happen. Its cost is how many requests
// may have been in flight whose claims went to others.
func disturb(t *testing.T, server *pgtest.Server, dsn string, m *member, n int) (what string, cost int) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const inFlight = 3 * chaosLimit // of one node, in all destinations
	switch []int{0, 1, 2, 3, 4, 0, 1, 0}[n%8] {
	case 0:
		m.kill()
		m.start(t)
		return "kill", inFlight
	case 1: // past its lease
		check(suspend(m.cmd.Process))
		wait(t, chaosLease+time.Duration(rand.IntN(1500))*time.Millisecond)
		check(resume(m.cmd.Process))
		return "stop", inFlight
	case 2:
		check(server.Restart(pgtest.Fast))
		return "restart", 3 * inFlight
	case 3:
		check(server.Restart(pgtest.Immediate))
		return "immediate stop", 3 * inFlight
	}
	check(sql(t.Context(), dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`))
	return "listeners cut", 0
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("stopped")
	}
}

// settleDown delivers what is left by one node more, which produces nothing.
func settleDown(t *testing.T, dsn, url string) {
	t.Helper()
	last := exec.Command(os.Args[0], dsn, url)
	last.Env = append(os.Environ(), childEnv+"=quiet")
	last.Stderr = os.Stderr
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = last.Process.Kill()
		_ = last.Wait()
	}()
	waittest.Until(t, "all messages are delivered", func() bool { return number(t, dsn, "SELECT count(*) FROM hf_queue") == 0 })
}

func texts(t *testing.T, dsn, query string) map[string]bool {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}

func judge(t *testing.T, dsn string, far *receiver, acknowledged map[string]bool, lost int) {
	t.Helper()
	db := open(t, dsn, postgres.Options{Source: "shop"})
	defer shut(t, db)
	delivered := texts(t, dsn, "SELECT convert_from(substr(m.id, 2), 'UTF8') FROM hf_message AS m JOIN hf_final AS f USING (seq) WHERE f.state = 2")
	missing := 0
	for id := range acknowledged {
		if !delivered[id] {
			missing++
			t.Errorf("acknowledged message %s is not delivered", id)
		}
	}
	twice := number(t, dsn, "SELECT count(*) FROM (SELECT FROM effects GROUP BY id HAVING count(*) > 1) AS x")
	without := number(t, dsn, `SELECT count(*) FROM hf_message AS m JOIN hf_lane AS l USING (lane) WHERE l.destination = 'books'
		AND convert_from(substr(m.id, 2), 'UTF8') NOT IN (SELECT id FROM effects)`)
	orders := number(t, dsn, `SELECT count(*) FROM orders WHERE id NOT IN (SELECT convert_from(substr(id, 2), 'UTF8') FROM hf_message)`)
	if twice+without+orders > 0 {
		t.Errorf("%d ids had two effects, %d none, %d orders have no message", twice, without, orders)
	}
	far.mu.Lock()
	defer far.mu.Unlock()
	again := 0
	for _, n := range far.calls {
		again += max(n-1, 0)
	}
	t.Logf("lost %d, %d received by the wire, %d of them again (at most %d were in flight); most at once %v", missing, len(far.calls), again, lost, far.most)
	if again > lost {
		t.Errorf("%d duplicates at the receiver, at most %d were in flight", again, lost)
	}
	if len(far.overlaps) > 0 || len(far.disorder) > 0 {
		t.Errorf("of a key: %d were in flight beside another (%v), %d out of order (%v)", len(far.overlaps), far.overlaps, len(far.disorder), far.disorder)
	}
	for destination, most := range far.most {
		if most > 2*chaosLimit { // a node that was stopped may have some in flight besides
			t.Errorf("%d requests at once for %s, the limit is %d", most, destination, chaosLimit)
		}
	}
	faults, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
