package link

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	// maxTelemetry limits the bytes of a request: a batch in base64, and its calls.
	maxTelemetry = 4 << 20
	// maxLogs limits how many logs a site asks about at once.
	maxLogs = 100
	// copiesAtOnce is how many batches central writes at one time. Messages do not wait for them.
	copiesAtOnce = 4
)

// shipment is a request of a site. With a batch it hands over records of a log. Without one it asks
// what central has of its logs.
type shipment struct {
	Logs  []sites.Log  `json:"logs,omitempty"`
	Batch *sites.Batch `json:"batch,omitempty"`
	// Vouching and Erasures come with a question: they are about checkpoints, and about values that were erased.
	Vouching *audit.Vouching `json:"vouching,omitempty"`
	Erasures *audit.Erasures `json:"erasures,omitempty"`
}

// shipped is the answer: what central has of each log.
type shipped struct {
	Copies   []sites.Copy    `json:"copies"`
	Vouching *audit.Vouching `json:"vouching,omitempty"`
	Erasures *audit.Erasures `json:"erasures,omitempty"`
}

// Witness exchanges checkpoints of audit logs with another node. audit.Peers implements it. Its methods may be called
// concurrently.
type Witness interface {
	// Told takes what a peer says: a site, or Uplink.
	Told(ctx context.Context, peer string, v audit.Vouching)
	// Tell returns what a peer is to be told. origins are logs that the peer has named as its own.
	Tell(ctx context.Context, peer string, origins ...string) (audit.Vouching, error)
}

// Uplink is the name of central, as a peer of a site's Witness.
const Uplink = "central"

// Codes of refused batches.
const (
	codeForeign    = "foreign"
	codeBroken     = "broken"
	codeUnreadable = "unreadable_record"
	codeGaps       = "too_many_gaps"
	codeBatch      = "invalid_batch"
)

// Telemetry is how a site's audit log gets to central.
type Telemetry struct {
	Backlog int64     // records that central lacks and the site still has; all of these until central has said what it has
	Oldest  time.Time // when the site wrote the oldest of them; zero: there are none, or it is unknown. Only at the site
	Problem string    // why the last batch was not taken; empty: it was
	At      time.Time // when central last took a batch or said what it has; zero: never
}

// Lasts returns how long the oldest of the records has waited.
func (t *Telemetry) Lasts() time.Duration {
	if t.Oldest.IsZero() {
		return 0
	}
	return max(time.Since(t.Oldest), 0)
}

// serveTelemetry takes a batch of a site's audit log, or says what central has of it.
func (c *Central) serveTelemetry(w http.ResponseWriter, r *http.Request, site string) {
	leave, ok := c.telemetry.Hold(r.Context(), r.ContentLength, maxTelemetry)
	if !ok {
		tooBusy(w)
		return
	}
	defer leave()
	var in shipment
	if !read(w, r, maxTelemetry, &in) {
		return
	}
	end, ok := pass(r.Context(), c.gate.copies)
	if !ok {
		tooBusy(w)
		return
	}
	defer end()
	out, err := c.take(r.Context(), site, &in)
	c.state(site).shipped(&in, out, err)
	if err == nil {
		write(w, shipped{out, c.vouch(r.Context(), site, &in), c.erase(r.Context(), site, &in)})
		return
	}
	code, status := refusalOf(err)
	if code == "" {
		c.few.LogAttrs(r.Context(), slog.LevelError, "audit records of a site not taken", slog.String("site", site), slog.Any("error", err))
		unavailable(w)
		return
	}
	c.few.LogAttrs(r.Context(), slog.LevelWarn, "audit records of a site refused", slog.String("site", site), slog.String("code", code), slog.Any("error", err))
	refuse(w, status, wire.Reply{Outcome: holdfast.Permanent.String(), Code: code, Error: shown.Line(err.Error(), 500)})
}

func (c *Central) take(ctx context.Context, site string, in *shipment) ([]sites.Copy, error) {
	if in.Batch != nil {
		out, err := c.conf.Copies.Copy(ctx, site, in.Batch)
		return []sites.Copy{out}, err
	}
	if len(in.Logs) > maxLogs {
		return nil, holdfast.ErrInvalid
	}
	origins := make([]string, len(in.Logs))
	for i, l := range in.Logs {
		origins[i] = l.Origin
	}
	return c.conf.Copies.Copied(ctx, site, origins)
}

