package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Stalled returns for how long no commit has been answered, although commits are tried all the
// time: each heartbeat is one. Zero means that they are answered. A server can answer every query
// and still hang every commit, for example when its synchronous standbys are gone.
func (db *DB) Stalled() time.Duration {
	p := db.past
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() {
		return 0
	}
	if since := time.Since(p.last); since > db.stallsAfter() {
		return since
	}
	return 0
}

// waitsLong: a commit takes one round trip to the standbys, which is far less than this.
const waitsLong = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = current_user
	AND application_name = current_setting('application_name') AND clock_timestamp() - query_start > interval '500 ms')`

// Hangs reports whether waiting for this node's commits is useless: none was answered for two
// heartbeats, or the server shows one that has waited for its synchronous standbys for half a
// second. It takes at most a second. It is for a process whose time to stop is over, and which may
// then call GiveUp.
func (db *DB) Hangs(ctx context.Context) bool {
	if db.past.quiet(max(2*db.beatEvery(), time.Second)) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	waits := false
	err := db.apart(ctx, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, waitsLong).Scan(&waits) })
	return err == nil && waits
}

// tellHanging logs what a start waits for, if that is commits that hang.
func (db *DB) tellHanging() (enough func() bool) {
	return time.AfterFunc(db.stallsAfter(), func() {
		i, err := db.Server(db.life)
		if err == nil && i.Waiting > 0 {
			db.log.WarnContext(db.life, "the start waits for commits that hang (SyncRep): see whether the synchronous standbys run and follow",
				slog.Int("waiting", i.Waiting), slog.String("synchronous_standbys", i.SynchronousWith))
		}
	}).Stop
}

// quiet reports whether no commit was answered for longer than d.
func (p *past) quiet(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.last.IsZero() && time.Since(p.last) > d
}

// stallsAfter returns more than a busy server needs for two heartbeats.
func (db *DB) stallsAfter() time.Duration {
	return time.Duration(2*beatShare*float64(db.opts.Lease)) + 4*time.Second
}
