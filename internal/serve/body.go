package serve

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// LeastRate is the slowest rate of a request's body that is waited for, in bytes per second.
	LeastRate = 1 << 10
	// bodyTime is how long the beginning of a request's body may take, and each bodyPart after that. It tells
	// a slow line from a sender that only holds a place.
	bodyTime = 20 * time.Second
	bodyPart = int(bodyTime/time.Second) * LeastRate
	// atOnce is how many bytes of a stranger's body are read at one time.
	atOnce = 32 << 10
)

// ErrCrowded ends a body that had to give way. Nothing of it was taken, and its sender may come again.
var ErrCrowded = errors.New("the node has more to do than it has room for")

// TimedBody is a request's body whose deadline moves on while bytes come in.
type TimedBody struct {
	io.ReadCloser
	control *http.ResponseController
	answer  time.Duration // time for the answer, once the body is there; zero: no bound
	part    int           // bytes since the deadline was set
}

// ReadInTime sets the first deadline of a body. It leaves the deadline of the answer as it is.
func ReadInTime(w http.ResponseWriter, r *http.Request) *TimedBody {
	b := &TimedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	b.goOn(time.Now().Add(bodyTime))
	return b
}

// InTime is ReadInTime, and gives the answer its whole time from the end of the body.
func InTime(w http.ResponseWriter, r *http.Request) *TimedBody {
	b := &TimedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		b.answer = srv.WriteTimeout
	}
	b.goOn(time.Now().Add(bodyTime))
	return b
}

// goOn sets the deadlines. Zero: no deadline for reading. The server's own deadline for the answer counts
// from the request's head, which may be long ago.
func (b *TimedBody) goOn(until time.Time) {
	_ = b.control.SetReadDeadline(until) // fails only for a recorder in a test
	if until.IsZero() {
		until = time.Now()
	}
	if b.answer > 0 {
		_ = b.control.SetWriteDeadline(until.Add(b.answer))
	}
}

// Stop ends a Read under way.
func (b *TimedBody) Stop() { _ = b.control.SetReadDeadline(time.Now()) }

func (b *TimedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.part += n
	switch {
	case errors.Is(err, io.EOF):
		b.goOn(time.Time{}) // otherwise the deadline would later end the request, and the connection's next one
	case b.part >= bodyPart:
		b.part = 0
		b.goOn(time.Now().Add(bodyTime))
	}
	return n, err
}

// countedBody is the body of a stranger. What is read of it counts against the crowd until the sender is
// known or the request ends.
type countedBody struct {
	io.ReadCloser
	guest *guest
}

func (b *countedBody) Read(p []byte) (int, error) {
	p = p[:min(len(p), atOnce)]
	if !b.guest.grow(int64(len(p))) {
		return 0, ErrCrowded
	}
	n, err := b.ReadCloser.Read(p)
	b.guest.shrink(int64(len(p) - n))
	if err != nil && !errors.Is(err, io.EOF) && b.guest.wasCut() {
		err = ErrCrowded
	}
	return n, err
}
