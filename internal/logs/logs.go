// Package logs writes log lines without making anybody wait for them.
//
// What is promised: a Write never blocks and never fails, whatever the reader of
// the lines does. What it writes comes out whole and in order, or not at all: a
// line for which there is no room, or that cannot be written, is dropped and
// counted. What is not promised: that a line is out when Write returns, or that
// the last ones are out when the process ends; Close waits for them a while.
package logs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// room is how many bytes of lines wait at most: about a second of a busy node.
const room = 1 << 20

// Writer takes lines and has them written by a goroutine of its own. It may be
// used concurrently.
type Writer struct {
	to    io.Writer
	ring  chan struct{} // of one: there is something to do
	ended chan struct{}

	mu     sync.Mutex
	wait   []byte // whole lines
	closed bool
	lost   int64
	lostAt time.Time
}

// New returns a Writer of lines for to, which nobody else writes to. Close ends
// it.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, ring: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line or several whole ones, all of them or none. It always
// says that it has taken them.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.wait)+len(p) > room {
		w.drop(p)
		return len(p), nil
	}
	w.wait = append(w.wait, p...)
	w.wake()
	return len(p), nil
}

// drop counts lines that nobody will read.
func (w *Writer) drop(p []byte) {
	w.lost += int64(max(bytes.Count(p, []byte{'\n'}), 1))
	w.lostAt = time.Now()
}

func (w *Writer) wake() {
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

// Lost is how many lines were dropped, and when that last happened.
func (w *Writer) Lost() (lines int64, last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost, w.lostAt
}

// Close takes nothing more, and waits so long at most until what was taken is
// written. A write that does not end stays behind.
func (w *Writer) Close(patience time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.wake()
	w.mu.Unlock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-w.ended:
	case <-t.C:
	}
}

func (w *Writer) run() {
	defer close(w.ended)
	var spare []byte // never the memory of wait: that takes lines while lines is written
	for {
		w.mu.Lock()
		lines, closed := w.wait, w.closed
		if len(lines) > 0 {
			w.wait = spare[:0]
		}
		w.mu.Unlock()
		if len(lines) == 0 {
			if closed {
				return
			}
			<-w.ring
			continue
		}
		n, err := w.to.Write(lines)
		if err != nil {
			w.mu.Lock()
			w.drop(lines[min(max(n, 0), len(lines)):])
			w.mu.Unlock()
		}
		spare = lines
	}
}
