package transport

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/wire"
)

// Peer is what a server knows about one source of messages.
type Peer struct {
	Secrets []*wire.Secret // all secrets that are valid now
	V1      bool           // the source may also sign in the form of OI-09
}

// ServerConfig says who may send, and how much. Receiver and Peer are required; Insecure or
// Authenticate may replace Peer.
type ServerConfig struct {
	Receiver holdfast.Receiver
	// Peer looks up a source; it is called for each message, concurrently.
	Peer func(source string) (Peer, bool)
	// Insecure accepts unsigned messages from anybody. It excludes Peer.
	Insecure bool
	// Authenticate replaces Peer: it returns the source of a request. Its messages need no
	// signature, and all must have that source. holdfast.ErrNotFound refuses the request; after any
	// other error the caller may try again.
	Authenticate func(r *http.Request) (source string, err error)
	// Destination is this node's name; it becomes the Destination of messages that come in.
	Destination string
	// Names are the names by which senders may address this node. A message signed for another name
	// is refused. Empty: any name is accepted.
	Names []string

	MaxPayload    int           // bytes; zero: 1 MiB
	MaxBatch      int           // messages in a batch; zero: 512; 1: no batches
	MaxBatchBytes int           // zero: 4 MiB
	Concurrency   int           // concurrent calls of the Receiver; zero: 64
	Timeout       time.Duration // limits one call, whether or not the sender still waits; zero: 1 min

	Logger  *slog.Logger  // nil: silent
	Refused func(Refused) // called for each refused message; may be nil
	// Heard is called with the time that another machine's clock shows, if its signature is good.
	// It must not block for long. May be nil.
	Heard func(at time.Time)
}

// Refused is a message, or a whole request, that was refused before it reached the Receiver.
type Refused struct {
	Source, MessageID string // as in the envelope; not verified
	Remote            netip.Addr
	Code              string // CodeSignature, CodeCredential, CodeWrongSource or one of package wire
	Problem           string
	Suppressed        bool // not logged, because there are too many
}

// Server receives messages over HTTP. It serves POST at whatever path it is mounted (usually
// wire.ReceivePath). The http.Server around it sets the read and idle time-outs.
type Server struct {
	conf    ServerConfig
	log     *slog.Logger
	few     *slog.Logger // rate-limited: for events that anybody can cause
	offer   string
	slots   chan struct{} // limits concurrent calls of the Receiver
	proven  *serve.Room   // room for the bodies of proven senders
	watch   serve.Watch
	readers sync.Pool // of *wire.Decoder
}

var _ http.Handler = (*Server)(nil)

// NewServer checks all settings and returns all faults at once.
func NewServer(conf ServerConfig) (*Server, error) {
	if conf.MaxPayload == 0 {
		conf.MaxPayload = 1 << 20
	}
	if conf.MaxBatch == 0 {
		conf.MaxBatch = defaultBatchRows
	}
	if conf.MaxBatchBytes == 0 {
		conf.MaxBatchBytes = defaultBatchBytes
	}
	if conf.Concurrency == 0 {
		conf.Concurrency = 64
	}
	if conf.Timeout == 0 {
		conf.Timeout = time.Minute
	}
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(conf.faults()...); err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	s := &Server{conf: conf, log: conf.Logger, few: serve.FewLines(conf.Logger), slots: make(chan struct{}, conf.Concurrency), proven: serve.NewRoom(provenBytes)}
	s.readers.New = func() any { return new(wire.Decoder) }
	if conf.MaxBatch > 1 {
		s.offer = formatOffer(conf.MaxBatch, conf.MaxBatchBytes)
	}
	return s, nil
}

func (c *ServerConfig) faults() []error {
	var faults []error
	if c.Receiver == nil {
		faults = append(faults, errors.New("receiver: must be set"))
	}
	if c.Peer == nil && c.Authenticate == nil && !c.Insecure {
		faults = append(faults, errors.New("peer: must be set; otherwise nobody could send"))
	}
	if c.Peer != nil && c.Insecure {
		faults = append(faults, errors.New("insecure: must not be set together with peer"))
	}
	if c.Authenticate != nil && (c.Peer != nil || c.Insecure) {
		faults = append(faults, errors.New("authenticate: must not be set together with peer or insecure"))
	}
	for name, n := range map[string]int64{
		"maxPayload": int64(c.MaxPayload), "maxBatch": int64(c.MaxBatch), "maxBatchBytes": int64(c.MaxBatchBytes),
		"concurrency": int64(c.Concurrency), "timeout": int64(c.Timeout),
	} {
		if n < 0 {
			faults = append(faults, fmt.Errorf("%s: must not be negative", name))
		}
	}
	return faults
}

