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
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
)

// seen is what the node's own checks found last.
type seen struct {
	unfit []string // recipients of the seed's new lists who cannot be reached
	gone  error    // the file was removed

	closed string // why nobody can operate the node; empty: somebody can

	followers []holdfast.FollowerInfo // of the journal
	sites     []link.SiteInfo         // of a central
	erased    []audit.Unconfirmed     // that the other ends of links have not confirmed
}

// buildProgress makes the watch for messages that make no progress.
func (n *Node) buildProgress() {
	n.progress = &holdfast.Progress{
		Store: patient{n.store, n.special.away}, Lanes: n.lanes, Logger: n.log,
		Known:     func(name string) bool { return n.cfg.Serves(name) || n.special.elsewhere(name, 0) },
		Elsewhere: func(name string) bool { return n.special.elsewhere(name, n.limit(name)) },
	}
}

// lanes returns how destinations and channels fare. It returns none before the dispatcher runs.
func (n *Node) lanes() []holdfast.LaneStatus { return n.site.Lanes() }

// patient reads a store that may be away for a moment; the store's own checks report that.
type patient struct {
	store
	away func(err error) bool
}

func (p patient) Overdue(ctx context.Context) (map[string]time.Duration, error) {
	list, err := p.store.Overdue(ctx)
	if err != nil && p.away(err) {
		return nil, nil
	}
	return list, err
}

