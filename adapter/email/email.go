package email

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/oauth"
	"github.com/holdfast-mq/holdfast/notify"
)

// Options are what a Mailer needs of its surroundings. The zero value works
// for servers that want no credentials.
type Options struct {
	// Secret reads a secret for one use, at each use, so that a new one counts
	// from the next connection on. Spaces and line ends around it are not part of
	// it. Nil: there are none, and settings may name none.
	Secret func(use notify.SecretUse) ([]byte, error)
	// MayUse says why a secret must not be used so, without reading it: settings
	// that do are refused. Nil: each may be, as far as Secret gives it.
	MayUse func(use notify.SecretUse) error
	Logger *slog.Logger // nil: none
	// Domain is that of Message-IDs where the settings name none; empty: that of
	// the sender's address. It must be the same on each node, and at each attempt.
	Domain string
	// DialContext is for tests; nil: a net.Dialer's.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Mailer delivers the notifications of one channel. Its zero value is not
// usable; New makes one. It may be used concurrently.
type Mailer struct {
	settings settings
	secret   func(use notify.SecretUse) ([]byte, error)
	log      *slog.Logger
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	domain   string
	tokens   *oauth.Tokens // nil: no grant
	pool     *pool

	strikes atomic.Int32 // connections in a row that were turned away at the door
	spurned atomic.Int32 // mails in a row whose sender was refused
	bears   atomic.Pointer[learned]
	worked  atomic.Bool // the server has taken our credentials, the last time
	refused refusal
}

// learned is how many recipients the server takes in one mail, as it said last.
type learned struct {
	most int
	at   time.Time
}

// learnedFor is how long that counts: it may be a limit of the moment.
const learnedFor = time.Hour

var _ notify.Adapter = (*Mailer)(nil)

// New returns a Mailer, or everything that is wrong with its settings: each
// fault is a holdfast.FieldError. It connects to nobody.
func New(raw json.RawMessage, o Options) (*Mailer, error) {
	s, err := readSettings(raw, o.Secret != nil)
	if o.Domain != "" && !isHost(o.Domain) {
		err = errors.Join(err, &holdfast.FieldError{Field: "domain", Value: clip(o.Domain, 80), Problem: "is no domain: letters, digits, dots and hyphens"})
	}
	if err := errors.Join(err, s.loadTLS()); err != nil {
		return nil, err
	}
	if err := s.checkUses(o.MayUse); err != nil {
		return nil, err
	}
	m := &Mailer{settings: s, secret: o.Secret, log: o.Logger, dialer: o.DialContext}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if s.tls == tlsOpportunistic {
		m.log.Warn("mail goes in clear where the server offers no TLS: this channel is set to opportunistic", slog.String("server", s.address()))
	}
	if m.dialer == nil {
		m.dialer = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	m.domain = cmp.Or(s.messageIDDomain, o.Domain, s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:])
	m.pool = newPool(s.connections, s.idle)
	if g := s.auth.grant; g.url != "" {
		m.tokens = oauth.New(oauth.Grant{
			URL: g.url, Client: g.client, Scopes: g.scopes,
			Secret: func() (string, error) { return m.read(s.grantUse()) },
			HTTP:   tokenClient(s.roots),
		})
	}
	return m, nil
}

// Close ends connections that are idle.
func (m *Mailer) Close() {
	m.pool.close()
	if m.tokens != nil {
		m.tokens.Close()
	}
}

// Send makes one attempt. It ends when each recipient's outcome is known, when
// nothing more can be done now, or when ctx ends; after the last dot of a mail the
// answer is waited for, for half a minute more if ctx has ended.
func (m *Mailer) Send(ctx context.Context, n *notify.Notification, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
	r := &run{m: m, n: n, known: known, twins: map[int][]int{}, report: notify.Report{To: make([]notify.Delivery, len(to)), Server: m.settings.address()}}
	r.address(to)
	if len(r.open) > 0 {
		r.send(ctx)
	}
	return r.report
}
