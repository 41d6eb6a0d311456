package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/wire"
)

// incoming is one message of a request.
type incoming struct {
	envelope wire.Envelope
	reply    wire.Reply
	refused  *refusal // nil: it may reach the Receiver
}

// refusal is why a message goes no further, and the status that says so when
// it came alone.
type refusal struct{ status int }

func (in *incoming) status() int {
	if in.refused != nil {
		return in.refused.status
	}
	return replyStatus(&in.reply)
}

// open decodes and verifies one envelope of a caller. What it refuses has its
// reply.
func (s *Server) open(r *http.Request, data []byte, from string) incoming {
	d := s.readers.Get().(*wire.Decoder) // the pool holds nothing else
	e, err := d.Decode(data)
	s.readers.Put(d)
	in := incoming{envelope: e}
	if err != nil {
		in.reply = wire.ReplyTo(holdfast.Receipt{}, err)
		in.refused = &refusal{http.StatusBadRequest}
		if in.reply.Code == wire.CodeVersion {
			in.reply.Error = "this node speaks version " + wire.Version
			in.refused.status = http.StatusUpgradeRequired
		}
		s.report(r, &in, err)
		return in
	}
	if err := s.verify(&in.envelope, wire.ReceivePath); err != nil {
		s.refuseSignature(r, &in, err)
		return in
	}
	s.confirmClock(r, &in.envelope)
	m := &in.envelope.Message
	if s.conf.Authenticate != nil && m.Source != from {
		s.refuseSource(r, &in, from)
		return in
	}
	if len(m.Payload) > s.conf.MaxPayload {
		err := &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: wire.CodeTooLarge, Reason: holdfast.ReasonTooLarge,
			Err: fmt.Errorf("payload has %d bytes; %d are taken", len(m.Payload), s.conf.MaxPayload),
		}
		s.note(r.Context(), m, err)
		in.reply = wire.ReplyTo(holdfast.Receipt{}, err)
		in.refused = &refusal{http.StatusRequestEntityTooLarge}
		s.count(serve.Address(r), &in, err, false)
		return in
	}
	m.Destination = s.conf.Destination
	return in
}

// refuseSignature does not tell the caller what was wrong.
func (s *Server) refuseSignature(r *http.Request, in *incoming, problem error) {
	in.reply = wire.Reply{
		Error: "signature refused", Code: CodeSignature, Outcome: holdfast.LaneFault.String(),
	}
	in.refused = &refusal{http.StatusUnauthorized}
	if !s.report(r, in, problem) {
		in.refused.status, in.reply.RetryAfter = http.StatusTooManyRequests, serve.RefusedWait
	}
}

// verify holds the signature against the secrets of the source. One of v1
// covers no path, so that it is good for messages only.
func (s *Server) verify(e *wire.Envelope, path string) error {
	if s.conf.Peer == nil {
		return nil // Insecure, or the request itself was proven
	}
	peer, ok := s.conf.Peer(e.Message.Source)
	if !ok || len(peer.Secrets) == 0 {
		return errors.New("unknown source")
	}
	return e.Verify(wire.Check{
		Secrets: peer.Secrets, V1: peer.V1 && path == wire.ReceivePath, Path: path, Now: time.Now(), Names: s.conf.Names,
	})
}

// report logs and counts what was refused (OI-18), within the limit of the
// caller's address. The address is logged: it is what an operator needs in
// order to act.
func (s *Server) report(r *http.Request, in *incoming, problem error) (within bool) {
	from := serve.Address(r)
	within, tell := s.watch.Refuse(from)
	e := &in.envelope
	attrs := []slog.Attr{
		slog.String("message_id", shorten(e.MessageID)), slog.String("source", shorten(e.Message.Source)),
		slog.String("remote", from.String()), slog.Any("error", problem),
	}
	switch {
	case !tell:
	case in.reply.Code == CodeSignature:
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "signature refused", attrs...)
	default:
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "envelope refused", attrs...)
	}
	s.count(from, in, problem, !tell)
	return within
}

func (s *Server) count(from netip.Addr, in *incoming, problem error, suppressed bool) {
	if s.conf.Refused == nil {
		return
	}
	e := &in.envelope
	s.conf.Refused(Refused{
		Source: shorten(e.Message.Source), MessageID: shorten(e.MessageID), Remote: from, Code: in.reply.Code, Problem: problem.Error(), Suppressed: suppressed,
	})
}

// shorten bounds what a stranger may write into a log.
func shorten(s string) string {
	if len(s) > holdfast.MaxIDLen {
		return s[:holdfast.MaxIDLen]
	}
	return s
}
