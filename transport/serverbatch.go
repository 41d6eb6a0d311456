package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	// batchWorkers is how many messages of one batch a Receiver handles at a time.
	batchWorkers = 8
	// maxReplies limits the reply to a batch, in bytes. Results that do not fit are left out; the
	// sender asks again and gets them from the inbox.
	maxReplies = 4 << 20
)

func (s *Server) serveBatch(w http.ResponseWriter, r *http.Request, from string) {
	started := time.Now()
	data, ok := s.read(w, r, s.conf.MaxBatchBytes)
	if !ok {
		return
	}
	frames, err := wire.Frames(data, s.conf.MaxBatch)
	switch {
	case errors.Is(err, wire.ErrTooMany):
		s.refuseRequest(w, http.StatusRequestEntityTooLarge, holdfast.Permanent, wire.CodeTooLarge, "too many messages in one batch")
		return
	case err != nil || len(frames) == 0:
		s.refuseRequest(w, http.StatusBadRequest, holdfast.Permanent, wire.CodeEnvelope, "not a batch")
		return
	}
	all := make([]incoming, len(frames))
	good := make([]*incoming, 0, len(frames))
	for i, frame := range frames {
		all[i] = s.open(r, frame, from)
		if all[i].refused == nil {
			good = append(good, &all[i])
		}
	}
	s.receiveKept(r, budgetOf(r, started), len(data), good)
	s.write(w, batchStatus(all), wire.BatchType, appendReplies(all))
}

// batchStatus returns 200, since each message has its own reply, unless every signature was
// refused.
func batchStatus(all []incoming) int {
	for i := range all {
		if all[i].refused == nil || all[i].reply.Code != CodeSignature {
			return http.StatusOK
		}
	}
	return http.StatusUnauthorized
}

func appendReplies(all []incoming) []byte {
	const usual = 160 // bytes of a reply without response
	body, one := make([]byte, 0, usual*len(all)), make([]byte, 0, usual)
	for i := range all {
		reply := &all[i].reply
		reply.MessageID = all[i].envelope.MessageID
		if reply.MessageID == "" || reply.Outcome == "" {
			continue // no id to name it by, or no result of the receiver
		}
		one = reply.AppendTo(one[:0])
		if len(body)+len(one) > maxReplies && len(body) > 0 {
			break
		}
		body = wire.AppendFrame(body, one)
	}
	return body
}

// receiveKept hands the messages to the Receiver once there is room for them.
func (s *Server) receiveKept(r *http.Request, b budget, bytes int, good []*incoming) {
	if len(good) == 0 {
		return
	}
	end, ok := s.keep(r, b, bytes)
	if !ok {
		for _, in := range good {
			in.reply = notBegun()
		}
		return
	}
	defer end()
	s.receiveAll(r.Context(), b, good)
}

// receiveAll hands the messages to the Receiver one by one. Each gets its own reply, and none stops
// another.
func (s *Server) receiveAll(ctx context.Context, b budget, all []*incoming) {
	if to, ok := s.conf.Receiver.(holdfast.BatchReceiver); ok {
		s.receiveBatch(ctx, b, to, all)
		return
	}
	next := make(chan *incoming)
	var workers sync.WaitGroup
	for range min(batchWorkers, len(all)) {
		workers.Go(func() {
			for in := range next {
				in.reply = s.receive(ctx, b, &in.envelope.Message)
			}
		})
	}
	for _, in := range all {
		next <- in
	}
	close(next)
	workers.Wait()
}

// receiveBatch hands a whole batch to the BatchReceiver, which commits all that it keeps at once.
// The context ends when the sender stops waiting; then the receiver answers with what it knows.
func (s *Server) receiveBatch(ctx context.Context, b budget, to holdfast.BatchReceiver, all []*incoming) {
	end, ok := s.begin(ctx, b)
	if !ok {
		for _, in := range all {
			in.reply = notBegun()
		}
		return
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.conf.Timeout)
	defer cancel()
	if !b.until.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, b.until)
		defer cancel()
	}
	ms := make([]holdfast.Message, len(all))
	for i, in := range all {
		ms[i] = in.envelope.Message
	}
	for i, result := range s.callBatch(ctx, to, ms) {
		if i == len(all) {
			break // a faulty receiver: more results than messages
		}
		s.note(ctx, &ms[i], result.Err)
		all[i].reply = wire.ReplyTo(result.Receipt, result.Err)
	}
}
