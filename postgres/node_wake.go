package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// A commit itself wakes the waiters in this process. Other nodes are told by NOTIFY, outside the
// transaction that wrote, because commits with a NOTIFY wait for each other. Wakes that come
// shortly after a notification wait for the next one.
const (
	wakeChannel = "hf_wake"
	notifyGap   = 2 * time.Millisecond
	lanesMost   = 100 // named in one notification; more than that means all lanes
)

type wakes struct {
	here      holdfast.Wakes // the dispatchers of this process
	followers holdfast.Wakes // the followers of the journal in this process

	mu     sync.Mutex
	lanes  map[int32]struct{} // to be told to other nodes
	notify chan struct{}

	hangsUp atomic.Pointer[context.CancelFunc] // ends the listening connection

	hearing sync.Once
	heard   chan struct{} // closed when this node listens for the first time
}

func newWakes() *wakes {
	return &wakes{lanes: map[int32]struct{}{}, notify: make(chan struct{}, 1), heard: make(chan struct{})}
}

// Wake implements holdfast.Store.
func (db *DB) Wake() *holdfast.Wake { return db.wakes.here.Subscribe() }

// wake wakes this process at once, and other nodes soon.
func (db *DB) wake(lanes map[int32]struct{}) {
	w := db.wakes
	for l := range lanes {
		db.ring(l)
	}
	w.mu.Lock()
	for l := range lanes {
		w.lanes[l] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.notify <- struct{}{}:
	default:
	}
}

// ring wakes the dispatchers of this process for one lane, or for all lanes if this node does not
// know its name.
func (db *DB) ring(lane int32) {
	if name := db.names.lane(lane); name != "" {
		db.wakes.here.Ring(name)
	} else {
		db.wakes.here.RingAll()
	}
}

// take returns the text of a notification for other nodes.
func (w *wakes) take() (text string, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lanes) == 0 {
		return "", false
	}
	var names []string
	if len(w.lanes) <= lanesMost {
		for l := range w.lanes {
			names = append(names, strconv.Itoa(int(l)))
		}
		slices.Sort(names)
	}
	clear(w.lanes)
	return strings.Join(names, " "), true
}

func (w *wakes) flush(ctx context.Context, db *DB) {
	if text, some := w.take(); some && !db.self.alone() {
		db.tellOthers(ctx, text)
	}
}

// hello is sent by a node that enters. The others then look which nodes there are.
const hello = "hello"

func (db *DB) tellOthers(ctx context.Context, text string) {
	text = strconv.FormatInt(db.self.owner(), 10) + ":" + text
	if err := db.read(ctx, tellAll, []any{wakeChannel, text}, func(pgx.Rows) error { return nil }); err != nil && ctx.Err() == nil {
		db.log.DebugContext(ctx, "could not notify other nodes; they poll", slog.Any("error", err))
	}
}

// notifyOn sends wakes to other nodes.
func (db *DB) notifyOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.wakes.notify:
		}
		db.wakes.flush(ctx, db)
		if pause(ctx, notifyGap) != nil {
			return
		}
	}
}

// listenOn listens to other nodes, on a separate connection. When that is cut, the node polls until
// it listens again, and then looks for what it has missed.
func (db *DB) listenOn(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		began := time.Now()
		err := db.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			try = 0
		}
		db.log.WarnContext(ctx, "not listening to other nodes; polling meanwhile", slog.Any("error", explain(err)))
		if backOff(ctx, try) != nil {
			return
		}
	}
}

func (db *DB) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	db.wakes.hangsUp.Store(&cancel)
	conn, err := pgx.ConnectConfig(ctx, db.pools.own.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	db.wakes.here.RingAll() // for wakes that were missed
	db.wakes.followers.RingAll()
	db.wakes.hearing.Do(func() { close(db.wakes.heard) })
	for {
		// A server may vanish silently; a ping finds out.
		bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
		n, err := conn.WaitForNotification(bounded)
		cancel()
		switch {
		case err == nil:
			db.heard(ctx, n.Payload)
		case ctx.Err() != nil:
			return ctx.Err()
		case bounded.Err() != nil && !conn.IsClosed():
			if err := ping(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// hangUp makes the node listen to another server.
func (w *wakes) hangUp() {
	if cancel := w.hangsUp.Load(); cancel != nil {
		(*cancel)()
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return conn.Ping(bounded)
}

// heard wakes this process, unless the notification is its own.
func (db *DB) heard(ctx context.Context, text string) {
	owner, what, _ := strings.Cut(text, ":")
	db.wakes.followers.RingAll()
	switch {
	case owner == strconv.FormatInt(db.self.owner(), 10):
	case what == hello:
		db.self.askBeat()
	case what == "": // too many lanes to be named
		db.wakes.here.RingAll()
	default:
		db.heardOf(ctx, what)
	}
}

// heardOf wakes dispatchers for the lanes of a notification.
func (db *DB) heardOf(ctx context.Context, lanes string) {
	named := map[int32]holdfast.LaneCounts{}
	for text := range strings.FieldsSeq(lanes) {
		if l, err := strconv.ParseInt(text, 10, 32); err == nil {
			named[int32(l)] = holdfast.LaneCounts{}
		}
	}
	db.meet(ctx, named)
	for l := range named {
		db.ring(l)
	}
}
