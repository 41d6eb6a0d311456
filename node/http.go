package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// patience is how long the answer to an incoming message may take: as long as the longest time-out of an endpoint.
func (n *Node) patience() time.Duration {
	longest := time.Minute
	for _, e := range n.cfg.Receive.Endpoints {
		longest = max(longest, e.Timeout)
	}
	return longest + 10*time.Second
}

// serveHTTP answers requests until ctx ends, then lets those in hand end.
func (n *Node) serveHTTP(ctx context.Context) error {
	srv := n.front.srv
	n.awaitFollowers(ctx)
	n.front.answer(n.handler)
	n.front.begin()
	if n.state.CompareAndSwap(starting, ready) {
		n.log.InfoContext(ctx, "started", slog.String("version", n.opts.Version), slog.String("node", n.cfg.Node.ID), slog.String("role", string(n.role.name)),
			slog.String("address", n.url()), slog.Duration("took", time.Since(n.started)))
	}
	if n.opts.Ready != nil {
		n.opts.Ready(n.listener.Addr().String())
	}
	select {
	case <-n.front.ended:
		return n.front.err
	case <-ctx.Done():
	}
	n.waiters.Release()
	if n.role.close != nil {
		n.role.close()
	}
	err := shutDown(ctx, srv, n.halt.left(n.grace()))
	// Requests that the store has given up on are answered now. Shutdown checks less and less often whether
	// all are answered, in the end every half second, so start it anew.
	for end := time.Now().Add(lastWords * 3 / 4); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); {
		err = shutDown(ctx, srv, min(lookAgain, time.Until(end)))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		n.log.WarnContext(ctx, "requests cut off at the stop")
		err = srv.Close()
	}
	return errors.Join(err, n.front.stopped())
}

// shutDown waits for requests in hand, at most for d after ctx has ended.
func shutDown(ctx context.Context, srv *http.Server, d time.Duration) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return srv.Shutdown(bounded)
}
