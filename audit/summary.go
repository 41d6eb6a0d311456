package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// redacted replaces a value that is left out of a summary.
const redacted = "[redacted]"

// summarize adds the summaries of what was accepted or could not be delivered, and of what was answered, if summaries
// are wanted.
func (d *Describer) summarize(ctx context.Context, e *holdfast.Entry, r *Record) error {
	if d.Payload == nil {
		return nil
	}
	if e.Kind == holdfast.Attempted || e.Kind == holdfast.Reached {
		r.summary(&r.Response, "response", answerOf(e))
	}
	if e.About == nil || e.Kind != holdfast.Enqueued && !r.Status.IsError() {
		return nil
	}
	payload, err := d.Payload(ctx, e.ID)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("summarize message %s: %w", e.ID, err)
	}
	r.summary(&r.Request, "request", d.redact(payload))
	return nil
}

// summary sets a field to the beginning of a text, and seals it.
func (r *Record) summary(field *string, name, text string) {
	if *field = shown.Clip(text, mostSummary(r.Status.IsError())); text != "" {
		r.Personal = append(r.Personal, name)
	}
}

// mostAnswer limits the bytes of an answer that is read to find secrets in it.
const mostAnswer = 256 << 10

// sizeOf is the summary of what cannot be summarized.
func sizeOf(payload []byte) string { return fmt.Sprintf("(%d bytes)", len(payload)) }

// mostSummary is the most bytes of a summary, before the mark of one that was cut.
func mostSummary(failed bool) int {
	if failed {
		return MaxErrorSummary - len("…")
	}
	return MaxSummary - len("…")
}

// Answer returns what the journal keeps of what a destination answered: the beginning, without secrets. It is a
// holdfast.Dispatcher's Summary. Of an answer of more than 256 KiB that is the size.
func (d *Describer) Answer(answer []byte, ended bool) string {
	if len(answer) > mostAnswer {
		return sizeOf(answer)
	}
	return shown.Clip(d.redact(answer), mostSummary(ended))
}

// answerOf returns what an entry has of an answer.
func answerOf(e *holdfast.Entry) string {
	var detail struct {
		Answer string `json:"answer"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // absent: none was kept
	return detail.Answer
}

// redact returns a JSON text without the values of members whose names say that they are secret. Of
// another payload it returns only the size: nobody can tell what in it is secret.
func (d *Describer) redact(payload []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return sizeOf(payload)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return sizeOf(payload)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d.clean(v)); err != nil {
		return sizeOf(payload)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (d *Describer) clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if d.secret(name) {
				v[name] = redacted
			} else {
				v[name] = d.clean(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = d.clean(v[i])
		}
	}
	return v
}

// secret reports whether the name of a member says that its value is not for others.
func (d *Describer) secret(name string) bool {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	for _, word := range [...]string{"password", "passwd", "secret", "token", "authorization", "apikey", "credential", "cookie", "privatekey"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return slices.ContainsFunc(d.Redact, func(own string) bool { return strings.EqualFold(own, name) })
}
