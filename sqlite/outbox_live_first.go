package sqlite

import (
	"github.com/holdfast-mq/holdfast"
)

// Limits of the rows that may go before a backlog: of one lane, of one payload, and of the payloads
// of all lanes together.
const (
	aheadRows   = 256
	aheadBytes  = 16 << 10
	aheadTotal  = 4 << 20
	aheadWeight = 512 // of a row without its payload
)

// aheadRow is a row after its lane's cursor. It is also in the table: memory may drop it at any
// time.
type aheadRow struct {
	due   int64
	claim holdfast.Claim
}

func (r *aheadRow) weight() int { return aheadWeight + len(r.claim.Message.Payload) }

// keepAhead remembers a row that was committed while its lane works off a backlog. New messages go
// first only if the lane is set to it, like the lane to central (design: section 10). Every other
// lane hands out the oldest first (NO-05). The caller holds the lock.
func (ls *lanes) keepAhead(l *lane, f *freshRow) {
	if !l.liveFirst || f.claim == nil || ls.careful > 0 || !ls.db.owns.Load() || len(l.ahead) >= aheadRows ||
		len(f.claim.Message.Payload) > aheadBytes || ls.aheadBytes >= aheadTotal {
		return
	}
	r := aheadRow{f.due, *f.claim}
	l.ahead = append(l.ahead, r)
	ls.aheadBytes += r.weight()
}

// popAhead leases new messages before waiting ones, in half of n slots, so that neither kind
// starves the other. Rows that the cursor has passed were handed out from the table; a reader of
// the table skips rows that are leased here.
func (ls *lanes) popAhead(l *lane, n int, now int64, out []holdfast.Claim) []holdfast.Claim {
	most := (n + l.turn) / 2
	l.turn = 1 - l.turn
	for most > 0 && len(l.ahead) > 0 {
		r := l.ahead[0]
		l.ahead[0] = aheadRow{}
		l.ahead = l.ahead[1:]
		ls.aheadBytes -= r.weight()
		passed := r.due < l.cursorDue || r.due == l.cursorDue && r.claim.Seq <= l.cursorSeq
		if passed || r.claim.Expires >= 0 && int64(r.claim.Expires) <= now {
			continue // a row whose time is over is left to the table's reader
		}
		out = append(out, ls.lease(l, r.claim, now, false))
		most--
	}
	if len(l.ahead) == 0 {
		l.ahead = nil
	}
	return out
}

// dropAhead leaves all of these rows to the table.
func (ls *lanes) dropAhead(l *lane) {
	for i := range l.ahead {
		ls.aheadBytes -= l.ahead[i].weight()
	}
	l.ahead = nil
}
