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
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/oauth"
	"github.com/holdfast-mq/holdfast/notify"
)

// Options are what a Mailer needs from its surroundings. The zero value works with servers that
// need no credentials.
type Options struct {
	// Secret returns a secret for one use. It is called at each use, so a new secret takes effect
	// with the next connection. Spaces and line ends around it are ignored. Nil: there are no
	// secrets, and settings may name none.
	Secret func(use notify.SecretUse) ([]byte, error)
	// MayUse returns an error if a secret must not be used in this way; it does not read the
	// secret. New then refuses the settings. Nil: every use is allowed that Secret allows.
	MayUse func(use notify.SecretUse) error
	Logger *slog.Logger // nil: nothing is logged
	// Domain is the domain of Message-IDs if the settings name none. Empty: the domain of the
	// sender's address. It must be the same on each node and at each attempt.
	Domain string
	// Addresses are what the channel may reach: networks such as 10.0.0.0/8, addresses, and the word
	// "public". Empty: everything.
	Addresses []string
	// DialContext is for tests; Addresses has no effect on it. Nil: that of a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Mailer delivers the notifications of one channel. Use New; the zero value is not usable. A Mailer
// may be used concurrently.
type Mailer struct {
	settings settings
	secret   func(use notify.SecretUse) ([]byte, error)
	log      *slog.Logger
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	domain   string
	tokens   *oauth.Tokens // nil: no OAuth2 grant
	pool     *pool

	strikes atomic.Int32 // consecutive connections that the server has turned away
	spurned atomic.Int32 // consecutive mails whose sender was refused
	bears   atomic.Pointer[learned]
	worked  atomic.Bool // the server accepted our credentials the last time
	refused refusal
}

// learned is how many recipients the server accepts in one mail, as it last said.
type learned struct {
	most int
	at   time.Time
}

// learnedFor is how long that counts: the limit may be temporary.
const learnedFor = time.Hour

var _ notify.Adapter = (*Mailer)(nil)

// New returns a Mailer, or all faults of its settings, each a *holdfast.FieldError. It does not
// connect.
func New(raw json.RawMessage, o Options) (*Mailer, error) {
	s, err := readSettings(raw, o.Secret != nil)
	if o.Domain != "" && !isHost(o.Domain) {
		err = errors.Join(err, &holdfast.FieldError{Field: "domain", Value: clip(o.Domain, 80), Problem: "is not a domain: letters, digits, dots and hyphens"})
	}
	guard, wrong := addressguard.New(o.Addresses)
	if err := errors.Join(err, s.loadTLS(), wrong); err != nil {
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
		m.dialer = guard.Dialer(&net.Dialer{KeepAlive: 30 * time.Second})
	}
	m.domain = cmp.Or(s.messageIDDomain, o.Domain, s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:])
	m.pool = newPool(s.connections, s.idle)
	if g := s.auth.grant; g.url != "" {
		m.tokens = oauth.New(oauth.Grant{
			URL: g.url, Client: g.client, Scopes: g.scopes,
			Secret: func() (string, error) { return m.read(s.grantUse()) },
			HTTP:   tokenClient(s.roots, guard),
		})
	}
	return m, nil
}

// Close closes idle connections.
func (m *Mailer) Close() {
	m.pool.close()
	if m.tokens != nil {
		m.tokens.Close()
	}
}

// Send makes one attempt. It returns when each recipient's outcome is known, when nothing more can
// be done now, or when ctx ends. After the last dot of a mail it waits for the answer, for up to
// half a minute after ctx has ended.
func (m *Mailer) Send(ctx context.Context, n *notify.Notification, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
	r := &run{m: m, n: n, known: known, twins: map[int][]int{}, report: notify.Report{To: make([]notify.Delivery, len(to)), Server: m.settings.address()}}
	r.address(to)
	if len(r.open) > 0 {
		r.send(ctx)
	}
	return r.report
}
