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
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	// Lane is the destination of what goes to central, unless a SiteConfig says
	// otherwise.
	Lane = "central"
	// AtOnce is how many requests of that lane are worth having in flight: a
	// Route's Limit. Central lets in a few more.
	AtOnce = 4
	// requestTimeout is of a request with messages.
	requestTimeout = 30 * time.Second
	// mostRetryAfter is how long central, or a proxy before it, may put off a site:
	// alarms wait behind it.
	mostRetryAfter = 5 * time.Minute
	// Window is how far back central may have lost what it had taken when it was
	// heard last: that is sent again, out of what a site's store still has.
	Window = 24 * time.Hour
)

// SiteConfig says where central is and what it may ask. URL, File and Outbox are
// needed.
type SiteConfig struct {
	URL     string // of central: https://, or http:// on the loopback
	File    string // the credential, as Enroll wrote it; it may be replaced at any time
	State   string // file that remembers central's incarnation; zero: File with .central behind it
	Outbox  holdfast.Outbox
	Lane    string        // destination of what is forwarded; zero: Lane
	Window  time.Duration // of what is sent again; zero: Window
	Version string        // of the program
	// Timeout is of one request with messages, as ClientConfig has it; zero: 30 s.
	// A Route's Timeout must be longer: RouteTimeout.
	Timeout time.Duration
	TLS     Files
	// Category is that of a destination of this site, for central to show; empty:
	// it has none. It is called concurrently. Nil: nobody knows.
	Category func(destination string) holdfast.Category
	// Overdue tells for how long the oldest message of each destination has been
	// due; stores have it. Nil: nobody knows.
	Overdue func(ctx context.Context) (map[string]time.Duration, error)
	// Heard is told what central's clock shows. It must not block for long. Nil:
	// nobody is.
	Heard func(at time.Time)
	// Dial opens connections in another way.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger *slog.Logger // nil: silent
}

// Site is the end of the link at a site. It is the deliverer of the lane, with
// or without Run, which keeps the link up beside it: commands, replay, stall
// detection. Its methods may be called concurrently.
type Site struct {
	conf      SiteConfig
	log       *slog.Logger
	identity  identityFile
	questions chan struct{} // places for questions to central

	mu       sync.Mutex
	client   *transport.Client // nil: none could be made yet
	stamp    string            // of the files of TLS that it was made with
	looked   time.Time
	flights  map[*flight]struct{}
	status   Status
	progress time.Time // the last time that central has taken a message, or none was due
	began    time.Time
	known    memo        // the incarnation that has all, as it is on disk
	done     answerCache // answers to commands
}

// RouteTimeout is the Timeout of a Route to central for messages of up to so
// many bytes: the link ends its requests itself, and gives those more time that
// a slow line carries slowly.
func RouteTimeout(request time.Duration, payload int) time.Duration {
	return transport.Patience(request, max(payload, batchBytes)+wire.Overhead)
}

// Status is how the link of a site fares.
type Status struct {
	Site        string // empty: not enrolled
	Connected   bool
	Since       time.Time // it is connected, or is not; zero: since the start
	Problem     string    // the last error, while it is not connected
	Incarnation string    // central's, as it said last
	Replaying   bool      // central lost something, and gets it again
	Replayed    int64     // messages that were sent again since the start
	Stalled     time.Time // since when messages are due and none got through; zero: they do
}

var _ holdfast.BatchDeliverer = (*Site)(nil)

// NewSite checks the settings, all at once, and connects to nothing. A site that
// is not enrolled yet is no error: its lane is held until it is.
func NewSite(conf SiteConfig) (*Site, error) {
	var faults []error
	if conf.Outbox == nil {
		faults = append(faults, errors.New("outbox: there is none"))
	}
	if conf.File == "" {
		faults = append(faults, errors.New("file: name that of the credential"))
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
	_, err := s.connect()
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("new site: %w", err)
	}
	return s, nil
}

// Status tells how the link fares.
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

// Held is for a Sweeper: how long what was forwarded is to be kept. What was
// forwarded within the window before central was last known to have all is not
// purged until it is known again, however long central is away, so it can be
// sent again. What that takes grows no further while nothing is forwarded. While
// the clock shows a time before that, nothing is purged.
func (s *Site) Held() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known
	if known.Heard.IsZero() {
		known.Heard = s.began // what it knew is lost: what it sends again counts back from the first contact
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

// connect returns the client of the TLS files as they are. One that cannot be
// made leaves the former in use.
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
		Concurrency: AtOnce + 2 + questionsAtOnce, Heard: s.conf.Heard, Logger: s.log,
		Credential: func() (string, error) {
			id, err := s.identity.read()
			return id.Credential, err
		},
	})
}
