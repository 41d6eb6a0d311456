package holdfast

import (
	"errors"
	"log/slog"
	"slices"
	"time"
)

// A message may wait long after its destination is back: the destination was away, or
// asked to come again later. The lane remembers such messages, and makes them due as soon
// as an attempt there succeeds. Uncharged messages become due at once; charged messages
// become due by their own schedule, without the wait that the other side asked for. The
// lane remembers only messages of this run, the last mostDelayed of them. The others wait
// as they were told.
//
// Where some messages always reach nobody while others succeed, as behind one node with
// several endpoints, this would be a loop. So the lane does it no more often than its
// patience allows.
const mostDelayed = 1000

// settleSlack is how much later than here a message may be due in the store: the store's
// wait begins when the outcome is on disk.
const settleSlack = time.Minute

// delayed is a message that waits only for its destination.
type delayed struct {
	seq  int64
	free time.Time // when the message is due by its own schedule
	due  time.Time
}

// codeTooMany says that the destination works but takes fewer requests at a time. The
// wait that it asked for stays, whatever else gets through.
const codeTooMany = "http_429"

// delayedBy notes how long a message waits beyond its own schedule.
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

// remember keeps a message that waits for its destination, once that is on disk.
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

// hasten makes the messages due that waited for a lane, after a success there. up says
// that the lane was down until then.
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
		l.hastens = 0 // the lane has worked for long
	}
	l.hasten = now.Add(patience().Wait(l.hastens))
	l.hastens++
	r.hasty.Go(func() {
		n, err := r.d.Store.Hasten(r.work, l.name, within+settleSlack, seqs...)
		switch {
		case err == nil && n > 0:
			r.log.InfoContext(r.work, "made messages due that waited for their destination", slog.String("destination", l.name), slog.Int("count", n))
		case err != nil && r.work.Err() == nil && !errors.Is(err, ErrClosed):
			r.log.WarnContext(r.work, "messages that waited for their destination not made due", slog.String("destination", l.name), slog.Any("error", err))
		}
	})
}
