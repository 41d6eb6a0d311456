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

// CentralConfig says what central takes from its sites. Store and Receiver are
// needed.
type CentralConfig struct {
	Store sites.Store
	// Receiver takes what sites forward; Source is the site's name. A
	// BatchReceiver gets whole batches. It is called concurrently.
	Receiver    holdfast.Receiver
	Destination string // put into messages that come in: this node's name

	// Limits say what one site may send. Nil: anything.
	Limits func(site string) Limits

	// Own is the source of this node's own notifications, a name that no site may
	// have. Empty: there is none.
	Own string

	// Standing says how a site's notification stands, or ErrNotFound: a site is
	// told of its own only. Nil: nothing is known here.
	Standing func(ctx context.Context, site string, id holdfast.ID) (notify.Standing, error)

	// AtWork is how many MiB of requests are at work at one time, over all sites; a
	// small one counts 64 KiB. Bodies that come slowly have as much again. Zero: 16.
	AtWork     int
	MaxPayload int           // bytes; zero: 1 MiB
	Timeout    time.Duration // of one call of the Receiver; zero: 1 min
	// ClientCerts asks each site for a certificate that the listener has
	// verified (ServerTLS), beside its credential. Zero: none is asked for.
	ClientCerts ClientCerts
	Logger      *slog.Logger            // nil: silent
	Refused     func(transport.Refused) // told of each caller and message that is turned away; nil: nobody is
}

// Central is the end of the link where the sites come together. With several
// central nodes over one store each has its own: messages may go to any, while
// a site polls one of them, and only that one can ask it.
type Central struct {
	conf    CentralConfig
	log     *slog.Logger
	few     *slog.Logger // for what anybody can cause
	server  *transport.Server
	gate    *gate
	answers *serve.Room // of bodies with answers
	longest int64       // bytes of a request with messages

	mu     sync.Mutex
	boxes  map[string]*siteState // of sites that were here
	closed bool
}

// Limits of a batch: what ordinary proxies let through (design: section 10).
const (
	batchRows  = 500
	batchBytes = 1 << 20
)

// NewCentral checks the settings, all at once.
func NewCentral(conf CentralConfig) (*Central, error) {
	var faults []error
	if conf.Store == nil {
		faults = append(faults, errors.New("store: there is none"))
	}
	if conf.AtWork < 0 {
		faults = append(faults, errors.New("atWork: must not be negative"))
	}
	conf.AtWork = cmp.Or(conf.AtWork, 16)
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Central{conf: conf, log: conf.Logger, few: serve.FewLines(conf.Logger), gate: newGate(conf.AtWork), answers: serve.NewRoom(4 * maxAnswers), boxes: map[string]*siteState{}}
	// Without a length it may be a batch or one message, whichever is larger.
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

// Handler serves the link's Paths. Read and idle time-outs are those of
// the http.Server around it; it must let an answer take 40 s.
func (c *Central) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+EnrollPath, c.serveEnroll)
	mux.HandleFunc("POST "+MessagesPath, c.known(forMessages, c.serveMessages))
	mux.HandleFunc("POST "+PollPath, c.known(forCommands, c.servePoll))
	mux.HandleFunc("POST "+AnswersPath, c.known(forCommands, c.serveAnswers))
	mux.HandleFunc("POST "+StandingPath, c.known(forQuestions, c.serveStanding))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.certified(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// Close ends the polls under way, so that a server can stop, and refuses those
// to come. Call it before the server's Shutdown.
func (c *Central) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, b := range c.boxes {
		b.end()
	}
}

type siteKey struct{}

// identify is who makes a request, by the credential that it brings.
func (c *Central) identify(r *http.Request) (string, error) {
	if name, ok := r.Context().Value(siteKey{}).(string); ok {
		return name, nil // it was looked up already
	}
	secret := bearer.Of(r)
	if !bearer.WellFormed(credentialPrefix, secret) {
		return "", fmt.Errorf("credential not well-formed: %w", holdfast.ErrNotFound)
	}
	return c.conf.Store.FindSite(r.Context(), bearer.Hash(secret))
}

// known lets only sites in.
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

// serveMessages hands a batch to the transport's server once there is room for
// it; its body is not read before.
func (c *Central) serveMessages(w http.ResponseWriter, r *http.Request, site string) {
	s := c.gate.enter(w, r, site, c.longest)
	if s == nil {
		return
	}
	defer s.leave()
	r.Body = s
	c.server.ServeHTTP(w, r)
}

// serveEnroll exchanges a token for the credential that the site has made.
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
			Outcome: holdfast.NotStarted.String(), Code: codeDoubted, Error: "central doubts its clock, by which the token has ended",
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

// read decodes a request's body, or answers why not.
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
	refuse(w, status, wire.Reply{Outcome: holdfast.Permanent.String(), Code: "unreadable", Error: "the body is not what this path takes"})
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
	_, _ = w.Write(body) // the site is gone and will ask again
}

// unavailable is said when the store cannot answer.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryafter.Seconds(5*time.Second))
	refuse(w, http.StatusServiceUnavailable, wire.Reply{Outcome: holdfast.NotStarted.String(), Code: "unavailable", Error: "central cannot do this now"})
}
