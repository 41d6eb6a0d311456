package link

import (
	"io"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/transport"
)

const (
	// bodyTime is how long the beginning of a request's body may take, and each
	// bodyPart of it after that, so that a slow line is told from a sender that
	// only holds a place.
	bodyTime = 20 * time.Second
	bodyPart = int(bodyTime/time.Second) * transport.LeastRate
)

// timedBody has a deadline that moves on while bytes come in.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	answer  time.Duration // for the answer, once the body is there; zero: no bound
	part    int           // bytes since the deadline was set
}

func inTime(w http.ResponseWriter, r *http.Request) *timedBody {
	b := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		b.answer = srv.WriteTimeout
	}
	b.goOn(time.Now().Add(bodyTime))
	return b
}

// goOn sets the deadlines; zero: none for reading. The server's own for the
// answer counts from the request's head, which may be long ago.
func (b *timedBody) goOn(until time.Time) {
	_ = b.control.SetReadDeadline(until) // a recorder in a test has none
	if until.IsZero() {
		until = time.Now()
	}
	if b.answer > 0 {
		_ = b.control.SetWriteDeadline(until.Add(b.answer))
	}
}

// stop ends a Read under way.
func (b *timedBody) stop() { _ = b.control.SetReadDeadline(time.Now()) }

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.part += n
	switch {
	case err != nil:
		b.goOn(time.Time{}) // a deadline would end the request, and the connection's next, later on
	case b.part >= bodyPart:
		b.part = 0
		b.goOn(time.Now().Add(bodyTime))
	}
	return n, err
}