// ServeHTTP takes one message or a batch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.contain(w, r)
	if s.offer != "" {
		w.Header().Set(HeaderBatch, s.offer)
	}
	if r.Method != wire.Method {
		w.Header().Set("Allow", wire.Method)
		s.refuseRequest(w, http.StatusMethodNotAllowed, holdfast.LaneFault, "method_not_allowed", "only POST is served here")
		return
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		s.refuseRequest(w, http.StatusUnsupportedMediaType, holdfast.LaneFault, "content_encoding", "send the body as it is")
		return
	}
	from, ok := s.Caller(w, r)
	if !ok {
		return
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == wire.BatchType && s.conf.MaxBatch > 1:
		s.serveBatch(w, r, from)
	case err == nil && kind == wire.ProbeType:
		s.serveProbe(w, r)
	case r.Header.Get("Content-Type") == "" || err == nil && kind == wire.MessageType:
		s.serveSingle(w, r, from)
	default:
		s.refuseRequest(w, http.StatusUnsupportedMediaType, holdfast.LaneFault, "content_type", "send "+wire.MessageType)
	}
}

// contain answers a request whose handling panicked outside the Receiver.
func (s *Server) contain(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http's own way to end a connection
	}
	f := s.panicked(r.Context(), &holdfast.Message{}, p)
	reply := wire.ReplyTo(holdfast.Receipt{}, f)
	s.write(w, http.StatusInternalServerError, wire.MessageType, reply.AppendTo(nil))
}

// refuseRequest answers a request from which no message was read.
func (s *Server) refuseRequest(w http.ResponseWriter, status int, o holdfast.Outcome, code, text string) {
	reply := wire.Reply{Outcome: o.String(), Code: code, Error: text}
	if o == holdfast.Permanent {
		reply.Reason = holdfast.ReasonUndecodable
		if status == http.StatusRequestEntityTooLarge {
			reply.Reason = holdfast.ReasonTooLarge
		}
	}
	s.write(w, status, wire.MessageType, reply.AppendTo(nil))
}

func (s *Server) write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck,gosec // the sender is gone and will ask again
}

// provenBytes limits the bodies of proven senders that are at work or wait for it, in bytes.
const provenBytes = 64 << 20

// trustedLength is how many bytes are allocated before they have arrived.
const trustedLength = 16 << 10

// read reads the whole body. If it cannot, it answers the request and returns false.
func (s *Server) read(w http.ResponseWriter, r *http.Request, limit int) ([]byte, bool) {
	tooLarge := func() ([]byte, bool) {
		s.refuseRequest(w, http.StatusRequestEntityTooLarge, holdfast.Permanent, wire.CodeTooLarge,
			fmt.Sprintf("the body is larger than %d bytes", limit))
		return nil, false
	}
	if r.ContentLength > int64(limit) {
		return tooLarge()
	}
	body := http.MaxBytesReader(w, r.Body, int64(limit))
	var buf bytes.Buffer
	// The announced length is not trusted: a stranger who sends nothing must not hold megabytes
	// here.
	buf.Grow(int(min(max(r.ContentLength, 0), trustedLength)) + bytes.MinRead)
	_, err := buf.ReadFrom(body)
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return tooLarge()
	}
	if errors.Is(err, serve.ErrCrowded) {
		s.crowded(w)
		return nil, false
	}
	if err != nil {
		// The body was cut off or too slow. Nothing was taken, so the sender may try again, over
		// another connection.
		w.Header().Set("Connection", "close")
		s.refuseRequest(w, http.StatusRequestTimeout, holdfast.Transient, "body_cut", "the body did not arrive")
		return nil, false
	}
	return buf.Bytes(), true
}

func (s *Server) serveSingle(w http.ResponseWriter, r *http.Request, from string) {
	started := time.Now()
	data, ok := s.read(w, r, s.conf.MaxPayload+wire.Overhead)
	if !ok {
		return
	}
	in := s.open(r, data, from)
	if in.refused == nil {
		in.reply = notBegun()
		budget := budgetOf(r, started)
		if end, ok := s.keep(r, budget, len(data)); ok {
			defer end()
			in.reply = s.receive(r.Context(), budget, &in.envelope.Message)
		}
	}
	status := in.status()
	if in.reply.RetryAfter > 0 {
		w.Header().Set("Retry-After", retryafter.Seconds(in.reply.RetryAfter))
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Connection", "close") // so that the next guess costs a handshake
	}
	s.write(w, status, wire.MessageType, in.reply.AppendTo(nil))
}
