package link

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// CentralConfig configures central's end of the link. Store and Receiver are required.
type CentralConfig struct {
	Store sites.Store
	// Receiver takes the messages that sites forward; their Source is the name of the site. A
	// BatchReceiver gets whole batches. It is called concurrently.
	Receiver    holdfast.Receiver
	Destination string // name of this node; it becomes the Destination of messages that come in

	// Limits returns what one site may send. Nil: sites have no limits.
	Limits func(site string) Limits

	// Own is the source of this node's own notifications. No site may have this name. Empty: this
	// node has no notifications of its own.
	Own string

	// Standing returns the standing of one of the site's notifications. For a notification of
	// another site it returns ErrNotFound. Nil: every question gets ErrNotFound.
	Standing func(ctx context.Context, site string, id holdfast.ID) (notify.Standing, error)

	// Copies takes the audit logs of the sites. Nil: this central takes none.
	Copies sites.Copies

	// Witness exchanges checkpoints of audit logs with the sites. Nil: none are.
	Witness Witness
	// Erasing exchanges erasures of audit logs with the sites. Nil: none are.
	Erasing Erasing

	// AtWork limits the requests that are at work at one time, over all sites, in MiB; a small
	// request counts as 64 KiB. Bodies that arrive slowly have as much room again. Zero: 16.
	AtWork     int
	MaxPayload int           // bytes; zero: 1 MiB
	Timeout    time.Duration // of one call of the Receiver; zero: 1 min
	// ClientCerts requires a certificate of each site, beside its credential. The listener has
	// verified the certificate (ServerTLS). Zero: no certificate is required.
	ClientCerts ClientCerts
	Logger      *slog.Logger            // nil: silent
	Refused     func(transport.Refused) // called for each caller and message that is turned away; may be nil
}

// Central is the end of the link where the sites come together. Several central nodes over one
// store each have their own Central. A site may send messages to any of them, but it polls one, and
// only that one can send it commands.
type Central struct {
	conf    CentralConfig
	log     *slog.Logger
	few     *slog.Logger // rate-limited: for events that anybody can cause
	server  *transport.Server
	gate    *gate
	answers *serve.Room // for bodies with answers
	longest int64       // bytes of the longest request with messages

	telemetry *serve.Room // for batches of audit records

	mu     sync.Mutex
	boxes  map[string]*siteState // by the site's name; sites that have polled
	closed bool
}

// Limits of a batch, small enough for ordinary proxies (design: section 10).
const (
	batchRows  = 500
	batchBytes = 1 << 20
)

// NewCentral checks all settings and returns all faults at once.
func NewCentral(conf CentralConfig) (*Central, error) {
	var faults []error
	if conf.Store == nil {
		faults = append(faults, errors.New("store: must be set"))
	}
	if conf.AtWork < 0 {
		faults = append(faults, errors.New("atWork: must not be negative"))
	}
	conf.AtWork = cmp.Or(conf.AtWork, 16)
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Central{conf: conf, log: conf.Logger, few: serve.FewLines(conf.Logger), gate: newGate(conf.AtWork), answers: serve.NewRoom(4 * maxAnswers), telemetry: newTelemetryRoom(), boxes: map[string]*siteState{}}
	// A request without a Content-Length may hold a batch or one message; allow for the larger.
	c.longest = int64(max(batchBytes, cmp.Or(conf.MaxPayload, batchBytes)+wire.Overhead))
	var err error
	receiver := conf.Receiver
	if conf.Limits != nil && receiver != nil {
		receiver = &limited{to: receiver, of: conf.Limits, log: conf.Logger, refused: conf.Refused, sites: map[string]*spent{}}
	}
	c.server, err = transport.NewServer(transport.ServerConfig{
		Receiver: receiver, Authenticate: c.identify, Destination: conf.Destination,
		MaxPayload: conf.MaxPayload, MaxBatch: batchRows, MaxBatchBytes: batchBytes,
		Concurrency: max(conf.AtWork, 1) * perBatch, Timeout: conf.Timeout, Logger: conf.Logger, Refused: conf.Refused,
	})
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("new central: %w", err)
	}
	return c, nil
}

