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

// lookupWait is the Retry-After of a caller that cannot be looked up now.
const lookupWait = 5 * time.Second

// crowdedWait is the Retry-After of a caller for whom there was no room.
const crowdedWait = time.Second

// Caller returns the source of a request, as ServerConfig.Authenticate has it. If ok is false,
// Caller has answered the request and, if it refused the caller, counted that against the caller's
// address, as ServeHTTP does. Other routes for the same callers use it.
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
			w.Header().Set("Connection", "close") // nothing on this connection can be looked up any more
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

// crowded answers a request of a known caller that had to give way.
func (s *Server) crowded(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", retryafter.Seconds(crowdedWait))
	s.refuseRequest(w, http.StatusServiceUnavailable, holdfast.NotStarted, CodeBusy, serve.ErrCrowded.Error())
}

// RefuseCaller refuses a request whose proof of identity is wrong, without saying what was wrong.
// If too many come from one address, it asks the caller to wait and logs nothing. A caller with a
// good proof always passes.
func (s *Server) RefuseCaller(w http.ResponseWriter, r *http.Request, problem error) {
	reply := wire.Reply{Error: "credential refused", Code: CodeCredential, Outcome: holdfast.LaneFault.String()}
	s.TurnAway(w, r, http.StatusUnauthorized, reply, problem)
}

// TurnAway refuses a request with the given reply. The refusal is logged, counted and limited like
// that of a caller.
func (s *Server) TurnAway(w http.ResponseWriter, r *http.Request, status int, reply wire.Reply, problem error) {
	in := incoming{reply: reply}
	if !s.report(r, &in, problem) {
		status, in.reply.RetryAfter = http.StatusTooManyRequests, serve.RefusedWait
		w.Header().Set("Retry-After", retryafter.Seconds(serve.RefusedWait))
		w.Header().Set("Connection", "close") // so that the next guess costs a handshake
	} else if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	s.write(w, status, wire.MessageType, in.reply.AppendTo(nil))
}

// refuseSource refuses a message whose source is not its caller's: nobody can write in another's
// name. The message parks at the sender.
func (s *Server) refuseSource(r *http.Request, in *incoming, from string) {
	err := &holdfast.Failure{
		Outcome: holdfast.Permanent, Code: CodeWrongSource, Reason: holdfast.ReasonPermanent,
		Err: fmt.Errorf("the credential belongs to %q", from),
	}
	in.reply = wire.ReplyTo(holdfast.Receipt{}, err)
	in.refused = &refusal{http.StatusForbidden}
	s.report(r, in, err)
}
