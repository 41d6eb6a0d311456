package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/wire"
)

// ClientConfig configures a Client. Only URL is required.
type ClientConfig struct {
	// Heard is called with the time that the peer's clock shows, when the peer is another machine
	// that answered Ask over TLS. It must not block for long. May be nil.
	Heard func(at time.Time)
	// URL is https://host[:port][/prefix], http://… or unix:///path. The protocol's path
	// /_rf/receive is appended unless the URL ends in it.
	URL string
	// Source is the sourceServiceId of messages without a Source.
	Source string
	// Secrets sign messages. The client starts with the first secret and tries the next after a
	// refusal, so either side may rotate first. Empty: messages are unsigned.
	Secrets []*wire.Secret
	// V1 signs in the form of OI-09, for peers that know no other.
	V1 bool
	// To is the name of the receiver; a v2 signature covers it. Another receiver that shares the
	// secret then refuses the message. Empty: no receiver is named.
	To string
	// Credential proves the sender's identity in another way: it is called before each request and
	// returns a bearer token. It excludes Secrets. Without TLS the address must be on the loopback
	// or a socket. An error fails the lane; it must not contain the credential.
	Credential func() (string, error)
	// Path replaces the protocol's path below URL. It excludes Secrets, whose signatures cover the
	// usual path. Zero: wire.ReceivePath.
	Path string

	MaxBatch    int           // messages in a batch, if the peer takes as many; zero: 512; 1: no batches
	MaxReply    int64         // bytes of a reply that are read at most; zero: 8 MiB
	Concurrency int           // idle connections that are kept; zero: 32
	DialTimeout time.Duration // limits the connection and then its TLS handshake; zero: 10 s
	// Timeout limits one request. A single message that is too large for the line in this time gets
	// more. Zero: only the context's deadline counts.
	Timeout time.Duration

	// RetryAfter limits the wait that a reply of the peer may ask for. The Retry-After of any other
	// answer, such as a proxy's, is limited to five minutes. Zero: a day.
	RetryAfter time.Duration

	CA  []byte      // PEM: trusted in addition to the system's roots
	TLS *tls.Config // nil: TLS 1.2 and later, the system's roots
	// Dial opens connections. Nil: the default dialer, with the proxies of the environment.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger *slog.Logger // nil: silent
}

// Client delivers to one peer. Its methods may be called concurrently.
type Client struct {
	conf    ClientConfig
	base    string // of the peer
	away    bool   // the peer is another machine that its certificate identifies
	url     string // where messages are posted
	http    *exchange.Client
	log     *slog.Logger
	offer   offer
	pace    pace
	current atomic.Int32 // index of the secret that the peer accepted last
	readers sync.Pool    // of *wire.Decoder
}

var _ holdfast.BatchDeliverer = (*Client)(nil)

// NewClient checks all settings and returns all faults at once. It does not connect.
func NewClient(conf ClientConfig) (*Client, error) {
	if conf.MaxBatch == 0 {
		conf.MaxBatch = defaultBatchRows
	}
	if conf.MaxReply == 0 {
		conf.MaxReply = 8 << 20
	}
	if conf.Concurrency == 0 {
		conf.Concurrency = 32
	}
	if conf.DialTimeout == 0 {
		conf.DialTimeout = 10 * time.Second
	}
	if conf.RetryAfter == 0 {
		conf.RetryAfter = retryafter.Max
	}
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	faults := conf.negatives()
	if conf.V1 && len(conf.Secrets) == 0 {
		faults = append(faults, errors.New("v1: a signature needs a secret"))
	}
	if len(conf.Secrets) > 0 && (conf.Credential != nil || conf.Path != "") {
		faults = append(faults, errors.New("secrets: must not be set with a credential or another path, where messages are not signed"))
	}
	to, err := parseAddress(conf.URL)
	faults = append(faults, err)
	if err == nil && conf.Credential != nil && !to.private {
		faults = append(faults, errors.New("url: a credential is sent over TLS only; give https://, or an address of the loopback"))
	}
	calls, err := conf.client(to)
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	c := &Client{conf: conf, base: to.base, away: to.away, url: to.base + cmp.Or(conf.Path, wire.ReceivePath), http: calls, log: conf.Logger}
	if conf.Timeout > 0 {
		c.pace.line = firstLine
	}
	c.readers.New = func() any { return new(wire.Decoder) }
	return c, nil
}

func (c *ClientConfig) negatives() []error {
	var faults []error
	for name, n := range map[string]int64{
		"maxBatch": int64(c.MaxBatch), "maxReply": c.MaxReply, "concurrency": int64(c.Concurrency), "dialTimeout": int64(c.DialTimeout),
		"timeout": int64(c.Timeout), "retryAfter": int64(c.RetryAfter),
	} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s: must not be negative", name))
		}
	}
	return faults
}

// Close closes idle connections. Deliveries under way go on.
func (c *Client) Close() { c.http.Close() }

// BatchSize returns the batch size that the peer has announced, within the client's own limit. It
// is smaller after a batch was too large, or while the line is too slow for it. Before the peer's
// first announcement it is 1.
func (c *Client) BatchSize() int {
	rows, _ := c.offer.limits(c.conf.MaxBatch)
	return min(rows, c.pace.rows())
}

