package link

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

const (
	// heardEvery is the precision with which a site remembers when it last heard of an incarnation.
	heardEvery = time.Hour
	// forEver is longer than anything is kept.
	forEver = 100 * 365 * 24 * time.Hour
)

// memo is what a site remembers of central, in a file beside its credential. If the file is lost or
// unreadable, the site replays, and central deduplicates.
type memo struct {
	Incarnation string    `json:"incarnation"`
	Heard       time.Time `json:"heard"` // to an hour
}

// ago returns how long ago central was heard. The process that heard it measures elapsed time.
// After a restart the clock decides; it is not believed if Heard lies in its future.
func (m memo) ago() (ago time.Duration, believed bool) {
	ago = time.Since(m.Heard)
	return max(ago, 0), ago >= -holdfast.ClockSkew
}

func (s *Site) remember() memo {
	var m memo
	text, err := namedfile.Read(s.conf.State, ownFile)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil && !isAbsent(err) {
		s.log.Warn("the file about central is not readable: sending again what central may have lost", slog.Any("error", err))
		return memo{}
	}
	return m
}

// note records the incarnation that has everything that the site has sent.
func (s *Site) note(m memo) error { return writeFile(s.conf.State, m) }

// replays compares each incarnation that central reports with the recorded one, and replays if they
// differ. A replay that a crash or a stop interrupts begins again.
func (s *Site) replays(ctx context.Context, said <-chan memo) {
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	for {
		var m memo
		select {
		case <-ctx.Done():
			return
		case m = <-said:
		}
		now, heard := m.Incarnation, m.Heard
		switch {
		case now == "":
			continue // central does not say which
		case now == known.Incarnation && heard.Sub(known.Heard) < heardEvery && heard.After(known.Heard):
			continue
		case now != known.Incarnation && !s.replay(ctx, known):
			return
		}
		if err := s.note(m); err != nil {
			s.log.ErrorContext(ctx, "central's incarnation not noted", slog.Any("error", err))
			if now != known.Incarnation {
				continue // the next poll asks again
			}
		}
		known = m
		s.mu.Lock()
		s.known = m
		s.mu.Unlock()
	}
}

// replay sends again what was delivered within the window. The window ends at the last time that
// central was known to have everything: the site may have been away long before it heard of the
// change. It returns false when ctx ends first.
func (s *Site) replay(ctx context.Context, known memo) bool {
	since := s.since(known)
	if known.Incarnation == "" {
		s.log.InfoContext(ctx, "connected to this central for the first time: sending again what it may lack", slog.Time("since", since))
	} else {
		s.log.WarnContext(ctx, "central has another history: sending again what it may have lost",
			slog.String("was", known.Incarnation), slog.Time("since", since))
	}
	s.replaying(true)
	defer s.replaying(false)
	sent := 0
	for after := ""; ; {
		p, ok := s.nextPage(ctx, after)
		if !ok {
			return false
		}
		n, ok := s.again(ctx, p.Records, since)
		if sent += n; !ok {
			return false
		}
		if after = p.Next; after == "" {
			s.log.InfoContext(ctx, "central has everything again", slog.Int("messages", sent))
			return true
		}
	}
}

// since returns the time from which messages are sent again. An age counts no time that only the
// store's clock has counted, so rather too much is sent than too little. If it is unknown when
// central was last heard, everything that is left is sent.
func (s *Site) since(known memo) time.Time {
	ago, believed := known.ago()
	switch {
	case known.Heard.IsZero():
		ago = 0
	case !believed:
		return time.Time{}
	}
	since := time.Now().Add(-ago - s.conf.Window - heardEvery)
	if store, ok := s.conf.Outbox.(holdfast.Doubting); ok {
		since = since.Add(-store.Doubt().Claimed)
	}
	return since
}

// nextPage reads one page of delivered messages, and tries until it succeeds.
func (s *Site) nextPage(ctx context.Context, after string) (holdfast.Page, bool) {
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		p, err := s.conf.Outbox.List(ctx, holdfast.Query{
			States: []holdfast.State{holdfast.Delivered}, Destination: s.conf.Lane, Limit: batchRows, After: after,
		})
		if err == nil {
			return p, true
		}
		if ctx.Err() == nil {
			s.log.ErrorContext(ctx, "replay: messages not listed, trying again", slog.Any("error", err))
		}
		if !rest(ctx, wait) {
			return p, false
		}
	}
}

// again sends the messages of a page that belong to the window, in batches of bounded size. Live
// messages can go between two batches.
func (s *Site) again(ctx context.Context, records []holdfast.Record, since time.Time) (sent int, ok bool) {
	var batch []holdfast.Message
	size := 0
	flush := func() bool {
		ok := len(batch) == 0 || s.push(ctx, batch)
		sent += len(batch)
		batch, size = nil, 0
		return ok
	}
	for i := range records {
		if records[i].Settled.Before(since) {
			continue
		}
		r, err := s.get(ctx, records[i].Message.ID)
		switch {
		case errors.Is(err, holdfast.ErrNotFound): // its retention has ended in the meantime
			continue
		case ctx.Err() != nil:
			return sent, false
		case err != nil:
			s.log.ErrorContext(ctx, "replay: message not read, left out", slog.String("message_id", string(records[i].Message.ID)), slog.Any("error", err))
			continue
		}
		if size+len(r.Message.Payload) > batchBytes/2 && !flush() {
			return sent, false
		}
		batch = append(batch, r.Message)
		size += len(r.Message.Payload)
	}
	return sent, flush()
}

// get reads a message that is sent again. A store that is briefly unavailable must not leave a gap
// in what central gets back. A message that can never be read must not hold up the others.
func (s *Site) get(ctx context.Context, id holdfast.ID) (r holdfast.Record, err error) {
	const tries = 8 // about two minutes
	for n, wait := 1, leastWait; ; n, wait = n+1, min(2*wait, mostWait) {
		r, err = s.conf.Outbox.Get(ctx, id)
		if err == nil || errors.Is(err, holdfast.ErrNotFound) || n == tries || !rest(ctx, wait) {
			return r, err
		}
	}
}

// push sends a batch until central has all of it, or has refused the rest.
func (s *Site) push(ctx context.Context, batch []holdfast.Message) bool {
	largest := 0
	for i := range batch {
		largest = max(largest, len(batch[i].Payload))
	}
	for wait := leastWait; ; wait = next(wait) {
		attempt, cancel := context.WithTimeout(ctx, RouteTimeout(s.conf.Timeout, largest))
		var left []holdfast.Message
		var worst *holdfast.Failure
		for i, r := range s.DeliverBatch(attempt, batch) {
			switch f := holdfast.AsFailure(r.Err); {
			case r.Err == nil:
			case f.Outcome == holdfast.Permanent:
				s.log.ErrorContext(ctx, "replay: central refuses a message that it had accepted", slog.String("message_id", string(batch[i].ID)), slog.Any("error", r.Err))
			default:
				left, worst = append(left, batch[i]), f
			}
		}
		cancel()
		s.replayed(len(batch) - len(left))
		if batch = left; len(batch) == 0 {
			return true
		}
		if !rest(ctx, max(wait, worst.RetryAfter)) {
			return false
		}
	}
}

func (s *Site) replaying(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Replaying = on
}

func (s *Site) replayed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Replayed += int64(n)
}
