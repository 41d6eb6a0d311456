package main

import (
	"context"
	"sync"
	"time"
)

const bareCap = 1000 // messages in one commit

// bareLoop does the least that an outbox can do. One goroutine owns the connection and commits
// whatever has arrived, passes it on in memory after the commit, and writes delivery marks with the
// next commit. Its rate is the ceiling.
type bareLoop struct {
	conn *bareConn
	hand chan []bareMessage // messages after their commit; nil: no consumer
	// beside writes what belongs to a message that is being inserted. May be nil.
	beside func(m *bareMessage, now int64) error
	wake   chan struct{}
	stop   chan struct{}
	wg     sync.WaitGroup

	mu        sync.Mutex
	arriving  *bareBatch
	full      []*bareBatch
	delivered []int64 // waiting to be marked
	unsettled int
	err       error // of a commit of marks
}

type bareMessage struct {
	seq     int64
	id      [16]byte
	lane    int64
	payload []byte
}

// bareBatch is committed as a whole.
type bareBatch struct {
	messages []bareMessage
	done     chan struct{}
	err      error // read after done
}

// bareConsumer takes committed messages until the channel closes, and marks them.
type bareConsumer func(l *bareLoop, committed <-chan []bareMessage)

func bareQueue() source {
	return source{name: bareName, role: roleBare, open: openBareLoop}
}

func openBareLoop(ctx context.Context, s Setup) (Queue, error) {
	if s.Deliver == nil {
		return startBare(s.Dir, 0, nil)
	}
	return startBare(s.Dir, 1, func(l *bareLoop, committed <-chan []bareMessage) {
		for ms := range committed {
			seqs := make([]int64, 0, len(ms))
			for _, m := range ms {
				if s.Deliver(ctx, int(m.lane), m.payload) == nil {
					seqs = append(seqs, m.seq)
				}
			}
			l.mark(seqs)
		}
	})
}

// startBare starts a loop whose committed messages go to that many workers.
func startBare(dir string, workers int, consume bareConsumer) (*bareLoop, error) {
	conn, err := openBare(dir)
	if err != nil {
		return nil, err
	}
	seq, err := conn.number(bareLast)
	if err != nil {
		return nil, err
	}
	l := &bareLoop{conn: conn, wake: make(chan struct{}, 1), stop: make(chan struct{}), arriving: newBareBatch()}
	if workers > 0 {
		l.hand = make(chan []bareMessage, 4096)
		for range workers {
			l.wg.Go(func() { consume(l, l.hand) })
		}
	}
	l.wg.Go(func() { l.write(seq) })
	return l, nil
}

func newBareBatch() *bareBatch {
	return &bareBatch{done: make(chan struct{})}
}

func (l *bareLoop) Enqueue(_ context.Context, dest int, payload []byte) error {
	return l.enqueue(bareMessage{id: newID(), lane: int64(dest), payload: payload})
}

// enqueue returns when all messages are durable. They share one commit.
func (l *bareLoop) enqueue(ms ...bareMessage) error {
	l.mu.Lock()
	b := l.arriving
	if len(b.messages)+len(ms) > bareCap && len(b.messages) > 0 {
		l.full = append(l.full, b)
		b = newBareBatch()
		l.arriving = b
	}
	b.messages = append(b.messages, ms...)
	l.mu.Unlock()
	l.signal()
	<-b.done
	return b.err
}

// mark makes the next commit record that the messages are delivered.
func (l *bareLoop) mark(seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	l.mu.Lock()
	l.delivered = append(l.delivered, seqs...)
	l.mu.Unlock()
	l.signal()
}

func (l *bareLoop) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the work of the next commit; a nil batch and no marks mean that there is none.
func (l *bareLoop) take() (b *bareBatch, marks []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.full) > 0:
		b, l.full = l.full[0], l.full[1:]
	case len(l.arriving.messages) > 0:
		b, l.arriving = l.arriving, newBareBatch()
	}
	marks, l.delivered = l.delivered, nil
	return b, marks
}

// write is the loop that owns the connection.
func (l *bareLoop) write(seq int64) {
	if l.hand != nil {
		defer close(l.hand)
	}
	for {
		b, marks := l.take()
		if b == nil && len(marks) == 0 {
			select {
			case <-l.wake:
				continue
			case <-l.stop:
				return
			}
		}
		next, err := l.commit(seq, b, marks)
		l.mu.Lock()
		if err != nil {
			l.err = err
		} else {
			l.unsettled += int(next-seq) - len(marks)
			seq = next
		}
		l.mu.Unlock()
		if b == nil {
			continue
		}
		b.err = err
		close(b.done)
		if err == nil && l.hand != nil {
			l.hand <- b.messages
		}
	}
}

func (l *bareLoop) commit(seq int64, b *bareBatch, marks []int64) (int64, error) {
	now := time.Now().UnixMicro()
	err := l.conn.tx(func() error {
		for _, m := range marks {
			if err := l.conn.exec(bareSettle, m, now); err != nil {
				return err
			}
		}
		if b == nil {
			return nil
		}
		for i := range b.messages {
			m := &b.messages[i]
			seq++
			m.seq = seq
			if err := l.conn.insert(m.seq, m.id, m.lane, statePending, now, m.payload); err != nil {
				return err
			}
			if l.beside == nil {
				continue
			}
			if err := l.beside(m, now); err != nil {
				return err
			}
		}
		return nil
	})
	return seq, err
}

// Unsettled counts what was enqueued since the loop was opened.
func (l *bareLoop) Unsettled(context.Context) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsettled, l.err
}

// Close must be called after the last enqueue.
func (l *bareLoop) Close() error {
	close(l.stop)
	l.wg.Wait()
	return l.conn.Close()
}
