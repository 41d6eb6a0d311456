package holdfast

import (
	"errors"
	"log/slog"
	"slices"
	"time"
)

// A message that found its destination away, or was asked to come again later, may
// wait for long after the destination is back. The lane remembers such messages, and
// has them due as soon as an attempt there succeeds: at once what cost nothing,
// and what was charged by its own schedule, without what the other side asked for.
// It remembers those of this run, the last mostDelayed of them; the others wait
// as they were told.
//
// Where some messages always find nobody while others succeed, as behind one
// node with several endpoints, that would be a loop: it is done as seldom as the
// lane's patience has it.
const mostDelayed = 1000

// settleSlack is how much later than here a message may be due in the store, whose
// wait begins when the outcome is on disk.
const settleSlack = time.Minute

// delayed is a message that waits only for its destination.
type delayed struct {
	seq  int64
	free time.Time // when its own schedule would have it tried
	due  time.Time
}

// codeTooMany says that the destination works, and takes less at a time: what
// it asked for then holds whatever gets through.
const codeTooMany = "http_429"

// delayedBy notes how a message waits beyond its own schedule.
func (f *finished) delayedBy(s *Settlement, own time.Duration) {
	if f.lane == nil || f.lane.route.OwnSchedule || f.failure.Code == codeTooMany || f.failure.Served || s.Charged && s.RetryIn <= own {
		return
	}
	now := time.Now()
	f.delay = &delayed{f.claim.Seq, now, now.Add(s.RetryIn)}
	if s.Charged {
		f.delay.free = now.Add(own)
	}
}

// remember keeps what waits for its destination, after that is on disk.
func (f *finished) remember() {
	if f.delay == nil {
		return
	}
	l := f.lane
	if len(l.delayed) >= mostDelayed {
		l.delayed = slices.Delete(l.delayed, 0, mostDelayed/2)
	}
	l.delayed = append(l.delayed, *f.delay)
}

// hasten has what waited for a lane due, after a success there. up says that it
// was down until then.
func (r *dispatch) hasten(l *laneRun, now time.Time, up bool) {
	if len(l.delayed) == 0 || now.Before(l.hasten) && !up {
		return
	}
	var seqs []int64
	var within time.Duration
	rest := l.delayed[:0]
	for _, d := range l.delayed {
		switch {
		case !now.Before(d.due): // or tried again since
		case now.Before(d.free):
			rest = append(rest, d)
		default:
			seqs, within = append(seqs, d.seq), max(within, d.due.Sub(now))
		}
	}
	l.delayed = rest
	if len(seqs) == 0 {
		return
	}
	if now.Sub(l.hasten) > 2*mostProbe {
		l.hastens = 0 // it has been well for long
	}
	l.hasten = now.Add(patience().Wait(l.hastens))
	l.hastens++
	r.hasty.Go(func() {
		n, err := r.d.Store.Hasten(r.work, l.name, within+settleSlack, seqs...)
		switch {
		case err == nil && n > 0:
			r.log.InfoContext(r.work, "messages due that waited for their destination", slog.String("destination", l.name), slog.Int("count", n))
		case err != nil && r.work.Err() == nil && !errors.Is(err, ErrClosed):
			r.log.WarnContext(r.work, "messages wait on that waited for their destination", slog.String("destination", l.name), slog.Any("error", err))
		}
	})
}
