package exchange

import (
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// How much of an error is examined, and how much of it is shown: net/http quotes what arrives
// instead of an answer.
const (
	lookedAt = 8 << 10
	told     = 500
)

// fit returns err with a text for people. errors.Is and errors.As still see what it wraps.
func fit(err error, hide func() *secrets.Set) error {
	hidden := &secrets.Set{}
	if hide != nil {
		hidden = hide()
	}
	was := err.Error()
	var text string
	if len(was) > lookedAt {
		text = hidden.CleanStart(was[:lookedAt])
	} else {
		text = hidden.Clean(was)
	}
	text = shown.Line(text, told)
	if text == was {
		return err
	}
	return &worded{text, err}
}

type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }
func (w *worded) Unwrap() error { return w.err }
