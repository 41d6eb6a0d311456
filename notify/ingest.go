package notify

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
)

// Ingester takes notifications from a site over the link, or from a program of this node. It is
// safe for concurrent use.
type Ingester struct {
	Store     Store
	Directory *DirectoryCache
	// Logger is told of each notification that is new, once it is on disk (OI-18). Nil: nobody.
	Logger *slog.Logger
}

var _ holdfast.BatchReceiver = (*Ingester)(nil)

// Receive takes one notification. Its site is the message's source, which the caller has checked.
// Receive returns after the notification is on disk. A repeat is a Duplicate, with the present
// state.
func (g *Ingester) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := g.ReceiveBatch(ctx, []holdfast.Message{m})[0]
	return r.Receipt, r.Err
}

// ReceiveBatch takes several notifications, each with its own result. It refuses permanently only
// what can never be read. If the store fails, it refuses for now, and the site keeps its row
// (NO-01, SF-20).
func (g *Ingester) ReceiveBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	results := make([]holdfast.Result, len(ms))
	list, at := make([]holdfast.Bundle, 0, len(ms)), make([]int, 0, len(ms))
	for i := range ms {
		b, err := g.read(ctx, &ms[i])
		if err != nil {
			results[i].Err = err
			continue
		}
		list, at = append(list, b), append(at, i)
	}
	if len(list) == 0 {
		return results
	}
	taken, err := g.Store.Bundle(ctx, list...)
	for n, i := range at {
		if err != nil {
			results[i].Err = holdfast.ReceiveFailure(err)
			continue
		}
		g.tell(ctx, &list[n], &taken[n])
		results[i] = taken[n]
		results[i].Err = holdfast.ReceiveFailure(taken[n].Err)
	}
	return results
}

// read decodes one message and finds the channels of its list.
func (g *Ingester) read(ctx context.Context, m *holdfast.Message) (holdfast.Bundle, error) {
	if err := holdfast.NormalizeIncoming(m); err != nil {
		return holdfast.Bundle{}, undecodable(err)
	}
	if m.Endpoint != Endpoint {
		return holdfast.Bundle{}, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "no_endpoint",
			Err: fmt.Errorf("endpoint %q is not accepted here: only %s is", m.Endpoint, Endpoint),
		}
	}
	n, err := Decode(*m)
	if err != nil {
		return holdfast.Bundle{}, undecodable(err)
	}
	book, err := g.Directory.Get(ctx)
	if err != nil {
		return holdfast.Bundle{}, holdfast.ReceiveFailure(err)
	}
	if _, ok := book.Lists[n.List]; !ok { // the directory may be a second old
		if book, err = g.Directory.read(ctx, missingFor); err != nil {
			return holdfast.Bundle{}, holdfast.ReceiveFailure(err)
		}
	}
	return bundle(m, &n, &book), nil
}

func (g *Ingester) tell(ctx context.Context, b *holdfast.Bundle, r *holdfast.Result) {
	if g.Logger != nil && r.Err == nil && !r.Receipt.Duplicate {
		g.Logger.LogAttrs(ctx, slog.LevelInfo, "notification stored", slog.String("message_id", string(r.Receipt.ID)),
			slog.String("site", b.Source), slog.Int("copies", len(b.Messages)))
	}
}

func undecodable(err error) error {
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "undecodable", Reason: holdfast.ReasonUndecodable, Err: err}
}
