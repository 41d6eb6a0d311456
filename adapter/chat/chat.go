package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// The kinds of channel, as the settings name them.
const (
	webhook = "webhook"
	teams   = "teams"
	slack   = "slack"
	ntfy    = "ntfy"
	gotify  = "gotify"
)

// Kinds returns the kinds of channel that New knows, sorted.
func Kinds() []string { return []string{gotify, ntfy, slack, teams, webhook} }

// Options are what a Poster needs from its surroundings.
type Options struct {
	// Secret returns a secret for one use. It is called at each use, so a new secret takes effect
	// with the next request. Spaces and line ends around it are ignored (H10). Nil: there are no
	// secrets, and settings may name none.
	Secret func(use notify.SecretUse) ([]byte, error)
	// MayUse returns an error if a secret must not be used in this way; it does not read the
	// secret. New then refuses the settings. Nil: every use is allowed that Secret allows.
	MayUse func(use notify.SecretUse) error
	Logger *slog.Logger // nil: nothing is logged
	// Addresses are what the channel may reach: networks such as 10.0.0.0/8, addresses, and the word
	// "public". Empty: everything.
	Addresses []string
	// DialContext is for tests; Addresses has no effect on it. Nil: that of a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Poster delivers the notifications of one channel. Use New; the zero value is not usable. A Poster
// may be used concurrently.
type Poster struct {
	kind     string
	settings settings
	secret   func(use notify.SecretUse) ([]byte, error)
	mayUse   func(use notify.SecretUse) error
	log      *slog.Logger
	client   *exchange.Client
}

var _ notify.Adapter = (*Poster)(nil)

// New returns a Poster for a channel of a kind, or all faults of its settings, each a
// *holdfast.FieldError.
func New(kind string, raw json.RawMessage, o Options) (*Poster, error) {
	if !slices.Contains(Kinds(), kind) {
		return nil, &holdfast.FieldError{Field: "kind", Value: clip(kind, 64), Problem: "is not one of " + strings.Join(Kinds(), ", ")}
	}
	s, err := readSettings(kind, raw, o.Secret != nil)
	conf, fault := s.tls()
	guard, wrong := addressguard.New(o.Addresses)
	if err := errors.Join(err, fault, wrong); err != nil {
		return nil, err
	}
	if err := s.checkUses(kind, o.MayUse); err != nil {
		return nil, err
	}
	p := &Poster{kind: kind, settings: s, secret: o.Secret, mayUse: o.MayUse, log: o.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	// No proxy: an environment variable must not send secrets elsewhere.
	p.client = exchange.NewClient(exchange.Settings{Dial: o.DialContext, Guard: guard, TLS: conf, Idle: atOnce, IdleFor: 30 * time.Second})
	return p, nil
}

// Close closes idle connections.
func (p *Poster) Close() { p.client.Close() }

// atOnce is how many requests of one notification run concurrently, so that a silent receiver does
// not hold up the others.
const atOnce = 4

// Send posts the notification to each recipient. When ctx ends, no further request begins. Requests
// that have been sent are waited for, up to the channel's time-out.
func (p *Poster) Send(ctx context.Context, n *notify.Notification, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
	ends := make([]end, len(to))
	turns := make(chan struct{}, atOnce)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for i := range to {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			ends[i].fault = notBegun(ctx)
			continue
		}
		all.Go(func() {
			defer func() { <-turns }()
			e := p.post(ctx, n, to[i].Address)
			ends[i] = e
			if len(to) > 1 && known != nil && e.fault == nil && !known(e.part(i)) {
				stop()
			}
		})
	}
	all.Wait()
	return report(ends)
}

func notBegun(ctx context.Context) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: exchange.Canceled, Err: fmt.Errorf("stopped before the request was sent: %w", ctx.Err())}
}
