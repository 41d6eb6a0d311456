package link

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/transport"
)

const (
	// leastWait and mostWait bound the wait after a failed try.
	leastWait = time.Second
	mostWait  = 30 * time.Second
	// answerWait is how long an answer may take beyond the time that central may wait.
	answerWait = 15 * time.Second
	// stallAfter is how long messages may be due while none gets through.
	stallAfter = time.Minute
	lookEvery  = 10 * time.Second
	// askedWait bounds one command.
	askedWait = 10 * time.Second
	// pollEvery is the shortest time between two polls, however fast central answers.
	pollEvery = 100 * time.Millisecond
)

// Run keeps the link up until ctx ends. It polls for commands and answers them, replays when
// central has lost messages, sends the audit logs, and tears down connections that make no progress. No failure ends it.
// It must not run twice at the same time.
func (s *Site) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	replays := make(chan memo, 1)
	parts.Go(func() { s.watch(ctx) })
	parts.Go(func() { s.replays(ctx, replays) })
	if s.conf.Telemetry != nil {
		parts.Go(func() { s.ships(ctx) })
	}
	s.polls(ctx, replays)
	parts.Wait()
	return nil
}

// polls is the loop of the long poll.
func (s *Site) polls(ctx context.Context, replays chan<- memo) {
	wait := leastWait
	now := true // central answers the first poll at once: it only reports that the site is there
	for ctx.Err() == nil {
		began := time.Now()
		out, err := s.poll(ctx, now)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			out.Incarnation = shown.Line(out.Incarnation, 200)
			s.connected(out.Incarnation)
			select {
			case replays <- memo{out.Incarnation, began}:
			default: // replays has not yet taken the previous one
			}
			err = s.runCommands(ctx, out.Commands)
		}
		switch {
		case err != nil:
			s.lost(err)
		case out.Replaced, !now && len(out.Commands) == 0 && time.Since(began) < leastWait:
			// Another node of this site polls too, or central does not wait: poll again after a
			// pause.
		default:
			if !now { // central held the poll as long as it should
				wait = leastWait
			}
			now = false
			if !rest(ctx, pollEvery-time.Since(began)) {
				return
			}
			continue
		}
		now = true
		wait = next(wait)
		if _, missing := s.identity.read(); missing != nil {
			wait = leastWait // nothing is sent, so the site can look again soon for its enrolment
		}
		if !rest(ctx, max(wait, holdfast.AsFailure(err).RetryAfter)) {
			return
		}
	}
}

// next draws the wait that follows a wait of the given length, with decorrelated jitter. So sites
// that lost central together do not come back together.
func next(wait time.Duration) time.Duration { return min(mostWait, between(leastWait, 3*wait)) }

// between draws a random wait.
func between(least, most time.Duration) time.Duration {
	return least + rand.N(max(most-least, 1)) //nolint:gosec // spread, no secret
}

// rest waits. It returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Site) poll(ctx context.Context, now bool) (polled, error) {
	in := polling{Health: s.health(ctx), WaitMs: longestPoll.Milliseconds()}
	if now {
		in.WaitMs = 0
	}
	var out polled
	err := s.ask(ctx, PollPath, time.Duration(in.WaitMs)*time.Millisecond+answerWait, in, &out)
	return out, err
}

// ask makes one request to a path of the link.
func (s *Site) ask(ctx context.Context, path string, most time.Duration, in, out any) error {
	client, err := s.connect()
	if err != nil {
		return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: transport.CodeConnect, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ctx, land := s.fly(ctx, time.Time{})
	defer land()
	return client.Ask(ctx, path, in, out)
}

// connected notes that central has answered.
func (s *Site) connected(incarnation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Connected {
		s.log.Info("central is connected", slog.String("incarnation", incarnation))
		s.status.Connected, s.status.Since, s.status.Problem = true, time.Now(), ""
	}
	s.status.Incarnation = incarnation
}

// lost notes that central has not answered, and logs that once.
func (s *Site) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Connected || s.status.Problem == "" {
		s.log.Warn("central is not connected", slog.Any("error", err))
		s.status.Connected, s.status.Since = false, time.Now()
	}
	s.status.Problem = shown.Line(err.Error(), 500)
}

// watch checks whether messages get through.
func (s *Site) watch(ctx context.Context) {
	var torn time.Time // when the link was last torn down
	for rest(ctx, lookEvery) {
		due, known := s.isDue(ctx)
		s.mu.Lock()
		if known && !due {
			s.progress, s.status.Stalled = time.Now(), time.Time{}
		}
		stuck := time.Since(s.progress) >= stallAfter
		first := stuck && s.status.Stalled.IsZero()
		since := s.progress
		if first {
			s.status.Stalled = since
		}
		s.mu.Unlock()
		if first {
			s.log.ErrorContext(ctx, "link stalled: messages are due and none gets through", slog.Time("since", since))
		}
		if stuck && time.Since(torn) >= stallAfter {
			torn = time.Now()
			s.tearDown()
		}
	}
}

// isDue reports whether messages for central wait that could be under way.
func (s *Site) isDue(ctx context.Context) (due, known bool) {
	if s.conf.Overdue == nil {
		return s.conf.Outbox.Counts().Lanes[s.conf.Lane].Pending > 0, true
	}
	list, err := s.conf.Overdue(ctx)
	_, due = list[s.conf.Lane]
	return due, err == nil
}