// watchFile looks every few seconds at what nothing else notices: a file that
// was taken away while nothing moves, lists of the seed that do not fit, that
// there is no token any more by which to operate the node, and how far followers of
// the journal have come.
func (n *Node) watchFile(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	lost := int64(0)
	for {
		if now := n.lines.dropped(); now > lost {
			n.log.WarnContext(ctx, "lines of the log could not be written", slog.Int64("lines", now-lost))
			lost = now
		}
		s := &seen{gone: n.special.present()}
		if n.role.look != nil {
			s.unfit = n.role.look(ctx)
		}
		if a, err := access(ctx, n.store); err == nil { // else the store's own checks tell
			s.closed, _ = n.cfg.NoAdmin(a)
		}
		if err := n.people.look(ctx, n.kept.People); err != nil { // else the store's own checks tell
			n.log.DebugContext(ctx, "people not looked for", slog.Any("error", err))
		}
		if list, err := n.store.Followers(ctx); err == nil {
			s.followers = list
		} else if last := n.seen.Load(); last != nil { // its own checks tell of the store
			s.followers = last.followers
		}
		if n.role.sites != nil {
			if list, err := n.role.sites(ctx); err == nil {
				s.sites = list
				n.forgetRevoked(list)
			}
		}
		if n.audit != nil {
			s.erased, _ = n.kept.Audit.Unconfirmed(ctx) // the store's own checks tell
		}
		n.seen.Store(s)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// limit returns the most requests that a lane may have.
func (n *Node) limit(lane string) int {
	if route, ok := n.site.Dispatcher().Routes[lane]; ok {
		return route.Limit
	}
	return notify.DefaultWorkers
}

// health returns the node's own judgement, for people and for probes.
func (n *Node) health() api.Health {
	h := api.Health{Status: api.OK, Role: string(n.role.name), Started: n.started}
	add := func(name, status, detail string) {
		h.Checks = append(h.Checks, api.Check{Name: name, Status: status, Detail: detail})
		if status == api.Failing || h.Status == api.OK {
			h.Status = status
		}
	}
	if err := n.store.Err(); err != nil {
		add("store", api.Failing, err.Error())
	} else {
		add("store", api.OK, "durability "+n.store.Durability())
	}
	n.logHealth(add)
	for _, g := range n.cfg.GivenUp() {
		add(g.Key, api.OK, "warning: "+g.What)
	}
	n.clockHealth(add)
	n.auditHealth(add)
	n.special.checks(add)
	n.progressHealth(add)
	n.lanesHealth(add)
	if s := n.seen.Load(); s != nil {
		sitesHealth(s.sites, add)
		telemetryHealth(s.sites, add)
		erasedHealth(s.erased, add)
	}
	if n.role.health != nil {
		n.role.health(add)
	}
	if parked := n.store.Counts().Parked; parked > 0 {
		add("parked", api.OK, fmt.Sprintf("waiting for a person: %d", parked))
	}
	return h
}

// logHealth reports lost log lines, while lines are lost and for a while after.
func (n *Node) logHealth(add addCheck) {
	if lines, last := n.lines.lost(); lines > 0 && time.Since(last) < 5*time.Minute {
		add("log", api.Degraded, fmt.Sprintf("%s could not be written, the last %s ago: see who reads the node's output, and whether its disk is full",
			brief.Count(lines, "line", "lines"), time.Since(last).Round(time.Second)))
	}
}

// progressHealth adds what the progress watch has found.
func (n *Node) progressHealth(add addCheck) {
	standing, err := n.progress.Standstills()
	if err != nil {
		add("progress", api.Failing, err.Error())
	}
	var stuck []string
	for _, s := range standing {
		if s.Cause == holdfast.CauseStuck { // the check of the lane reports all other causes
			stuck = append(stuck, s.Destination)
		}
	}
	if len(stuck) > 0 {
		add("progress", api.Failing, fmt.Sprintf("up, and due messages have not moved for over %s: %s", holdfast.StandstillAfter, brief.List(stuck)))
	}
	if lost := n.site.Unserved(); len(lost) > 0 {
		add("destinations", api.Degraded, "messages wait for "+brief.List(lost)+", which the configuration does not name; "+admin.Unserved(lost))
	}
	s := n.seen.Load()
	if s == nil {
		return
	}
	journalHealth(s.followers, add)
	if s.gone != nil {
		add("progress", api.Failing, s.gone.Error())
	}
	if s.closed != "" {
		add("tokens", api.Degraded, s.closed+"; "+n.cfg.FirstToken())
	}
	if len(s.unfit) > 0 {
		add("seed", api.Degraded, "lists of the seed do not fit: "+brief.Join(s.unfit, "; ", 5))
	}
}

// lanesHealth adds destinations and channels that have a problem.
func (n *Node) lanesHealth(add addCheck) {
	var held []string
	for _, s := range n.lanes() {
		if id, is := fanout.SubscriptionOf(s.Destination); is {
			if why := n.unready.of(id); why != "" { // a subscriber that is away is no trouble of this node
				held = append(held, id+": "+why)
			}
			continue
		}
		name := "destination " + s.Destination
		if channel, is := notify.ChannelOf(s.Destination); is {
			name = "channel " + channel
		}
		laneHealth(name, s, add)
	}
	if len(held) > 0 {
		add("subscriptions", api.Degraded, "held: "+brief.Join(held, "; ", 5))
	}
}

// laneHealth adds a lane that has a problem.
func laneHealth(name string, s holdfast.LaneStatus, add addCheck) {
	since := ""
	if s.Standstill != nil {
		since = fmt.Sprintf("; due messages have waited for %s", s.Standstill.For.Round(time.Second))
	}
	switch {
	case s.Owner != "":
		add(name, api.Degraded, "nothing is delivered from here: another process owns the store: "+s.Owner+since)
	case s.Decision.Paused:
		add(name, api.Degraded, fmt.Sprintf("paused by %s at %s; when it may go on: holdfast destinations resume %s",
			s.Decision.Actor, s.Decision.At.UTC().Format(time.RFC3339), s.Destination))
	case s.Held:
		add(name, api.Degraded, "held: "+s.Problem+since)
	case !s.Up:
		add(name, api.Degraded, "down: "+s.Problem+since)
	case s.Busy > 0:
		add(name, api.Degraded, fmt.Sprintf("asked for a pause, %s left%s", s.Busy.Round(time.Second), since))
	case s.Standstill != nil && s.Standstill.Cause == holdfast.CauseFailing:
		add(name, api.Degraded, "tried without success: "+s.Problem+since)
	}
	if s.Hanging > 0 {
		add(name, api.Degraded, brief.Count(s.Hanging, "request ignores its time-out", "requests ignore their time-out"))
	}
}

// clockHealth reports time that only the clock says has passed.
func (n *Node) clockHealth(add addCheck) {
	d := n.store.Doubt()
	if d.Claimed == 0 {
		return
	}
	status, held := api.OK, "nothing is held because of it"
	if d.Held > 0 {
		status, held = api.Degraded, brief.Count(d.Held, "message is", "messages are")+" held because of it: past the time if the clock is right; if it is wrong, set it"
	}
	add("clock", status, fmt.Sprintf("the clock says that %s have passed, which nothing else confirms; it is believed in at most %s; %s",
		d.Claimed.Round(time.Second), d.Left.Round(time.Second), held))
}

// healthz is for a supervisor: 503 means that a restart may help.
func (n *Node) healthz(w http.ResponseWriter, _ *http.Request) {
	if h := n.health(); h.Status == api.Failing {
		away := slices.ContainsFunc(h.Checks, func(c api.Check) bool { return c.Name == databaseCheck && c.Status == api.Failing })
		var problems []string
		for _, c := range h.Checks { // nothing moves while the database is away
			if c.Status == api.Failing && c.Name != databaseCheck && (!away || c.Name != "progress") {
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
