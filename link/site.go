package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	// Lane is the default destination of what goes to central; see SiteConfig.Lane.
	Lane = "central"
	// AtOnce is how many concurrent requests of that lane are useful: the Limit of its Route.
	// Central admits a few more.
	AtOnce = 4
	// requestTimeout limits a request with messages.
	requestTimeout = 30 * time.Second
	// mostRetryAfter is the longest that central, or a proxy before it, can put off a site: alarms
	// wait behind it.
	mostRetryAfter = 5 * time.Minute
	// Window is how far back, from the last time that central was heard, central may have lost
	// messages that it had taken. The site sends these again, as far as its store still has them.
	Window = 24 * time.Hour
)

// SiteConfig says where central is and what it may ask. URL, File and Outbox are required.
type SiteConfig struct {
	URL     string // of central: https://, or http:// on the loopback
	File    string // the credential file that Enroll wrote; it may be replaced at any time
	State   string // file that remembers central's incarnation; empty: File plus ".central"
	Outbox  holdfast.Outbox
	Lane    string        // destination of what is forwarded; zero: Lane
	Window  time.Duration // how far back messages are sent again; zero: Window
	Version string        // of the program
	// Timeout limits one request with messages, as ClientConfig.Timeout does. Zero: 30 s. The
	// Timeout of the Route must be longer; see RouteTimeout.
	Timeout time.Duration
	TLS     Files
	// Category returns the category of a destination of this site, for central to show. Empty: it
	// has none. It is called concurrently. Nil: categories are unknown.
	Category func(destination string) holdfast.Category
	// Report returns what the program knows of its node; the link adds the rest of Health. Nil: it
	// reports nothing beyond that.
	Report func(ctx context.Context) Health
	// Overdue returns, by destination, how long the oldest message has been due; stores implement
	// it. Nil: unknown.
	Overdue func(ctx context.Context) (map[string]time.Duration, error)
	// Telemetry reads the audit logs of this site, which go to central. Nil: none do.
	Telemetry sites.Logs
	// Witness exchanges checkpoints of audit logs with central. Nil: none are.
	Witness Witness
	// Erasing exchanges erasures of the audit log with central. Nil: none are.
	Erasing Erasing
	// Call returns how an operation stands that an audit record is about. It is called
	// concurrently. False: nothing is known of it, or it is not tracked. Nil: none is known.
	Call func(ctx context.Context, id holdfast.ID) (call sites.Call, ok bool)
	// Heard is called with the time that central's clock shows. It must not block for long. May be
	// nil.
	Heard func(at time.Time)
	// Dial opens connections. Nil: the default dialer.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger *slog.Logger // nil: silent
}

// Site is the site's end of the link. It is the Deliverer of the lane. Run keeps the link up beside
// it: commands, replay and stall detection. Delivery works without Run. Its methods may be called
// concurrently.
type Site struct {
	conf      SiteConfig
	log       *slog.Logger
	identity  identityFile
	questions chan struct{} // limits concurrent questions to central

	mu       sync.Mutex
	client   *transport.Client // nil: not made yet
	stamp    string            // of the TLS files with which client was made
	looked   time.Time
	flights  map[*flight]struct{}
	status   Status
	progress time.Time // when central last took a message, or no message was due
	began    time.Time
	known    memo        // the incarnation that has everything, as on disk
	done     answerCache // answers to commands
	shipper  *shipper
}

// RouteTimeout returns the Timeout of a Route to central for messages of up to payload bytes. The
// link ends its requests itself, and gives more time to those that a slow line carries slowly.
func RouteTimeout(request time.Duration, payload int) time.Duration {
	return transport.Patience(request, max(payload, batchBytes)+wire.Overhead)
}

// Status is the state of a site's link.
type Status struct {
	Site        string // empty: not enrolled
	Connected   bool
	Since       time.Time // when it connected or disconnected; zero: at the start
	Problem     string    // the last error while disconnected
	Incarnation string    // central's, as last reported
	Replaying   bool      // central has lost messages and gets them again
	Replayed    int64     // messages sent again since the start
	Stalled     time.Time // since when messages are due and none gets through; zero: they do
	Telemetry   Telemetry
}

