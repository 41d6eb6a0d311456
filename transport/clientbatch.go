package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// fewestAlike is how many messages must meet the same refusal before it counts as a fault of the
// lane.
const fewestAlike = 3

// DeliverBatch delivers ms in as few requests as the peer's limits allow, one after the other.
// Results are in the order of ms. A message without a result in the reply may have been delivered.
func (c *Client) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	results := make([]holdfast.Result, len(ms))
	for done := 0; done < len(ms); {
		done += c.some(ctx, ms[done:], results[done:])
	}
	blameLane(results)
	return results
}

// blameLane turns refusals by bare status into a lane fault if every message met the same one: then
// the messages are not the cause, and parking all of them would help nobody. A limit of size still
// concerns each message.
func blameLane(results []holdfast.Result) {
	if len(results) < fewestAlike {
		return
	}
	code := ""
	for _, r := range results {
		f, ok := errors.AsType[*holdfast.Failure](r.Err)
		if !ok || f.Outcome != holdfast.Permanent || f.Reason == holdfast.ReasonTooLarge || !strings.HasPrefix(f.Code, "http_") || code != "" && f.Code != code {
			return
		}
		code = f.Code
	}
	for _, r := range results {
		f := holdfast.AsFailure(r.Err)
		f.Outcome, f.Reason = holdfast.LaneFault, ""
	}
}

// some sends the first of ms, as many as fit one request, and returns how many are settled. Zero
// means that the client has learned new limits of the peer and the same messages must be sent
// again. That ends, since limits only fall.
func (c *Client) some(ctx context.Context, ms []holdfast.Message, results []holdfast.Result) int {
	rows, weight := c.offer.limits(c.conf.MaxBatch)
	weight = min(weight, c.pace.bytes())
	if rows == 1 || len(ms) == 1 {
		results[0] = c.single(ctx, &ms[0])
		return 1
	}
	settled := 0
	c.eachSecret(func(seal wire.Seal) (refused bool) {
		b := c.pack(ms[:min(rows, len(ms))], results, seal, weight)
		if len(b.index) < 2 { // a lone message goes in the form that every peer understands
			for _, i := range b.index {
				results[i] = c.single(ctx, &ms[i])
			}
			settled = b.taken
			return false
		}
		a, fail := c.carry(ctx, wire.BatchType, len(b.index), b.body)
		if fail != nil {
			b.all(ms, results, func(id holdfast.ID) holdfast.Result { return failed(id, fail) })
			settled = b.taken
			return false
		}
		settled, refused = c.judgeBatch(a, b, ms, results)
		return refused
	})
	return settled
}

// parcel is one batch on its way.
type parcel struct {
	body  []byte
	index []int // index of each message in body
	taken int   // messages looked at, including those that cannot be sent
}

// pack frames messages up to the given weight in bytes. It sets the result of a message that cannot
// be sent. Each id is packed once, since results are keyed by id.
func (c *Client) pack(ms []holdfast.Message, results []holdfast.Result, seal wire.Seal, weight int) parcel {
	b := parcel{body: make([]byte, 0, min(roughly(ms), weight)), index: make([]int, 0, len(ms))}
	var envelope []byte
	ids := make(map[holdfast.ID]bool, len(ms))
	for i := range ms {
		own := c.named(&ms[i])
		data, err := wire.Encode(envelope[:0], &own, seal)
		if err != nil {
			results[i] = failed(ms[i].ID, err)
			b.taken++
			continue
		}
		envelope = data
		id := canonical(own.ID)
		if ids[id] || len(b.index) > 0 && len(b.body)+len(data)+12 > weight {
			break
		}
		ids[id] = true
		b.body = wire.AppendFrame(b.body, data)
		b.index = append(b.index, i)
		b.taken++
	}
	return b
}

// roughly estimates the size of a batch, so that its buffer need not grow.
func roughly(ms []holdfast.Message) int {
	const usual = 640 // bytes that an envelope adds
	n := 0
	for i := range ms {
		n += len(ms[i].Payload) + usual
	}
	return n
}

func (b *parcel) all(ms []holdfast.Message, results []holdfast.Result, result func(holdfast.ID) holdfast.Result) {
	for _, i := range b.index {
		results[i] = result(ms[i].ID)
	}
}

// canonical returns the canonical form of id. It skips the parsing in the common case, an id that
// is canonical already.
func canonical(id holdfast.ID) holdfast.ID {
	if len(id) == 36 && strings.ToLower(string(id)) == string(id) {
		return id
	}
	if c, err := holdfast.ParseID(string(id)); err == nil {
		return c
	}
	return id
}

// judgeBatch reads the answer to a batch. It reports how many messages are settled, and whether the
// secret was refused for all of them.
func (c *Client) judgeBatch(a answer, b parcel, ms []holdfast.Message, results []holdfast.Result) (settled int, refused bool) {
	if kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type")); err == nil && kind == wire.BatchType {
		byID := c.readResults(a)
		b.all(ms, results, func(id holdfast.ID) holdfast.Result {
			if r, ok := byID[canonical(id)]; ok {
				return withHeaders(r, a)
			}
			return failed(id, &holdfast.Failure{
				Code: CodeNoResult, MaybeDelivered: true, Err: errors.New("the batch's reply leaves the message out"),
			})
		})
		return b.taken, a.status == http.StatusUnauthorized
	}
	switch a.status {
	case http.StatusRequestEntityTooLarge:
		c.offer.halve(len(b.body))
		c.log.Info("batch too large for the peer", slog.Int("messages", len(b.index)), slog.Int("bytes", len(b.body)))
		return 0, false
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		// Perhaps the answering server knows no batches. Sending one by one shows whether the peer
		// or a single message is the reason.
		c.offer.forget()
		c.log.Info("peer takes no batches", slog.Int("status", a.status))
		return 0, false
	}
	if a.status >= 200 && a.status < 300 {
		// One ack cannot stand for many messages.
		c.offer.forget()
		b.all(ms, results, func(id holdfast.ID) holdfast.Result { return failed(id, statusFailure(a.status)) })
		return b.taken, false
	}
	b.all(ms, results, func(id holdfast.ID) holdfast.Result { return c.judge(a, id) })
	return b.taken, a.status == http.StatusUnauthorized
}

// readResults reads the replies up to the first damaged one.
func (c *Client) readResults(a answer) map[holdfast.ID]holdfast.Result {
	byID := make(map[holdfast.ID]holdfast.Result, len(a.body)/100)
	for rest := a.body; len(rest) > 0; {
		frame, next, err := wire.NextFrame(rest)
		if err != nil {
			break
		}
		rest = next
		reply, ok := c.readReply(frame)
		if !ok {
			continue
		}
		id := canonical(holdfast.ID(reply.MessageID))
		if _, twice := byID[id]; twice {
			continue
		}
		r, decided := reply.Result(id)
		if !decided {
			r = failed(id, &holdfast.Failure{Code: CodeNoAck, Err: fmt.Errorf("no ack: the receiver says: %s", reply.Error)})
		}
		byID[id] = r
	}
	return byID
}
