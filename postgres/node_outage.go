package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

// outage decides whether a call is repeated. During a short absence of the database, such as a
// restart, calls wait for it. After that they fail at once until it has answered again, so that
// calls do not pile up.
type outage struct {
	patience time.Duration

	mu    sync.Mutex
	since time.Time // start of the outage; zero: none
}

// deadlocks bounds how often a transaction that the server aborts is tried.
const deadlocks = 4

// again reports whether a call that ended with err should be repeated. It includes the pause
// before.
func (o *outage) again(ctx context.Context, try int, err error) bool {
	switch {
	case err == nil:
		o.over()
		return false
	case again(err):
		return try < deadlocks && ctx.Err() == nil
	case !isAway(err):
		return false
	}
	left := o.left()
	if left <= 0 || ctx.Err() != nil {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return backOff(bounded, try-1) == nil
}

// left returns for how much longer calls wait during this outage. It starts the outage if there is
// none.
func (o *outage) left() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
	return o.patience - time.Since(o.since)
}

func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
}

// isAway reports whether the server is unreachable, or refuses writes, so that the request can be
// repeated.
func isAway(err error) bool {
	if errors.Is(err, ErrUnknown) || errors.Is(err, context.Canceled) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03", "53300", "25006", "08000", "08003", "08006":
			return true
		}
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || errors.Is(err, errUndone) || errors.Is(err, errAnother) || errors.Is(err, ErrReadOnly) || !errors.Is(err, holdfast.ErrUnavailable) && lost(err)
}

// backOff waits before another attempt: longer each time, with jitter.
func backOff(ctx context.Context, try int) error {
	d := 10 * time.Millisecond << min(max(try, 0), 6)
	return pause(ctx, d/2+rand.N(d)) //nolint:gosec // no secret
}
