package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/transport"
)

// Options are what a node needs in addition to its configuration.
type Options struct {
	Version, Commit string
	// Out gets the text for the person who starts the node. It gets nothing if the log is for programs
	// (JSON). Nil: nothing is written.
	Out io.Writer
	// Log gets the log lines. Nil: no log. Nobody waits for it: lines that it does not take in time are
	// dropped and counted.
	Log io.Writer
	// Ready is told the address, host:port or the path of the socket, once requests are answered. Nil: nobody is told.
	Ready func(address string)
	// Reload brings configurations that were read again and checked. The node takes over what can change
	// while it runs. Nil: no configuration comes.
	Reload <-chan *config.Config
}

// Node is one running node.
type Node struct {
	cfg     *config.Config
	opts    Options
	log     *slog.Logger
	lines   *logging // what log writes to
	started time.Time
	halt    *halt
	answers notify.Answers

	listener  net.Listener
	store     store
	kept      nodestore.Store
	bulk      *bulk.Runner
	live      admin.Live
	audit     *audit.Log                             // nil: it is switched off
	answered  func(answer []byte, ended bool) string // what is kept of answers for the audit log; nil: nothing
	missed    func(ctx context.Context) error        // tells the journal of calls that it could not be told of
	watch     auditWatch
	others    *audit.Peers // nil: nobody exchanges checkpoints with this node
	special   special
	unready   unready
	metrics   *metrics.Metrics
	site      *site.Site      // delivers and sweeps
	sender    *webhook.Sender // to subscribers; nil: the role has none
	role      role
	endpoints *holdfast.Endpoints
	clients   []adapter.Deliverer
	renewals  renewals // by destination
	waiters   holdfast.Waiters
	handler   http.Handler
	tls       *tls.Config
	front     *front
	guard     *serve.Guard
	state     atomic.Int32
	gaveUp    atomic.Bool // calls that waited for the store were broken off
	progress  *holdfast.Progress
	seen      atomic.Pointer[seen]
	secrets   *folder                                   // of channels
	people    peopled                                   // whether there are people who sign in
	peers     atomic.Pointer[map[string]transport.Peer] // who may send, by source
}

// States of a node, for /readyz.
const (
	starting int32 = iota
	ready
	stopping
)

// Serve runs a node until ctx ends. That is a stop without error, even if the node is still starting.
func Serve(ctx context.Context, cfg *config.Config, o Options) error {
	n := &Node{cfg: cfg, opts: o, started: time.Now(), halt: newHalt(ctx), lines: newLogging(cfg.Log, o.Log), secrets: &folder{conf: &cfg.Notifications}}
	n.log = n.lines.Logger
	defer n.lines.close()
	defer n.halt.begin()
	err := n.bounded(ctx, n.serve)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	if err == nil {
		n.log.InfoContext(ctx, "stopped", slog.Duration("uptime", time.Since(n.started)))
	}
	return err
}

func (n *Node) serve(ctx context.Context) (err error) {
	// The address first: a second node on this machine fails here, without
	// having touched anything.
	if n.listener, err = listen(ctx, n.cfg.Listen); err != nil {
		return err
	}
	n.log.InfoContext(ctx, "listening", slog.String("address", n.url()))
	defer n.listener.Close() //nolint:errcheck // the server has closed it already, unless the start failed
	if err := n.buildFront(ctx); err != nil {
		return err
	}
	defer n.front.close()
	// Metrics need the store's counts, and the store needs an observer of expiry.
	if n.store, n.special, err = n.openWaiting(ctx); err != nil {
		return err
	}
	defer n.letGo(ctx)()
	defer func() { err = errors.Join(err, n.leave(ctx, "goodbye", n.store.Close())) }()
	if err := n.build(ctx); err != nil {
		return err
	}
	defer func() {
		for _, c := range n.clients {
			c.Close()
		}
	}()
	n.banner()
	stop := n.halt.stop
	err = run.All(stop, n.halt.watch(slices.Concat(
		[]run.Part{{Name: "store", Run: n.watchStore}},
		n.special.parts,
		n.auditParts(),
		n.role.parts,
		atOnce(stop, n.role.links...),
		[]run.Part{
			{Name: "progress", Run: n.progress.Run},
			{Name: "health", Run: n.watchFile},
			{Name: "reload", Run: n.watchReload},
			{Name: "activity", Run: n.activity().Run},
			{Name: "minutes", Run: n.minutes().Run},
			{Name: "bulk actions", Run: n.bulk.Run},
			{Name: "live", Run: n.live.Run},
			{Name: "endpoints", Run: n.finishForwards},
		},
		atOnce(stop, run.Part{Name: "outbox", Run: n.site.Run}),
		[]run.Part{{Name: "http", Run: n.serveHTTP}},
	))...)
	if errors.Is(err, holdfast.ErrClosed) && n.store.Err() != nil {
		err = fmt.Errorf("the store has stopped: %w", n.store.Err())
	}
	if err = n.leave(ctx, "what was in hand", err); err != nil {
		return &ranError{err}
	}
	return nil
}