var _ holdfast.BatchDeliverer = (*Site)(nil)

// NewSite checks all settings and returns all faults at once. It does not connect. A site that is
// not enrolled is no error: its lane is held until it is.
func NewSite(conf SiteConfig) (*Site, error) {
	var faults []error
	if conf.Outbox == nil {
		faults = append(faults, errors.New("outbox: must be set"))
	}
	if conf.File == "" {
		faults = append(faults, errors.New("file: must name the credential's file"))
	}
	if conf.Window < 0 {
		faults = append(faults, errors.New("window: must not be negative"))
	}
	if conf.Timeout < 0 {
		faults = append(faults, errors.New("timeout: must not be negative"))
	}
	conf.Timeout = cmp.Or(conf.Timeout, requestTimeout)
	conf.State = cmp.Or(conf.State, conf.File+".central")
	conf.Lane = cmp.Or(conf.Lane, Lane)
	conf.Window = cmp.Or(conf.Window, Window)
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Site{
		conf: conf, log: conf.Logger, identity: identityFile{path: conf.File}, flights: map[*flight]struct{}{},
		questions: make(chan struct{}, questionsAtOnce), progress: time.Now(),
	}
	s.known, s.began = s.remember(), time.Now()
	s.shipper = newShipper(s)
	_, err := s.connect()
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("new site: %w", err)
	}
	return s, nil
}

// Status returns the state of the link.
func (s *Site) Status() Status {
	id, err := s.identity.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.status
	if err == nil {
		out.Site = id.Site
	} else if !out.Connected {
		out.Problem = err.Error()
	}
	return out
}

// Held tells a Sweeper how long to keep forwarded messages. The window counts back from the last
// time that central was known to have everything. Messages within it are kept until central is
// known to have everything again, however long it is away, so that they can be sent again. While
// nothing is forwarded, the kept messages do not grow. While the clock shows an earlier time than
// that last one, nothing is purged.
func (s *Site) Held() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known
	if known.Heard.IsZero() {
		known.Heard = s.began // the memo is lost; a replay counts back from the first contact
	}
	ago, believed := known.ago()
	if !believed {
		ago = forEver
	}
	return map[string]time.Duration{s.conf.Lane: ago + s.conf.Window + heardEvery}
}

// Close closes idle connections. Deliveries under way go on.
func (s *Site) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
	}
}

// connect returns a client for the current TLS files. If it cannot make one, the previous client
// stays in use.
func (s *Site) connect() (*transport.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && time.Since(s.looked) < reloadEvery {
		return s.client, nil
	}
	s.looked = time.Now()
	stamp := s.conf.TLS.stamp()
	if s.client != nil && stamp == s.stamp {
		return s.client, nil
	}
	client, err := s.newClient()
	if err != nil {
		if s.client == nil {
			return nil, err
		}
		s.log.Error("certificates not reloaded", slog.Any("error", err))
		return s.client, nil
	}
	if s.client != nil {
		s.client.Close()
		s.log.Info("certificates reloaded")
	}
	s.client, s.stamp = client, stamp
	return client, nil
}

func (s *Site) newClient() (*transport.Client, error) {
	conf, err := s.conf.TLS.client()
	if err != nil {
		return nil, err
	}
	return transport.NewClient(transport.ClientConfig{
		URL: s.conf.URL, Path: MessagesPath, TLS: conf, Dial: s.conf.Dial, MaxBatch: batchRows, Timeout: s.conf.Timeout, RetryAfter: mostRetryAfter, MaxReply: maxReply,
		Concurrency: AtOnce + 2 + questionsAtOnce + batchesAtOnce, Heard: s.conf.Heard, Logger: s.log,
		Credential: func() (string, error) {
			id, err := s.identity.read()
			return id.Credential, err
		},
	})
}
