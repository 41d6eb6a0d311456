package sqlwrite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// stage says how far a write has come.
type stage int

const (
	connecting stage = iota // the database has seen no statement of a message
	preparing               // it has seen the statement, and no value
	writing                 // it has perhaps seen values
	committing
)

// unbegun classifies an error before the first statement. The database has seen no message, so no
// message is to blame.
func (w *Writer) unbegun(ctx context.Context, err error) *holdfast.Failure {
	v, answered := w.dialect.judge(err)
	if !answered || v.outcome == holdfast.Transient && ctx.Err() != nil {
		return w.unanswered(ctx, connecting, err)
	}
	f := w.failure(v)
	if v.outcome == holdfast.Transient {
		f.Outcome = holdfast.Unreachable
	} else {
		f.Outcome = holdfast.LaneFault
	}
	return f
}

func (w *Writer) failure(v verdict) *holdfast.Failure {
	return &holdfast.Failure{Outcome: v.outcome, Code: v.code, Err: w.said(v)}
}

// unanswered classifies an error that did not come from the database.
func (w *Writer) unanswered(ctx context.Context, at stage, err error) *holdfast.Failure {
	text := errors.New(w.clean(causeOf(err), 300))
	switch ended := ctx.Err(); {
	case at != connecting:
	case w.dialect.local && errors.Is(ended, context.DeadlineExceeded):
		return &holdfast.Failure{Outcome: holdfast.Unreachable, Code: codeLock, Err: fmt.Errorf("wait for a lock on the file: %w", text)}
	default:
		f := exchange.Unconnected(ctx, err)
		f.Err = fmt.Errorf("connect to the database: %w", text)
		return f
	}
	f := &holdfast.Failure{Code: exchange.Lost, MaybeDelivered: at == committing || at == writing && !w.dialect.atomic}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.Canceled):
		f.Code = exchange.Canceled
	case ended != nil:
		f.Code = exchange.Timeout
	}
	if f.Code == exchange.Canceled && !f.MaybeDelivered {
		f.Outcome = holdfast.NotStarted
	}
	f.Err = fmt.Errorf("write to the database: %w", text)
	if at == committing {
		f.Err = fmt.Errorf("commit, whose outcome is unknown: %w", text)
	}
	return f
}

// causeOf returns the part of an error that says what happened, without the settings that drivers
// add.
func causeOf(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	return err.Error()
}

// said returns a database's answer for people.
func (w *Writer) said(v verdict) error {
	text := fmt.Sprintf("the database answered %s (%s)", v.number, strings.ReplaceAll(v.code, "_", " "))
	if more := w.clean(v.text, w.conf.Excerpt); more != "" {
		text += ": " + more
	}
	return errors.New(text)
}

// clean returns a foreign text on one line of at most the given bytes, without secrets.
func (w *Writer) clean(text string, most int) string {
	if most <= 0 {
		return ""
	}
	text = w.target.hidden.Clean(strings.ReplaceAll(text, w.conf.DSN, secrets.Mark))
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) <= most {
		return text
	}
	for text = text[:most]; !utf8.ValidString(text); {
		text = text[:len(text)-1]
	}
	return text + "…"
}
