package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/transport"
)

const (
	// batchesAtOnce is how many batches of telemetry are under way at one time.
	batchesAtOnce = 4
	// leastBatch is the fewest bytes to which a slow line makes batches shrink.
	leastBatch = 16 << 10
	// shipEvery is how often a site looks for new records.
	shipEvery = time.Second
	// askEvery is how often a site with nothing to send asks what central has: it may have been restored.
	askEvery = time.Minute
	// restFor is how long a log rests of which central has refused a batch.
	restFor = time.Minute
)

// shipper sends a site's audit logs to central. Records that come while central is there go first,
// then what central lacks, from the oldest.
type shipper struct {
	site *Site
	most int64 // bytes of a batch
	at   time.Time

	mu    sync.Mutex
	logs  map[string]*shippedLog // by origin
	again bool                   // there is something to tell of now

	done []audit.Gone // erased for central, and not confirmed yet; of the loop
}

// shippedLog is what a site knows of one of its logs.
type shippedLog struct {
	log    sites.Log
	former bool       // the site appends to a later one
	there  sites.Copy // at central, as it last said
	heard  bool       // it has said so since it was away
	told   bool       // it has ever said so
	live   int64      // later records came while central was there
	rests  time.Time  // until then nothing is sent
}

// piece is a range of records that go in one batch.
type piece struct {
	of *shippedLog
	sites.Range
	former bool // its log was, when the piece was chosen
}

// ships is the loop of telemetry. No failure ends it.
func (s *Site) ships(ctx context.Context) {
	wait := leastWait
	for ctx.Err() == nil {
		more, err := s.shipper.round(ctx)
		if ctx.Err() != nil {
			return
		}
		s.shipper.fares(ctx, err)
		switch {
		case err != nil:
			s.shipper.away()
			wait = next(wait)
			if !rest(ctx, max(wait, holdfast.AsFailure(err).RetryAfter)) {
				return
			}
		case more:
			wait = leastWait
		default:
			wait = leastWait
			if !rest(ctx, shipEvery) {
				return
			}
		}
	}
}

// round sends a few batches at once, and reports whether there is more to send.
func (h *shipper) round(ctx context.Context) (more bool, err error) {
	list, err := h.site.conf.Telemetry.Logs(ctx)
	if err != nil {
		return false, err
	}
	if h.notice(list) {
		if err := h.ask(ctx, list); err != nil {
			return false, err
		}
	}
	pieces := h.plan(list)
	results := make([]shipResult, len(pieces))
	var all sync.WaitGroup
	for i, p := range pieces {
		all.Go(func() { results[i] = h.send(ctx, p) })
	}
	all.Wait()
	return len(pieces) > 0, h.settle(ctx, pieces, results)
}

// notice takes over how far the logs are, and reports whether central must be asked about them.
func (h *shipper) notice(list []sites.Log) (ask bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range list {
		if h.logs[l.Origin] == nil {
			h.logs[l.Origin] = &shippedLog{}
		}
		h.logs[l.Origin].log, h.logs[l.Origin].former = l, i > 0
		ask = ask || !h.logs[l.Origin].heard
	}
	return ask || len(list) > 0 && (h.again || time.Since(h.at) >= askEvery)
}