// Deliver makes one attempt. It returns when ctx ends at the latest. The receiver is told how much
// time is left.
func (c *Client) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := c.single(ctx, &m)
	return r.Receipt, r.Err
}

func (c *Client) single(ctx context.Context, m *holdfast.Message) holdfast.Result {
	var r holdfast.Result
	c.eachSecret(func(seal wire.Seal) (refused bool) {
		own := c.named(m)
		body, err := wire.Encode(make([]byte, 0, len(m.Payload)+1024), &own, seal)
		if err != nil {
			r = failed(m.ID, err)
			return false
		}
		a, fail := c.carry(ctx, wire.MessageType, 1, body)
		if fail != nil {
			r = failed(m.ID, fail)
			return false
		}
		r = c.judge(a, m.ID)
		return a.status == http.StatusUnauthorized || holdfast.AsFailure(r.Err).Code == CodeSignature
	})
	return r
}

// named fills in the client's source if the message has none.
func (c *Client) named(m *holdfast.Message) holdfast.Message {
	own := *m
	if own.Source == "" {
		own.Source = c.conf.Source
	}
	return own
}

// eachSecret calls try with the secret that worked last and, while secrets are refused, with each
// other secret. It remembers the one that the peer accepted.
func (c *Client) eachSecret(try func(wire.Seal) (refused bool)) {
	all := c.conf.Secrets
	if len(all) == 0 {
		try(wire.Seal{Now: time.Now()})
		return
	}
	first := int(c.current.Load())
	for n := range all {
		i := (first + n) % len(all)
		if !try(wire.Seal{Secret: all[i], V1: c.conf.V1, To: c.conf.To, Now: time.Now()}) {
			if n > 0 {
				c.current.Store(int32(i))
				c.log.Info("peer accepted another secret", slog.String("key_id", all[i].ID()))
			}
			return
		}
	}
}

// judge reads the answer to one message. A reply of our protocol decides; without one the status
// does.
func (c *Client) judge(a answer, id holdfast.ID) holdfast.Result {
	reply, ok := c.readReply(a.body)
	success := a.status >= 200 && a.status < 300
	if ok && (success || !reply.Acknowledged && !reply.Duplicate) {
		if r, decided := reply.Result(id); decided {
			return withHeaders(r, a)
		}
	}
	f := c.bare(a)
	if ok && reply.Error != "" {
		f.Err = fmt.Errorf("%w: the receiver says: %s", f.Err, reply.Error)
	}
	return withHeaders(failed(id, f), a)
}

// bare classifies an answer by its status. A TLS server's answer to plain HTTP is no refusal of the
// message.
func (c *Client) bare(a answer) *holdfast.Failure {
	if strings.HasPrefix(c.base, "http://") && exchange.PlainToTLS(a.status, a.body) {
		return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: CodeTLS, Err: errors.New("the other side speaks TLS: write https:// instead of http://")}
	}
	return statusFailure(a.status)
}

func (c *Client) readReply(body []byte) (wire.Reply, bool) {
	if len(body) == 0 || body[0] != '{' && !strings.ContainsRune(" \t\r\n", rune(body[0])) {
		return wire.Reply{}, false
	}
	d := c.readers.Get().(*wire.Decoder) // the pool holds only decoders
	defer c.readers.Put(d)
	reply, err := d.DecodeReply(body)
	reply.RetryAfter = min(reply.RetryAfter, c.conf.RetryAfter)
	return reply, err == nil
}

// clockHint adds to a refused signature its most common cause, a wrong clock, which the receiver
// does not tell.
func clockHint(h http.Header) string {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return ""
	}
	if off := time.Since(at).Round(time.Second); off > wire.Tolerance || off < -wire.Tolerance {
		return fmt.Sprintf("; this clock differs from the peer's by %s, signatures allow %s", off, wire.Tolerance)
	}
	return ""
}

// strangerWait limits a Retry-After in the headers of an answer. Nobody vouches for the headers:
// anything on the way may write them.
const strangerWait = 5 * time.Minute

// withHeaders adds what the headers say to a failure, and removes secrets that the other side has
// quoted.
func withHeaders(r holdfast.Result, a answer) holdfast.Result {
	if f, ok := errors.AsType[*holdfast.Failure](r.Err); ok {
		f.RetryAfter = max(f.RetryAfter, min(retryafter.Of(a.header), strangerWait))
		if a.status == http.StatusUnauthorized {
			f.Err = fmt.Errorf("%w%s", f.Err, clockHint(a.header))
		}
		if a.sent != "" {
			hide := hidden(a.sent)
			f.Code, f.Err = hide.Clean(f.Code), hide.Error(f.Err)
		}
	}
	return r
}

// failed returns the result of an attempt that ended with err.
func failed(id holdfast.ID, err error) holdfast.Result {
	f := *holdfast.AsFailure(err)
	if f.Err == nil {
		f.Err = errors.New(f.Code)
	}
	f.Err = fmt.Errorf("deliver message %s: %w", id, f.Err)
	return holdfast.Result{Receipt: holdfast.Receipt{ID: id}, Err: &f}
}
