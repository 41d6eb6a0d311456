package holdfast

import "slices"

// waiting holds the messages of a lane that are claimed and not begun. Those that were never
// tried and those that were go in turn, so that a few bad messages do not block all that come
// after them.
type waiting struct {
	first, again []Claim
	bytes        int  // of payloads
	turn         bool // the next one was tried before, if there is such a one
}

func (w *waiting) len() int { return len(w.first) + len(w.again) }

// begins returns how many messages may begin if so many of them may be ones that were tried before.
func (w *waiting) begins(again int) int { return len(w.first) + min(len(w.again), again) }

func (w *waiting) add(c Claim) {
	w.bytes += len(c.Message.Payload)
	if c.Tries > 0 {
		w.again = append(w.again, c)
	} else {
		w.first = append(w.first, c)
	}
}

// next returns the list whose first message goes next. retry says whether one that was tried
// before may go. Nil: none may.
func (w *waiting) next(retry bool) *[]Claim {
	retry = retry && len(w.again) > 0
	switch {
	case retry && (w.turn || len(w.first) == 0):
		return &w.again
	case len(w.first) > 0:
		return &w.first
	}
	return nil
}

// take takes the messages of one request: at most size, and no more than fit into one request.
func (w *waiting) take(size int, retry bool) (claims []Claim) {
	bytes := 0
	for len(claims) < size {
		from := w.next(retry)
		if from == nil {
			break
		}
		n := len((*from)[0].Message.Payload)
		if len(claims) > 0 && bytes+n > batchBytes {
			break
		}
		bytes += n
		if size == 1 {
			claims = (*from)[:1:1]
		} else {
			claims = append(claims, (*from)[0])
		}
		w.turn = from == &w.first
		if *from = (*from)[1:]; len(*from) == 0 {
			*from = nil
		}
	}
	w.bytes -= bytes
	return claims
}

// all takes all messages.
func (w *waiting) all() []Claim {
	list := slices.Concat(w.first, w.again)
	*w = waiting{}
	return list
}

// firstShare is which part of the requests of a lane, rounded up, is kept for first attempts
// where each message has its own schedule. Retries that hang take their slots for as long as
// they hang; a new message must not wait for them.
const firstShare = 4

// retries returns how many more requests with messages that were tried before may begin now,
// besides what slots allows. Zero: none may, or no such message is ready.
func (l *laneRun) retries() int {
	most := min(l.limit, l.share)
	switch {
	case len(l.ready.again) == 0:
		return 0
	case !l.route.OwnSchedule || most < 2:
		return most
	}
	n := most - (most+firstShare-1)/firstShare
	for a := range l.inFlight {
		if a.again && !a.abandoned && !a.left {
			n--
		}
	}
	return max(n, 0)
}