// ask asks what central has.
func (h *shipper) ask(ctx context.Context, list []sites.Log) error {
	list = list[:min(len(list), maxLogs)]
	var out shipped
	in := shipment{Logs: list}
	witness := h.site.conf.Witness
	if witness != nil {
		v, err := witness.Tell(ctx, Uplink)
		if err != nil {
			return err
		}
		in.Vouching = &v
	}
	var err error
	if in.Erasures, err = h.erasures(ctx); err != nil {
		return err
	}
	if err := h.site.ask(ctx, TelemetryPath, h.site.conf.Timeout, in, &out); err != nil {
		return err
	}
	again := in.Erasures != nil && h.erased(ctx, out.Erasures)
	if witness != nil && out.Vouching != nil {
		witness.Told(ctx, Uplink, *out.Vouching)
		if len(in.Vouching.Notes) == 0 { // until now it was not known what central holds
			v, err := witness.Tell(ctx, Uplink)
			again = again || err == nil && len(v.Notes) > 0
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range list {
		of := h.logs[l.Origin]
		if !of.heard {
			of.heard, of.live = true, l.Size
		}
		if i >= len(out.Copies) || !sound(out.Copies[i], l, of.former) {
			_ = h.refused(ctx, of, errUnsound(l)) // this log rests, others go on
			continue
		}
		of.there, of.told = out.Copies[i], true
	}
	h.at, h.again = time.Now(), again
	return nil
}

// errUnsound means that central says of a log what cannot be, such as records that the site never had.
func errUnsound(l sites.Log) error {
	return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: codeBroken, Err: fmt.Errorf("central says of log %s, which has %d records, what cannot be", l.Origin, l.Size)}
}

// sound reports whether central can have this of a log. Of a former one it may have more than the site, whose store
// went back.
func sound(c sites.Copy, l sites.Log, former bool) bool {
	if c.Origin != l.Origin {
		return false
	}
	last := int64(0)
	for _, g := range c.Gaps {
		if g.First <= last || g.Last < g.First || g.Last > c.Size {
			return false
		}
		last = g.Last
	}
	return len(c.Gaps) <= sites.MaxGaps+1 && c.Size >= 0 && (former || c.Size <= l.Size)
}

// plan chooses the next pieces: live records of all logs first.
func (h *shipper) plan(list []sites.Log) (pieces []piece) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var later []piece
	for _, l := range list {
		of := h.logs[l.Origin]
		if !of.heard || time.Now().Before(of.rests) {
			continue
		}
		for _, r := range missing(l, of.there) {
			if r.Last > of.live {
				fresh := sites.Range{First: max(r.First, of.live+1), Last: r.Last}
				pieces = cut(pieces, of, fresh)
				r.Last = fresh.First - 1
			}
			later = cut(later, of, r)
		}
	}
	pieces = append(pieces, later...)
	return pieces[:min(len(pieces), batchesAtOnce)]
}

// cut cuts a range into pieces of a batch each, as many as can be under way.
func cut(pieces []piece, of *shippedLog, r sites.Range) []piece {
	for ; r.First <= r.Last && len(pieces) < batchesAtOnce; r.First += sites.BatchRecords {
		pieces = append(pieces, piece{of, sites.Range{First: r.First, Last: min(r.Last, r.First+sites.BatchRecords-1)}, of.former})
	}
	return pieces
}

// shipResult is what became of a piece.
type shipResult struct {
	there sites.Copy
	sent  bool
	err   error
}

func (h *shipper) send(ctx context.Context, p piece) (r shipResult) {
	b, err := h.site.conf.Telemetry.Batch(ctx, p.of.log, p.First, p.Last, h.most)
	if err != nil || len(b.Records) == 0 { // purged meanwhile: the next round sees it
		return shipResult{err: err}
	}
	b.Calls = h.calls(ctx, b.Records)
	var out shipped
	err = h.site.ask(ctx, TelemetryPath, transport.Patience(h.site.conf.Timeout, int(2*h.most)), shipment{Batch: &b}, &out)
	if err != nil {
		return shipResult{err: err}
	}
	if len(out.Copies) != 1 || !sound(out.Copies[0], b.Log, p.former) {
		return shipResult{err: errUnsound(b.Log)}
	}
	return shipResult{there: out.Copies[0], sent: true}
}

// calls returns how the operations stand that the records are about.
func (h *shipper) calls(ctx context.Context, records []sites.Record) []sites.Call {
	if h.site.conf.Call == nil {
		return nil
	}
	seen := map[string]bool{}
	var list []sites.Call
	for i := range records {
		r, err := audit.Read(records[i].Leaf, nil)
		about := r.Kind == audit.CachedCall || r.Kind == audit.Retry || r.Kind == audit.Discard
		if err != nil || !about || r.Correlation == "" || seen[r.Correlation] {
			continue
		}
		seen[r.Correlation] = true
		if c, ok := h.site.conf.Call(ctx, holdfast.ID(r.Correlation)); ok {
			list = append(list, c)
		}
	}
	return list
}

