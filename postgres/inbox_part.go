package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Process runs h inside this transaction if the message is new. The id, the work of h and its
// response exist if the transaction commits. An error of h undoes the work of h, and nothing else.
// A zero retention means holdfast.DefaultInboxRetention.
func (t *Tx) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	return t.process(ctx, m, retention, func(ctx context.Context, m holdfast.Message) ([]byte, error) { return h(ctx, t, m) })
}

// process does the inbox's part of a transaction, which can be undone by itself: first the id, then
// the handler, then the response.
func (p *part) process(ctx context.Context, m holdfast.Message, retention time.Duration, h func(ctx context.Context, m holdfast.Message) ([]byte, error)) (holdfast.Receipt, error) {
	if retention == 0 {
		retention = holdfast.DefaultInboxRetention
	}
	in, err := p.db.incoming(ctx, m)
	if err == nil {
		err = p.still(in.turn)
	}
	if err == nil {
		err = p.enter(ctx)
	}
	if err != nil {
		return holdfast.Receipt{}, said(ctx, "process", err)
	}
	var v verdict
	first := append([]statement{{sql: savePart}}, in.arrive(&v, retention)...)
	if err := p.do(ctx, append(first, p.sameTables()...)...); err != nil {
		return holdfast.Receipt{}, said(ctx, "process", p.undone(ctx, err))
	}
	if v.seq == 0 {
		receipt, err := in.answer(&v, retention)
		return receipt, p.undone(ctx, err)
	}
	response, err := p.saved(ctx, &in, v.seq, h)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	return holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}, nil
}

// saved runs the handler after a savepoint, and adds the response to the message's row. If the
// handler fails, it rolls back to the savepoint.
func (p *part) saved(ctx context.Context, in *incoming, seq int64, h func(ctx context.Context, m holdfast.Message) ([]byte, error), more ...statement) ([]byte, error) {
	returned := false
	defer func() {
		if !returned { // h has panicked; the caller may recover, and commit
			_ = p.undone(ctx, nil)
		}
	}()
	response, err := p.handle(ctx, in, h)
	returned = true
	if err != nil {
		return nil, p.undone(ctx, err)
	}
	if err := p.finish(ctx, seq, response, more); err != nil {
		return nil, said(ctx, "process", p.undone(ctx, fmt.Errorf("after the handler: %w", err)))
	}
	return response, nil
}

// handle runs the handler. An error of the handler must not end the transaction.
func (p *part) handle(ctx context.Context, in *incoming, h func(ctx context.Context, m holdfast.Message) ([]byte, error)) ([]byte, error) {
	before := p.doomed
	response, err := h(context.WithValue(ctx, insideKey{p.db}, true), in.m)
	if err == nil {
		err = p.doomed
	}
	p.doomed = before
	return response, err
}

// finish releases the savepoint, so that the part belongs to its transaction.
func (p *part) finish(ctx context.Context, seq int64, response []byte, list []statement) error {
	if response != nil { // otherwise the row is right already
		list = append(list, statement{setResponse, []any{seq, response}, nil})
	}
	if p.joined {
		list = append(list, statement{sql: tallyInbox})
	}
	if err := p.do(ctx, append(list, statement{sql: releasePart})...); err != nil {
		return err
	}
	if !p.joined {
		p.arrived = append(p.arrived, seq)
	}
	return nil
}

// undone rolls the part back and returns err. If that fails too, the transaction is over: the
// caller's rows and the store's are undone together.
func (p *part) undone(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	if fault := p.back(ctx); fault != nil {
		p.doomed = fmt.Errorf("undo a message: %w", fault)
		return errors.Join(err, p.doomed)
	}
	return err
}

// respond adds the response to what is written before the commit.
func (p *part) respond(seq int64, response []byte) {
	if response != nil { // otherwise the row is right already
		p.last = append(p.last, statement{setResponse, []any{seq, response}, nil})
	}
}
