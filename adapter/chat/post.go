package chat

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/notify"
)

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 4 << 10

// end is what became of one recipient. If fault is set, it is still open whether the fault is the
// recipient's alone.
type end struct {
	notify.Delivery
	fault       *holdfast.Failure // lane fault, unreachable, or not started
	alone       bool              // only this target is at fault, not the others
	server, tls string
	truncated   bool
}

// post makes one request and classifies its answer.
func (p *Poster) post(ctx context.Context, n *notify.Notification, address string) (e end) {
	if ctx.Err() != nil {
		e.fault = notBegun(ctx)
		return e
	}
	t, f := p.target(address)
	if t.url != nil {
		e.server = clip(t.redact(t.url.Host), 255)
	}
	if f != nil {
		return p.judge(e, &t, f)
	}
	body, truncated := p.compose(n, t.topic)
	e.truncated = truncated
	began := time.Now()
	if p.kind == webhook {
		standardwebhooks.Sign(t.header, string(n.Key()), began, body, t.sign...)
		n.Origin.Trace.Each(t.header.Set)
	}
	a, f := p.exchange(ctx, &t, body)
	if a != nil && a.tls != nil {
		e.tls = tls.VersionName(a.tls.Version) + " " + tls.CipherSuiteName(a.tls.CipherSuite)
	}
	if f != nil {
		e = p.judge(e, &t, f)
	} else {
		e = p.answered(e, &t, a)
	}
	p.log.DebugContext(ctx, "notification posted", slog.String("message_id", string(n.ID)), slog.String("kind", p.kind),
		slog.String("server", e.server), slog.String("code", e.Code), slog.Duration("took", time.Since(began)))
	return e
}

// answer is the answer of the other side.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // the answer was read to its end
	tls    *tls.ConnectionState
}

// exchange sends one request. Until it has a connection, the end of ctx stops it. After that only
// the time-out stops it, since the other side may have accepted the request.
func (p *Poster) exchange(ctx context.Context, t *target, body []byte) (*answer, *holdfast.Failure) {
	work, end := context.WithTimeout(context.WithoutCancel(ctx), p.settings.timeout)
	defer end()
	work, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	var leaving atomic.Bool
	unbind := context.AfterFunc(ctx, func() {
		if !leaving.Load() {
			cancel(context.Cause(ctx)) // the cause tells a stop from a deadline
		}
	})
	defer unbind()
	traced := httptrace.WithClientTrace(work, &httptrace.ClientTrace{WroteHeaders: func() { leaving.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, t.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "bad_url", Err: errors.New("the URL is invalid")}
	}
	maps.Copy(req.Header, t.header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "holdfast")
	resp, f := p.client.Do(req, func() *secrets.Set { return &t.hidden })
	if f != nil {
		f.Err = fmt.Errorf("post to %s: %w", t.url.Host, f.Err)
		return nil, f
	}
	defer resp.Body.Close() //nolint:errcheck // the answer has been read, or is given up
	a := &answer{status: resp.StatusCode, header: resp.Header, tls: resp.TLS}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if a.whole = err == nil && len(a.body) <= maxAnswer; len(a.body) > maxAnswer {
		a.body = a.body[:maxAnswer]
	}
	return a, nil
}
