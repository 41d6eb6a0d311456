package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// ours is the library under measurement, in the form that the measures call. A nil field leaves it
// out of the measures that need the field.
type ours struct {
	// Name is printed if there is more than one; child processes find their contender by it.
	Name string
	// Settings says what differs from the library's defaults.
	Settings string
	// Open is for enqueue, cycle, drain, latency, backlog and dead. The queue may implement Filler.
	Open Opener
	// Claim is for claim. It makes a table with rows in dir, or opens an existing one.
	Claim func(ctx context.Context, dir string, rows ClaimRows) (Claimer, error)
	// Hop is for hop.
	Hop Hop
}

// holdfast returns the library, once for each way of using it that is measured.
func holdfast() []ours {
	return []ours{{
		Name: "holdfast", Settings: "defaults, no logger", Open: openOurs, Claim: openOurClaim,
		Hop: Hop{Receive: receiveOurs, Send: sendOurs},
	}}
}

const bareName = "bare loop"

// find returns the contender of a child process.
func find(name string) (ours, error) {
	if name == bareName {
		return ours{Name: name, Open: openBareLoop, Claim: openBareClaim, Hop: bareHop()}, nil
	}
	for _, o := range holdfast() {
		if o.Name == name {
			return o, nil
		}
	}
	return ours{}, fmt.Errorf("no contender %q", name)
}

// queues returns ours as sources, before the others.
func queues(others ...source) []source {
	var s []source
	for _, o := range holdfast() {
		s = append(s, source{name: o.Name, settings: o.Settings, role: roleOurs, open: o.Open})
	}
	return append(s, others...)
}

// ourStore is the part of both stores that a measure needs.
type ourStore interface {
	hf.Store
	hf.Lanes
	hf.Journal
	Counts() hf.Counts
	Close() error
}

// ourQueue is a store with its dispatcher.
type ourQueue struct {
	db    ourStore
	stop  context.CancelFunc
	ended chan error
	close func()
}

func destination(n int) string { return "destination-" + strconv.Itoa(n) }

func openStore(ctx context.Context, dir string) (*sqlite.DB, error) {
	return sqlite.Open(ctx, filepath.Join(dir, "holdfast.db"), sqlite.Options{Source: "bench"})
}

