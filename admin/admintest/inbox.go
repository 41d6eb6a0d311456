package admintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

var errNotHere = errors.New("admintest does not do this")

// Known is not part of the stand-in.
func (m *Memory) Known(context.Context, time.Duration, ...holdfast.Message) ([]bool, []holdfast.Result, error) {
	return nil, nil, errNotHere
}

// Record is not part of the stand-in.
func (m *Memory) Record(context.Context, time.Duration, ...holdfast.Processed) ([]holdfast.Result, error) {
	return nil, errNotHere
}

// SweepInbox has nothing to do.
func (m *Memory) SweepInbox(context.Context, time.Duration) (purged int, more bool, err error) {
	return 0, false, nil
}

// Keep stores messages for somebody to fetch.
func (m *Memory) Keep(ctx context.Context, _ time.Duration, ms ...holdfast.Message) ([]holdfast.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	results := make([]holdfast.Result, len(ms))
	for i, msg := range ms {
		m.kept = append(m.kept, kept{message: holdfast.KeptMessage{Message: msg, Received: time.Now()}})
		results[i].Receipt = holdfast.Receipt{ID: msg.ID, State: holdfast.Delivered}
	}
	return results, nil
}

// Kept lists messages that wait to be fetched, oldest first.
func (m *Memory) Kept(ctx context.Context, q holdfast.KeptQuery) (holdfast.KeptPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return holdfast.KeptPage{}, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = 50
	}
	var page holdfast.KeptPage
	last := int64(0)
	for i, k := range m.kept {
		seq := int64(i + 1)
		if k.done || seq <= q.After || q.Endpoint != "" && k.message.Message.Endpoint != q.Endpoint {
			continue
		}
		if len(page.Messages) == limit {
			page.Next = last
			break
		}
		page.Messages, last = append(page.Messages, k.message), seq
	}
	return page, nil
}

// Done ends a kept message.
func (m *Memory) Done(ctx context.Context, source string, id holdfast.ID, response []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return err
	}
	for i := range m.kept {
		k := &m.kept[i]
		if k.message.Message.ID != id || k.message.Message.Source != source {
			continue
		}
		if k.done && !bytes.Equal(k.response, response) {
			return fmt.Errorf("done %s of %s: %w", id, source, holdfast.ErrState)
		}
		k.done, k.response = true, response
		return nil
	}
	return fmt.Errorf("done %s of %s: %w", id, source, holdfast.ErrNotFound)
}

// Sources tells who sent a message of this id.
func (m *Memory) Sources(ctx context.Context, id holdfast.ID) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	var waiting, done []string
	for i := range m.kept {
		switch k := &m.kept[i]; {
		case k.message.Message.ID != id:
		case k.done:
			done = append(done, k.message.Message.Source)
		default:
			waiting = append(waiting, k.message.Message.Source)
		}
	}
	if len(waiting) > 0 {
		return waiting, nil
	}
	return done, nil
}
