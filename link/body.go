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
	b.goOn(bodyTime)
	return b
}

// goOn sets the deadlines: the server's own for the answer counts from the
// request's head, which may be long ago.
func (b *timedBody) goOn(wait time.Duration) {
	_ = b.control.SetReadDeadline(time.Now().Add(wait)) // a recorder in a test has none
	if b.answer > 0 {
		_ = b.control.SetWriteDeadline(time.Now().Add(wait + b.answer))
	}
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.part += n
	switch {
	case err != nil:
		b.goOn(0)
		_ = b.control.SetReadDeadline(time.Time{}) // else it would end the request later on
	case b.part >= bodyPart:
		b.part = 0
		b.goOn(bodyTime)
	}
	return n, err
}
