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

// ClientConfig says how one peer is reached. Only URL is needed.
type ClientConfig struct {
	// Heard is told what the clock of another machine shows that has answered a
	// question over TLS. It must not block for long. Nil: nobody is.
	Heard func(at time.Time)
	// URL is https://host[:port][/prefix], http://…, or unix:///path; the
	// protocol's path /_rf/receive is added unless it stands there.
	URL string
	// Source is the sourceServiceId of messages that name none.
	Source string
	// Secrets sign: the first one, and after a refusal the next, so that both
	// sides of a rotation may go first. Empty: unsigned.
	Secrets []*wire.Secret
	// V1 signs as OI-09 says, for peers that know nothing else.
	V1 bool
	// To is the receiver's name, which a signature of v2 covers: another receiver
	// that has the secret, too, refuses what it did not get from us. Empty: not said.
	To string
	// Credential is a second way to prove who sends: it is asked before each
	// request, which brings the answer as a bearer token. It goes with no
	// Secrets and, without TLS, with an address of the loopback or a socket
	// only. Its error fails the lane, and must not hold the credential.
	Credential func() (string, error)
	// Path replaces the protocol's path below URL. It goes with no Secrets,
	// whose signatures cover the usual one. Zero: wire.ReceivePath.
	Path string

	MaxBatch    int           // messages of a batch, if the peer takes as many; zero: 512; 1: no batches
	MaxReply    int64         // bytes of a reply that are read; zero: 8 MiB
	Concurrency int           // idle connections that are kept; zero: 32
	DialTimeout time.Duration // for a connection, and again for its TLS handshake; zero: 10 s
	// Timeout is of one request, and longer for a message that alone is more than
	// the line carries in it. Zero: the context's deadline is all there is.
	Timeout time.Duration

	// RetryAfter caps what a reply of the peer may ask us to wait. Whatever else
	// answers, such as a proxy, is obeyed for five minutes at most. Zero: a day.
	RetryAfter time.Duration

	CA  []byte      // PEM: trusted beside the system's roots
	TLS *tls.Config // zero: TLS 1.2 and later, the system's roots
	// Dial opens connections in another way; without it proxies of the
	// environment are used.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Logger *slog.Logger // nil: silent
}

// Client delivers to one peer. Its methods may be called concurrently.
type Client struct {
	conf    ClientConfig
	base    string // of the peer
	away    bool   // it is another machine, known by its certificate
	url     string // where messages are posted
	http    *exchange.Client
	log     *slog.Logger
	offer   offer
	pace    pace
	current atomic.Int32 // index of the secret that the peer took last
	readers sync.Pool    // of *wire.Decoder
}

var _ holdfast.BatchDeliverer = (*Client)(nil)

// NewClient checks the settings, all at once, and connects to nothing.
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
		faults = append(faults, errors.New("secrets: with a credential, or another path, messages are not signed; leave the secrets out"))
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

// BatchSize is what the peer has announced, within the client's own limit,
// and less after a batch was too large, or where the line carries less in time;
// 1 until the peer has said anything.
func (c *Client) BatchSize() int {
	rows, _ := c.offer.limits(c.conf.MaxBatch)
	return min(rows, c.pace.rows())
}

// Deliver makes one attempt. It ends with ctx at the latest; the receiver is
// told how long that is.
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

// named fills in the client's source.
func (c *Client) named(m *holdfast.Message) holdfast.Message {
	own := *m
	if own.Source == "" {
		own.Source = c.conf.Source
	}
	return own
}

// eachSecret calls try with the secret that worked last, then, as long as
// it is refused, with each of the others. It remembers which was taken.
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
				c.log.Info("peer took another secret", slog.String("key_id", all[i].ID()))
			}
			return
		}
	}
}

// judge reads the answer to one message: our reply decides, else the status.
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

// bare classifies an answer by its status. What a server of TLS says to plain
// HTTP is no refusal of the message.
func (c *Client) bare(a answer) *holdfast.Failure {
	if strings.HasPrefix(c.base, "http://") && exchange.PlainToTLS(a.status, a.body) {
		return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: CodeTLS, Err: errors.New("the other side speaks TLS: write https:// in place of http://")}
	}
	return statusFailure(a.status)
}

func (c *Client) readReply(body []byte) (wire.Reply, bool) {
	if len(body) == 0 || body[0] != '{' && !strings.ContainsRune(" \t\r\n", rune(body[0])) {
		return wire.Reply{}, false
	}
	d := c.readers.Get().(*wire.Decoder) // the pool holds nothing else
	defer c.readers.Put(d)
	reply, err := d.DecodeReply(body)
	reply.RetryAfter = min(reply.RetryAfter, c.conf.RetryAfter)
	return reply, err == nil
}

// clockHint helps with the commonest cause of refused signatures, which the
// receiver does not tell.
func clockHint(h http.Header) string {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return ""
	}
	if off := time.Since(at).Round(time.Second); off > wire.Tolerance || off < -wire.Tolerance {
		return fmt.Sprintf("; this clock is %s off the peer's, signatures allow %s", off, wire.Tolerance)
	}
	return ""
}

// strangerWait caps a Retry-After in the head of an answer, which nobody vouches
// for: anything on the way may write it.
const strangerWait = 5 * time.Minute

// withHeaders adds to a failure what the headers say beside the reply, and
// takes out what the other side must not quote.
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

// failed is the result of an attempt that ended with err.
func failed(id holdfast.ID, err error) holdfast.Result {
	f := *holdfast.AsFailure(err)
	if f.Err == nil {
		f.Err = errors.New(f.Code)
	}
	f.Err = fmt.Errorf("deliver message %s: %w", id, f.Err)
	return holdfast.Result{Receipt: holdfast.Receipt{ID: id}, Err: &f}
}
