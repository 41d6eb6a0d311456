package transport

import (
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// serveProbe answers whether the signature is good. Nothing reaches the Receiver, and nothing is
// remembered. A wrong signature counts like that of a message, so that guessing is not free here.
func (s *Server) serveProbe(w http.ResponseWriter, r *http.Request) {
	data, ok := s.read(w, r, wire.Overhead)
	if !ok {
		return
	}
	frames, err := wire.Frames(data, 1)
	if err != nil || len(frames) != 1 {
		s.refuseRequest(w, http.StatusBadRequest, holdfast.Permanent, wire.CodeEnvelope, "not a probe")
		return
	}
	d := s.readers.Get().(*wire.Decoder) // the pool holds only decoders
	e, err := d.Decode(frames[0])
	s.readers.Put(d)
	if err != nil {
		s.refuseRequest(w, http.StatusBadRequest, holdfast.Permanent, wire.CodeEnvelope, "not a probe")
		return
	}
	in := incoming{envelope: e, reply: wire.Reply{Outcome: holdfast.NotStarted.String(), Code: wire.CodeProbe}}
	status := http.StatusOK
	if err := s.verify(&in.envelope, wire.ProbePath); err != nil {
		s.refuseSignature(r, &in, err)
		status = in.status()
	}
	s.write(w, status, wire.ProbeType, in.reply.AppendTo(nil))
}
