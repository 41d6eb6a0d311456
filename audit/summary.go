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

// summarize adds the summary of what was accepted, or could not be delivered, if summaries are wanted.
func (d *Describer) summarize(ctx context.Context, e *holdfast.Entry, r *Record) error {
	if d.Payload == nil || e.About == nil || e.Kind != holdfast.Enqueued && !r.Status.IsError() {
		return nil
	}
	payload, err := d.Payload(ctx, e.ID)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("summarize message %s: %w", e.ID, err)
	}
	most := MaxSummary
	if r.Status.IsError() {
		most = MaxErrorSummary
	}
	r.Request = shown.Clip(d.redact(payload), most-len("…"))
	if r.Request != "" {
		r.Personal = append(r.Personal, "request")
	}
	return nil
}

// redact returns a JSON text without the values of members whose names say that they are secret. Of
// another payload it returns only the size: nobody can tell what in it is secret.
func (d *Describer) redact(payload []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return fmt.Sprintf("(%d bytes)", len(payload))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Sprintf("(%d bytes)", len(payload))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d.clean(v)); err != nil {
		return fmt.Sprintf("(%d bytes)", len(payload))
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
