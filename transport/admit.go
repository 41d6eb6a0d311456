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
	refused  *refusal // nil: the message may reach the Receiver
}

// refusal says why a message goes no further. Its status answers a message that came alone.
type refusal struct{ status int }

func (in *incoming) status() int {
	if in.refused != nil {
		return in.refused.status
	}
	return replyStatus(&in.reply)
}

// open decodes and verifies one envelope of a caller. If it refuses the envelope, the reply is set.
func (s *Server) open(r *http.Request, data []byte, from string) incoming {
	d := s.readers.Get().(*wire.Decoder) // the pool holds only decoders
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
			Err: fmt.Errorf("payload has %d bytes; at most %d are accepted", len(m.Payload), s.conf.MaxPayload),
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

// refuseSignature refuses a message without telling the caller what was wrong with the signature.
func (s *Server) refuseSignature(r *http.Request, in *incoming, problem error) {
	in.reply = wire.Reply{
		Error: "signature refused", Code: CodeSignature, Outcome: holdfast.LaneFault.String(),
	}
	in.refused = &refusal{http.StatusUnauthorized}
	if !s.report(r, in, problem) {
		in.refused.status, in.reply.RetryAfter = http.StatusTooManyRequests, serve.RefusedWait
	}
}

// verify checks the signature against the secrets of the source. A v1 signature covers no path, so
// it is good for messages only.
func (s *Server) verify(e *wire.Envelope, path string) error {
	if s.conf.Peer == nil {
		return nil // Insecure, or Authenticate has identified the caller
	}
	peer, ok := s.conf.Peer(e.Message.Source)
	if !ok || len(peer.Secrets) == 0 {
		return errors.New("unknown source")
	}
	return e.Verify(wire.Check{
		Secrets: peer.Secrets, V1: peer.V1 && path == wire.ReceivePath, Path: path, Now: time.Now(), Names: s.conf.Names,
	})
}

// report logs and counts a refusal (OI-18). It returns false if the caller's address is over its
// limit. It logs the address, which an operator needs in order to act.
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

// shorten limits what a stranger can write into the log.
func shorten(s string) string {
	if len(s) > holdfast.MaxIDLen {
		return s[:holdfast.MaxIDLen]
	}
	return s
}