// leave returns the error of a node that was told to stop. If the store hung and was given up, what it did
// not take is not a fault of the stop: the lease ends its claims, and nothing is lost.
func (n *Node) leave(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() == nil || !n.gaveUp.Load() || !n.special.leaves(err) {
		return err
	}
	n.log.WarnContext(ctx, "left to the lease", slog.String("what", what), slog.Any("error", err))
	return nil
}

// atOnce stops parts as soon as the node is told to stop, not only when their turn comes. They use the grace
// of the parts before them, so that the whole stop takes one grace and not their sum.
func atOnce(stop context.Context, parts ...run.Part) (list []run.Part) {
	for _, p := range parts {
		list = append(list, run.Part{Name: p.Name, Run: func(ctx context.Context) error {
			both, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(stop, cancel)()
			err := p.Run(both)
			if err == nil && stop.Err() != nil {
				<-ctx.Done() // not an early end
			}
			return err
		}})
	}
	return list
}

// finishForwards waits at the stop for calls of local programs under way: their results must still be recorded.
func (n *Node) finishForwards(ctx context.Context) error {
	<-ctx.Done()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.halt.left(n.grace()))
	defer cancel()
	if err := n.endpoints.Wait(grace); err != nil {
		n.log.WarnContext(ctx, "local programs have not answered; their messages come again", slog.Any("error", err))
	}
	return nil
}

// build makes the parts from the configuration.
func (n *Node) build(ctx context.Context) (err error) {
	n.kept = nodestore.New(n.store, n.log)
	if err := n.buildAudit(); err != nil {
		return err
	}
	n.buildProgress()
	if n.metrics, err = n.newMetrics(); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if n.endpoints, err = n.buildEndpoints(); err != nil {
		return err
	}
	if err := n.buildRole(ctx); err != nil {
		return err
	}
	receiver, err := n.buildReceiver()
	if err != nil {
		return err
	}
	if err := n.people.look(ctx, n.kept.People); err != nil {
		return err
	}
	protected, err := authRequired(ctx, n.cfg, n.store, n.log)
	if err != nil {
		return err
	}
	service := &admin.Service{
		Outbox: n.store, Enqueuer: n.store, Inbox: n.store, Tokens: n.kept.Tokens, Activity: n.kept.Activity, ActivityOff: !n.cfg.Activity, Bulks: n.kept.Bulks, Minutes: n.kept.Minutes, Calls: n.store, Track: n.site, Stopping: n.halt.stop.Done(), Journal: n.store,
		Records: n.kept.Audit, AuditLag: n.auditLag, AuditFailures: n.auditFailures, AuditLog: n.audit, Verifier: &n.watch,
		Destinations: n.destinations, Destination: n.destination, Lanes: n.lanes, Lane: n.site.Dispatcher().Lane, Waiters: &n.waiters, Control: n.site.Dispatcher(), Health: n.health, Backup: n.special.backUp, Acknowledge: n.special.acknowledge,
		Name: n.cfg.Node.ID, Source: n.cfg.Source(), Version: n.opts.Version, Durability: n.store.Durability(), MaxPayload: n.cfg.Limits.Payload,
		People: n.kept.People, Peopled: n.people.added, Factors: factors{n.secrets, n.kept.People}, SessionLife: n.cfg.Sessions.Life, SessionIdle: n.cfg.Sessions.Idle,
		Logger: n.log, StuckAfter: n.cfg.Notifications.Stuck, KPIWindow: n.cfg.Notifications.Window,
	}
	n.role.operate(service)
	service.Keeps = n.keeps(service)
	n.bulk, n.live, n.missed = n.bulkRunner(service), admin.Live{Service: service}, service.TellMissed
	server := &httpapi.Server{
		Service:   service,
		MaxBodies: n.cfg.Limits.Bodies, AuthRequired: protected, Closed: n.closed, Anybody: n.cfg.Tokens == config.TokensNever,
		Mounts: append(slices.Concat(receiver, n.role.mounts),
			httpapi.Mount{Pattern: "GET /healthz", Handler: http.HandlerFunc(n.healthz), Open: true},
			httpapi.Mount{Pattern: "GET /readyz", Handler: http.HandlerFunc(n.readyz), Open: true},
			httpapi.Mount{Pattern: "GET /metrics", Handler: n.metrics.Handler(), Right: api.Read},
		),
	}
	if n.cfg.Tokens == config.TokensNever && !isLoopback(n.listener.Addr()) {
		server.AllowedHosts = n.ownNames()
	}
	if err := n.addPages(server); err != nil {
		return err
	}
	n.handler, err = server.Handler()
	return err
}

