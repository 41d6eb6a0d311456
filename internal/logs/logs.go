// Package logs writes log lines without making the caller wait.
//
// It promises that a Write never blocks and never fails, whatever the reader of the lines does.
// Lines are written whole and in order, or not at all: a line for which there is no room, or that
// cannot be written, is dropped and counted. It does not promise that a line is written when Write
// returns, nor that the last lines are written when the process ends; Close waits a while for them.
package logs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// room is the most bytes of waiting lines: about a second of a busy node.
const room = 1 << 20

// Writer takes lines. A goroutine of its own writes them. It may be used concurrently.
type Writer struct {
	to    io.Writer
	ring  chan struct{} // capacity one: there is something to do
	ended chan struct{}

	mu     sync.Mutex
	wait   []byte // whole lines
	closed bool
	lost   int64
	lostAt time.Time
}

// New returns a Writer to to. Nothing else may write to it. Close ends the Writer.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, ring: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one or more whole lines, all of them or none. It always reports success.
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

// drop counts lines that are not written.
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

// Lost returns how many lines were dropped, and when that last happened.
func (w *Writer) Lost() (lines int64, last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost, w.lostAt
}

// Close takes no more lines, and waits at most patience until the taken ones are written. It
// abandons a write that does not end.
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
	var spare []byte // never the memory of wait, which takes new lines while these are written
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
