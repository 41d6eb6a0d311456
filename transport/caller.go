package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/wire"
)

// lookupWait is what a caller is told to wait who cannot be looked up now.
const lookupWait = 5 * time.Second

// crowdedWait is what one is told for whom there was no room.
const crowdedWait = time.Second

// Caller says who makes a request, as ServerConfig.Authenticate has it. A
// request that it refuses it answers, and counts against the caller's address
// as ServeHTTP does; then ok is false. It is for other routes of the same
// callers.
func (s *Server) Caller(w http.ResponseWriter, r *http.Request) (source string, ok bool) {
	if s.conf.Authenticate == nil {
		return "", true
	}
	source, err := s.conf.Authenticate(r)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		s.RefuseCaller(w, r, err)
		return "", false
	case err != nil:
		s.few.LogAttrs(r.Context(), slog.LevelError, "caller not looked up", slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
		w.Header().Set("Retry-After", retryafter.Seconds(lookupWait))
		if r.Context().Err() != nil {
			w.Header().Set("Connection", "close") // nothing that comes by it would be looked up
		}
		s.refuseRequest(w, http.StatusServiceUnavailable, holdfast.NotStarted, "unavailable", "callers cannot be looked up now")
		return "", false
	}
	if !serve.Known(r) {
		s.crowded(w)
		return "", false
	}
	return source, true
}

// crowded answers a request of somebody known that had to give way before.
func (s *Server) crowded(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", retryafter.Seconds(crowdedWait))
	s.refuseRequest(w, http.StatusServiceUnavailable, holdfast.NotStarted, CodeBusy, serve.ErrCrowded.Error())
}

// RefuseCaller answers a request whose proof is wrong, without a word about
// what was wrong with it. Too many from one address are told to wait, and the
// log is silent; who has a good proof always passes.
func (s *Server) RefuseCaller(w http.ResponseWriter, r *http.Request, problem error) {
	reply := wire.Reply{Error: "credential refused", Code: CodeCredential, Outcome: holdfast.LaneFault.String()}
	s.TurnAway(w, r, http.StatusUnauthorized, reply, problem)
}

// TurnAway answers a request with a refusal, which is logged, counted and
// limited as that of a caller is.
func (s *Server) TurnAway(w http.ResponseWriter, r *http.Request, status int, reply wire.Reply, problem error) {
	in := incoming{reply: reply}
	if !s.report(r, &in, problem) {
		status, in.reply.RetryAfter = http.StatusTooManyRequests, serve.RefusedWait
		w.Header().Set("Retry-After", retryafter.Seconds(serve.RefusedWait))
		w.Header().Set("Connection", "close") // make the next guess cost a handshake
	} else if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	s.write(w, status, wire.MessageType, in.reply.AppendTo(nil))
}

// refuseSource turns a message away that names another source than its
// caller: nobody can write as somebody else. It parks at the sender.
func (s *Server) refuseSource(r *http.Request, in *incoming, from string) {
	err := &holdfast.Failure{
		Outcome: holdfast.Permanent, Code: CodeWrongSource, Reason: holdfast.ReasonPermanent,
		Err: fmt.Errorf("the credential is that of %q", from),
	}
	in.reply = wire.ReplyTo(holdfast.Receipt{}, err)
	in.refused = &refusal{http.StatusForbidden}
	s.report(r, in, err)
}
