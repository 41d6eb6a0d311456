package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/notify"
)

// stuckAfter is how long due messages of a destination that is up may make no
// progress before health turns red.
const stuckAfter = time.Minute

// progress is what watchProgress saw last.
type progress struct {
	stuck    []string // destinations that are up and do not move
	unrouted []string // destinations that have messages and no configuration
	unfit    []string // recipients of the seed's new lists who are not reached
	err      error    // the store did not answer
}

// watchProgress looks every few seconds whether due messages move.
func (n *Node) watchProgress(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	warned, lost := time.Time{}, int64(0)
	for {
		p := n.look(ctx)
		n.progress.Store(p)
		if now := n.lines.dropped(); now > lost {
			n.log.WarnContext(ctx, "lines of the log could not be written", slog.Int64("lines", now-lost))
			lost = now
		}
		if len(p.unrouted) > 0 && time.Since(warned) > time.Minute {
			warned = time.Now()
			n.log.WarnContext(ctx, "messages wait for destinations that the configuration does not name; they stay pending",
				slog.String("destinations", brief.List(p.unrouted)))
		}
		if len(p.stuck) > 0 {
			n.log.ErrorContext(ctx, "due messages make no progress", slog.String("destinations", brief.List(p.stuck)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (n *Node) look(ctx context.Context) *progress {
	p := &progress{}
	// A file that was taken away is noticed here even where nothing moves.
	if err := n.special.present(); err != nil {
		p.err = err
		return p
	}
	overdue, err := n.store.Overdue(ctx)
	if err != nil {
		if ctx.Err() == nil && !n.special.away(err) {
			p.err = err
		}
		return p
	}
	for _, s := range n.lanes() {
		if late, due := overdue[s.Destination]; due && late > stuckAfter && stands(s) && !n.special.elsewhere(s.Destination, n.limit(s.Destination)) {
			p.stuck = append(p.stuck, s.Destination)
		}
		delete(overdue, s.Destination)
	}
	for name := range overdue {
		if _, channel := notify.ChannelOf(name); channel {
			continue // it is disabled, or ended: the API says so
		}
		if !n.special.elsewhere(name, 0) {
			p.unrouted = append(p.unrouted, name)
		}
	}
	slices.Sort(p.unrouted)
	if n.office != nil && len(n.office.sown) > 0 {
		book, err := n.office.books.Book(ctx)
		if err == nil { // else the look at what is overdue tells
			p.unfit = n.office.unfit(&book)
		}
	}
	return p
}

// limit is how many requests a lane may have at most.
func (n *Node) limit(lane string) int {
	if route, ok := n.dispatcher.Routes[lane]; ok {
		return route.Limit
	}
	return notify.DefaultWorkers
}

// stands says whether a lane that should move does not: it is up, nothing
// has ended for long, and no request is within its time-out.
func stands(s holdfast.LaneStatus) bool {
	const slack = 10 * time.Second
	works := s.InFlight > s.Hanging && s.Oldest < s.Timeout+slack
	return s.Up && s.Busy == 0 && !works && s.Idle > stuckAfter
}

// health is the node's own judgement, for people and for probes.
func (n *Node) health() admin.Health {
	h := admin.Health{Status: admin.OK, Role: string(n.cfg.Role), Started: n.started}
	add := func(name, status, detail string) {
		h.Checks = append(h.Checks, admin.Check{Name: name, Status: status, Detail: detail})
		if status == admin.Failing || h.Status == admin.OK {
			h.Status = status
		}
	}
	if err := n.store.Err(); err != nil {
		add("store", admin.Failing, err.Error())
	} else {
		add("store", admin.OK, "durability "+n.store.Durability())
	}
	n.logHealth(add)
	n.special.checks(add)
	if p := n.progress.Load(); p != nil {
		if p.err != nil {
			add("progress", admin.Failing, p.err.Error())
		}
		if len(p.stuck) > 0 {
			add("progress", admin.Failing, fmt.Sprintf("up, and due messages have not moved for over %s: %s", stuckAfter, brief.List(p.stuck)))
		}
		if len(p.unfit) > 0 {
			add("seed", admin.Degraded, "lists of the seed do not fit: "+brief.Join(p.unfit, "; ", 5))
		}
		if len(p.unrouted) > 0 {
			add("destinations", admin.Degraded, "messages wait for "+brief.List(p.unrouted)+", which the configuration does not name; add them, or discard the messages")
		}
	}
	for _, s := range n.dispatcher.Status() {
		name := "destination " + s.Destination
		switch {
		case s.Held:
			add(name, admin.Degraded, "held: "+s.Problem)
		case !s.Up:
			add(name, admin.Degraded, "down: "+s.Problem)
		case s.Busy > 0:
			add(name, admin.Degraded, fmt.Sprintf("asked for a pause, %s left", s.Busy.Round(time.Second)))
		}
		if s.Hanging > 0 {
			add(name, admin.Degraded, fmt.Sprintf("%d requests ignore their time-out", s.Hanging))
		}
	}
	n.linkHealth(add)
	n.office.health(add)
	if parked := n.store.Counts().Parked; parked > 0 {
		add("parked", admin.OK, fmt.Sprintf("waiting for a person: %d", parked))
	}
	return h
}

// logHealth tells while lines are lost, and for a while after.
func (n *Node) logHealth(add addCheck) {
	if lines, last := n.lines.lost(); lines > 0 && time.Since(last) < 5*time.Minute {
		add("log", admin.Degraded, fmt.Sprintf("%d lines could not be written, the last %s ago: see who reads the node's output, and whether its disk is full",
			lines, time.Since(last).Round(time.Second)))
	}
}

// healthz is for a supervisor: 503 means that a restart may help.
func (n *Node) healthz(w http.ResponseWriter, _ *http.Request) {
	if h := n.health(); h.Status == admin.Failing {
		var problems []string
		for _, c := range h.Checks {
			if c.Status == admin.Failing && c.Name != databaseCheck {
				problems = append(problems, c.Name+": "+c.Detail)
			}
		}
		if len(problems) > 0 {
			http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = w.Write([]byte("ok\n"))
}

// readyz is for a load balancer: 503 means that requests should go elsewhere.
func (n *Node) readyz(w http.ResponseWriter, _ *http.Request) {
	busy := n.special.busy()
	switch {
	case n.state.Load() == stopping:
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	case busy != "":
		http.Error(w, busy, http.StatusServiceUnavailable)
	case n.state.Load() != ready || n.store.Err() != nil:
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	default:
		_, _ = w.Write([]byte("ready\n"))
	}
}