// settle takes over what central has said of each log, and returns the first failure that concerns
// all of them.
func (h *shipper) settle(ctx context.Context, pieces []piece, results []shipResult) (failed error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	best := map[*shippedLog]int64{}
	for i, r := range results {
		of := pieces[i].of
		switch {
		case r.err != nil:
			if err := h.refused(ctx, of, r.err); failed == nil {
				failed = err
			}
		case r.sent:
			// Answers of one round may come in any order: the one with most of the log is the last.
			if n := r.there.Size - lacking(r.there); n >= best[of] {
				best[of], of.there, of.told = n, r.there, true
			}
			h.at, h.most = time.Now(), min(2*h.most, sites.BatchBytes)
		}
	}
	return failed
}

func lacking(c sites.Copy) (n int64) {
	for _, g := range c.Gaps {
		n += g.Last - g.First + 1
	}
	return n
}

// refused notes why a batch was not taken. It returns nil if only its log is concerned.
func (h *shipper) refused(ctx context.Context, of *shippedLog, err error) error {
	f := holdfast.AsFailure(err)
	switch f.Code {
	case codeGaps:
		of.live = of.log.Size // the oldest first
		return nil
	case codeForeign, codeBroken, codeUnreadable, codeBatch:
		of.rests = time.Now().Add(restFor)
		h.site.log.ErrorContext(ctx, "central refuses audit records", slog.String("log", of.log.Origin), slog.String("code", f.Code), slog.Any("error", err))
		h.problem(err)
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || f.Code == transport.CodeTimeout {
		h.most = max(h.most/2, leastBatch)
	}
	return err
}

// away forgets that central is there: what came meanwhile is not live.
func (h *shipper) away() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.logs {
		of.heard = false
	}
}

// waiting is the first record of a log that central lacks.
type waiting struct {
	log sites.Log
	seq int64
}

// behind counts what central lacks, and returns the first record of each log that it does. resting reports
// whether it refuses a log.
func (h *shipper) behind() (backlog int64, first []waiting, resting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.logs {
		resting = resting || time.Now().Before(of.rests)
		if lacks := missing(of.log, of.there); len(lacks) > 0 {
			backlog += backlogOf(of.log, of.there)
			first = append(first, waiting{of.log, lacks[0].First})
		}
	}
	return backlog, first, resting
}

// oldest returns when the oldest of some records was written. Zero: it is unknown.
func (h *shipper) oldest(ctx context.Context, list []waiting) (oldest time.Time) {
	for _, w := range list {
		if at, err := h.site.conf.Telemetry.Written(ctx, w.log, w.seq); err == nil && !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// fares notes how telemetry fares, and logs a change.
func (h *shipper) fares(ctx context.Context, err error) {
	backlog, first, resting := h.behind()
	oldest := h.oldest(ctx, first)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.site
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.status.Telemetry.Problem
	s.status.Telemetry.Backlog, s.status.Telemetry.Oldest, s.status.Telemetry.At = backlog, oldest, h.at
	switch {
	case err != nil:
		s.status.Telemetry.Problem = shown.Line(err.Error(), 500)
		if was == "" {
			s.log.WarnContext(ctx, "audit records do not get to central; they are kept", slog.Any("error", err))
		}
	case !resting:
		s.status.Telemetry.Problem = ""
	}
}

func (h *shipper) problem(err error) {
	h.site.mu.Lock()
	defer h.site.mu.Unlock()
	h.site.status.Telemetry.Problem = shown.Line(err.Error(), 500)
}

// Shipped returns up to which record central has everything of a log that the site still has: later
// ones must not be purged. Zero: central has not said yet.
func (s *Site) Shipped(origin string) int64 {
	s.shipper.mu.Lock()
	defer s.shipper.mu.Unlock()
	of := s.shipper.logs[origin]
	if of == nil || !of.told {
		return 0
	}
	if lacks := missing(of.log, of.there); len(lacks) > 0 {
		return lacks[0].First - 1
	}
	return of.log.Size
}

// newShipper makes the shipper of a site.
func newShipper(s *Site) *shipper {
	return &shipper{site: s, most: sites.BatchBytes, logs: map[string]*shippedLog{}}
}