func openOurs(ctx context.Context, s Setup) (Queue, error) {
	db, err := openStore(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	if s.Deliver == nil {
		return &ourQueue{db: db}, nil
	}
	return dispatchOurs(ctx, db, routesTo(s), nil), nil
}

func routesTo(s Setup) map[string]hf.Route {
	routes := map[string]hf.Route{}
	for n := range s.Destinations {
		routes[destination(n)] = hf.Route{Deliverer: hf.DelivererFunc(func(ctx context.Context, m hf.Message) (hf.Receipt, error) {
			return hf.Receipt{ID: m.ID}, s.Deliver(ctx, n, m.Payload)
		})}
	}
	return routes
}

func dispatchOurs(ctx context.Context, db ourStore, routes map[string]hf.Route, closed func()) *ourQueue {
	ctx, stop := context.WithCancel(ctx)
	q := &ourQueue{db: db, stop: stop, ended: make(chan error, 1), close: closed}
	d := &hf.Dispatcher{Store: db, Lanes: db, Routes: routes, Grace: 50 * time.Millisecond}
	go func() { q.ended <- d.Run(ctx) }()
	return q
}

func (q *ourQueue) Enqueue(ctx context.Context, dest int, payload []byte) error {
	_, err := q.db.Enqueue(ctx, hf.Message{Destination: destination(dest), Endpoint: "Bench", Payload: payload})
	return err
}

func (q *ourQueue) Fill(ctx context.Context, dest, count int, payload func(i int) []byte) error {
	return inChunks(count, func(from, to int) error {
		for from < to {
			ms := make([]hf.Message, min(to-from, 1000))
			for i := range ms {
				ms[i] = hf.Message{Destination: destination(dest), Endpoint: "Bench", Payload: payload(from + i)}
			}
			if _, err := q.db.Enqueue(ctx, ms...); err != nil {
				return err
			}
			from += len(ms)
		}
		return nil
	})
}

func (q *ourQueue) Unsettled(context.Context) (int, error) { return int(q.db.Counts().Pending), nil }

func (q *ourQueue) Close() error {
	var err error
	if q.stop != nil {
		q.stop()
		err = <-q.ended
	}
	if q.close != nil {
		q.close()
	}
	return errors.Join(err, q.db.Close())
}

// ourClaimer claims from the table and gives the claims back.
type ourClaimer struct{ db ourStore }

func openOurClaim(ctx context.Context, dir string, rows ClaimRows) (Claimer, error) {
	if err := fillOurs(ctx, dir, rows); err != nil {
		return nil, err
	}
	db, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &ourClaimer{db}, nil
}

func (c *ourClaimer) Claim(ctx context.Context, limit int) (int, float64, error) {
	began := time.Now()
	b, err := c.db.Claim(ctx, map[string]int{destination(0): limit})
	took := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	back := make([]hf.Settlement, len(b.Claims))
	for i, m := range b.Claims {
		back[i] = hf.Settlement{Seq: m.Seq, Token: m.Token, Outcome: hf.NotStarted}
	}
	_, err = c.db.Settle(ctx, back...)
	return len(b.Claims), float64(took.Nanoseconds()) / 1000, err
}

func (c *ourClaimer) Close() error { return c.db.Close() }

// fillOurs makes the rows that will be claimed through the store, which knows their hashes, and the
// others with the bare connection, in the library's schema.
func fillOurs(ctx context.Context, dir string, rows ClaimRows) error {
	db, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	if db.Counts().Pending > 0 {
		return db.Close()
	}
	text := payload(0)
	payload := func(int) []byte { return text }
	q := &ourQueue{db: db}
	if err := errors.Join(q.Fill(ctx, 0, rows.Due, payload), q.Close()); err != nil {
		return err
	}
	c, err := openBareFile(filepath.Join(dir, "holdfast.db"))
	if err != nil {
		return err
	}
	return errors.Join(
		c.fill(1, stateParked, rows.Parked, payload), c.fill(1, stateDelivered, rows.Delivered, payload),
		c.fill(1, statePending, rows.Dead, payload), c.Close(),
	)
}

// The hop: two nodes over HTTP, signed, in the single and in the batch form.

const hopSecret = "a shared secret of the bench only"

func receiveOurs(ctx context.Context, h Receiving) error {
	db, err := openStore(ctx, h.Dir)
	if err != nil {
		return err
	}
	secret, err := wire.NewSecret([]byte(hopSecret))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	receiver := &hf.Endpoints{Log: db, Map: map[string]hf.Endpoint{"Bench": {Keep: true}}}
	handler, err := transport.NewServer(transport.ServerConfig{
		Receiver: receiver, Destination: "receiver",
		Peer: func(string) (transport.Peer, bool) { return transport.Peer{Secrets: []*wire.Secret{secret}}, true },
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(h.Listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, db.Close())
	}
	return db.Close()
}

func sendOurs(ctx context.Context, s Setup, url string, batch bool) (Queue, error) {
	db, err := openStore(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	secret, err := wire.NewSecret([]byte(hopSecret))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	conf := transport.ClientConfig{URL: url, Source: "bench", Secrets: []*wire.Secret{secret}, Concurrency: 64, MaxBatch: 1}
	if batch {
		conf.MaxBatch = 0 // the default
	}
	client, err := transport.NewClient(conf)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	route := hf.Route{Deliverer: counted{client, s.Deliver}, Limit: 64}
	return dispatchOurs(ctx, db, map[string]hf.Route{destination(0): route}, client.Close), nil
}

// counted reports to the measure each message that the receiver has acknowledged.
type counted struct {
	*transport.Client
	acked Deliver
}

func (c counted) Deliver(ctx context.Context, m hf.Message) (hf.Receipt, error) {
	r, err := c.Client.Deliver(ctx, m)
	if err == nil {
		err = c.acked(ctx, 0, m.Payload)
	}
	return r, err
}

func (c counted) DeliverBatch(ctx context.Context, ms []hf.Message) []hf.Result {
	list := c.Client.DeliverBatch(ctx, ms)
	for i := range list {
		if list[i].Err == nil {
			list[i].Err = c.acked(ctx, 0, ms[i].Payload)
		}
	}
	return list
}