// Handler serves the link's Paths. The http.Server around it sets the read and idle time-outs; its
// write time-out must be at least 40 s.
func (c *Central) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+EnrollPath, c.serveEnroll)
	mux.HandleFunc("POST "+MessagesPath, c.known(forMessages, c.serveMessages))
	mux.HandleFunc("POST "+PollPath, c.known(forCommands, c.servePoll))
	mux.HandleFunc("POST "+AnswersPath, c.known(forCommands, c.serveAnswers))
	mux.HandleFunc("POST "+StandingPath, c.known(forQuestions, c.serveStanding))
	if c.conf.Copies != nil {
		mux.HandleFunc("POST "+TelemetryPath, c.known(forTelemetry, c.serveTelemetry))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.certified(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// Close ends the polls under way, so that the server can stop, and refuses new ones. Call it before
// the server's Shutdown.
func (c *Central) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, b := range c.boxes {
		b.end()
	}
}

type siteKey struct{}

// identify returns the site whose credential the request carries.
func (c *Central) identify(r *http.Request) (string, error) {
	if name, ok := r.Context().Value(siteKey{}).(string); ok {
		return name, nil // Caller has looked it up already
	}
	secret := bearer.Of(r)
	if !bearer.WellFormed(credentialPrefix, secret) {
		return "", fmt.Errorf("credential not well-formed: %w", holdfast.ErrNotFound)
	}
	return c.conf.Store.FindSite(r.Context(), bearer.Hash(secret))
}

// known admits only requests with a site's credential.
func (c *Central) known(to purpose, next func(w http.ResponseWriter, r *http.Request, site string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		site, ok := c.server.Caller(w, r)
		if !ok || !c.certifies(w, r, site) {
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), siteKey{}, site))
		leave, ok := c.gate.visit(visitor{site, to})
		if !ok {
			tooBusy(w)
			return
		}
		defer leave()
		next(w, r, site)
	}
}

// serveMessages waits for room and hands a batch to the transport's server. The body is not read
// before there is room.
func (c *Central) serveMessages(w http.ResponseWriter, r *http.Request, site string) {
	s := c.gate.enter(w, r, site, c.longest)
	if s == nil {
		return
	}
	defer s.leave()
	r.Body = s
	c.server.ServeHTTP(w, r)
}

// serveEnroll takes a token and makes the site's own credential known.
func (c *Central) serveEnroll(w http.ResponseWriter, r *http.Request) {
	var in enrollment
	if !read(w, r, maxEnroll, &in) {
		return
	}
	token := bearer.Of(r)
	if !bearer.WellFormed(tokenPrefix, token) || !bearer.WellFormed(credentialPrefix, in.Credential) {
		c.server.RefuseCaller(w, r, errors.New("enrolment: token or credential not well-formed"))
		return
	}
	if !c.mayEnroll(w, r, token) {
		return
	}
	name, err := c.conf.Store.EnrollSite(r.Context(), bearer.Hash(token), bearer.Hash(in.Credential))
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		c.server.RefuseCaller(w, r, fmt.Errorf("enrolment: %w", err))
		return
	case errors.Is(err, sites.ErrDoubted):
		c.few.LogAttrs(r.Context(), slog.LevelWarn, "site not enrolled", slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
		refuse(w, http.StatusServiceUnavailable, wire.Reply{
			Outcome: holdfast.NotStarted.String(), Code: codeDoubted, Error: "the token has expired by central's clock, which central doubts",
		})
		return
	case err != nil:
		c.few.LogAttrs(r.Context(), slog.LevelError, "site not enrolled", slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
		unavailable(w)
		return
	}
	c.log.LogAttrs(r.Context(), slog.LevelInfo, "site enrolled", slog.String("site", name), slog.String("remote", r.RemoteAddr))
	write(w, enrolled{Site: name})
}

// read decodes the body of a request. If it cannot, it answers the request with the reason and
// returns false.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, serve.InTime(w, r), most))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		status = http.StatusRequestEntityTooLarge
	}
	refuse(w, status, wire.Reply{Outcome: holdfast.Permanent.String(), Code: "unreadable", Error: "the body is not valid for this path"})
	return false
}

func write(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		unavailable(w)
		return
	}
	send(w, http.StatusOK, text)
}

func refuse(w http.ResponseWriter, status int, reply wire.Reply) {
	send(w, status, reply.AppendTo(nil))
}

func send(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", wire.MessageType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // if the site is gone, it will ask again
}

// unavailable answers that the store cannot be read or written now.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryafter.Seconds(5*time.Second))
	refuse(w, http.StatusServiceUnavailable, wire.Reply{Outcome: holdfast.NotStarted.String(), Code: "unavailable", Error: "central is unavailable now"})
}
