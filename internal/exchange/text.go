package exchange

import (
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// How much of an error is looked at, and how much of it is told: net/http quotes
// what stands in place of an answer.
const (
	lookedAt = 8 << 10
	told     = 500
)

// fit is err with a text for people. What it wraps is still found by type.
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