// ownNames returns the names by which other machines reach a node that needs no token. A web page elsewhere
// cannot make its own name one of them (DNS rebinding).
func (n *Node) ownNames() (names []string) {
	if host, _, err := net.SplitHostPort(n.cfg.Listen); err == nil && host != "" {
		names = append(names, host)
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return names
}

// isLoopback reports whether only this machine reaches the address. A socket's file has an owner and a mode as well.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// watchStore ends the node when the store has stopped itself.
func (n *Node) watchStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.store.Failed():
		return n.store.Err()
	}
}

// banner tells a person what has started and what to try first.
func (n *Node) banner() {
	if n.opts.Out == nil || n.cfg.Log.Format == config.LogJSON {
		return
	}
	var b strings.Builder
	names, counts := n.destinationNames(), n.store.Counts()
	fmt.Fprintf(&b, "holdfast %s: node %s\n", n.opts.Version, n.cfg.Node.ID)
	fmt.Fprintf(&b, "  data        %s (durability: %s)\n", n.special.place, n.store.Durability())
	fmt.Fprintf(&b, "  listening   %s\n", n.url())
	n.greetPages(&b)
	n.role.greet(&b)
	if len(names) > 0 {
		fmt.Fprintf(&b, "  sends to    %s\n", strings.Join(names, ", "))
	}
	fmt.Fprintf(&b, "  waiting     %s, %d parked\n", brief.Count(counts.Pending, "message", "messages"), counts.Parked)
	if len(names) > 0 {
		fmt.Fprintf(&b, "\nSend a first message:\n\n  %s/v1/messages -H 'Content-Type: application/json' \\\n    -d '{\"destination\": \"%s\", \"endpoint\": \"Hello\", \"payload\": {\"n\": 1}}'\n", n.curl(), names[0])
	}
	if n.role.invite != nil {
		n.role.invite(&b)
	}
	b.WriteString("\nStop with Ctrl-C.\n")
	// If it cannot be written, nobody is served worse.
	_, _ = io.WriteString(n.opts.Out, b.String())
}

func (n *Node) url() string {
	if path, ok := socket.Parse(n.cfg.Listen); ok {
		return socket.URL(path)
	}
	scheme := "http"
	if n.cfg.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + n.listener.Addr().String()
}

// asked returns the flags that a command on this machine needs to reach the node. With TLS the certificate
// has names, and the command must use one of them.
func (n *Node) asked() string {
	flags := ""
	switch at := n.url(); {
	case n.cfg.TLS.Cert != "":
		_, port, _ := net.SplitHostPort(n.listener.Addr().String())
		flags = " --url https://NAME-IN-THE-CERTIFICATE:" + port
	case at != "http://"+config.Default().Listen:
		flags = " --url " + at
	}
	if n.cfg.AsksForTokens() {
		flags += " --token-file FILE"
	}
	return flags
}

// curl returns a command that only lacks the rest of a path.
func (n *Node) curl() string {
	if path, ok := socket.Parse(n.cfg.Listen); ok {
		return "curl -s --unix-socket '" + strings.ReplaceAll(path, "'", `'\''`) + "' http://localhost"
	}
	return "curl -s " + n.url()
}