// vouch exchanges checkpoints with a site. What fails comes with the next question.
func (c *Central) vouch(ctx context.Context, site string, in *shipment) *audit.Vouching {
	if c.conf.Witness == nil || in.Batch != nil || in.Vouching == nil {
		return nil
	}
	c.conf.Witness.Told(ctx, site, *in.Vouching)
	origins := make([]string, 0, len(in.Logs))
	for _, l := range in.Logs {
		origins = append(origins, l.Origin)
	}
	v, err := c.conf.Witness.Tell(ctx, site, origins...)
	if err != nil {
		c.few.LogAttrs(ctx, slog.LevelWarn, "checkpoints not told to a site", slog.String("site", site), slog.Any("error", err))
		return nil
	}
	return &v
}

// refusalOf returns the code of a batch that cannot be taken as it is. Empty: it may be taken later.
func refusalOf(err error) (code string, status int) {
	switch {
	case errors.Is(err, sites.ErrForeign):
		return codeForeign, http.StatusForbidden
	case errors.Is(err, sites.ErrBroken):
		return codeBroken, http.StatusConflict
	case errors.Is(err, sites.ErrUnreadable):
		return codeUnreadable, http.StatusUnprocessableEntity
	case errors.Is(err, sites.ErrGaps):
		return codeGaps, http.StatusConflict
	case errors.Is(err, holdfast.ErrInvalid):
		return codeBatch, http.StatusUnprocessableEntity
	}
	return "", 0
}

// shipped notes how the site's telemetry fares, for health.
func (b *siteState) shipped(in *shipment, out []sites.Copy, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.telemetry.Problem = firstOf(b.refused) }()
	if err != nil {
		if code, _ := refusalOf(err); code != codeGaps && in.Batch != nil {
			b.refuse(in.Batch.Log.Origin, shown.Line(err.Error(), 500))
		}
		return
	}
	logs := in.Logs
	if in.Batch != nil {
		logs = []sites.Log{in.Batch.Log}
		delete(b.refused, in.Batch.Log.Origin)
	} else { // all that it has
		maps.DeleteFunc(b.refused, func(origin, _ string) bool {
			return !slices.ContainsFunc(logs, func(l sites.Log) bool { return l.Origin == origin })
		})
	}
	b.telemetry.At = time.Now()
	if b.backlog == nil || in.Batch == nil {
		b.backlog = map[string]int64{}
	}
	for i, l := range logs {
		b.backlog[l.Origin] = min(backlogOf(l, out[i]), mostCounted)
	}
	b.telemetry.Backlog = 0
	for _, n := range b.backlog {
		b.telemetry.Backlog += n
	}
}

// refuse notes why a log is not taken. The name may be anything that the site says.
func (b *siteState) refuse(origin, why string) {
	if b.refused == nil {
		b.refused = map[string]string{}
	}
	if _, known := b.refused[origin]; known || len(b.refused) < mostParts {
		b.refused[origin] = why
	}
}

// firstOf returns the value of the first key.
func firstOf(m map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		return m[key]
	}
	return ""
}

// backlogOf counts the records that a site has and central lacks.
func backlogOf(l sites.Log, c sites.Copy) (n int64) {
	for _, g := range missing(l, c) {
		n += g.Last - g.First + 1
	}
	return n
}

// missing returns what a site has of a log, and central lacks, from the oldest.
func missing(l sites.Log, c sites.Copy) (list []sites.Range) {
	for _, g := range append(slices.Clip(c.Gaps), sites.Range{First: c.Size + 1, Last: l.Size}) {
		if g.First, g.Last = max(g.First, l.Cut+1), min(g.Last, l.Size); g.First <= g.Last {
			list = append(list, g)
		}
	}
	return list
}

// newTelemetryRoom is room for the bodies of batches, apart from all other bodies.
func newTelemetryRoom() *serve.Room { return serve.NewRoom(2 * copiesAtOnce * maxTelemetry) }
