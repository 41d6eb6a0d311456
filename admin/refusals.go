package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// fruitless reports whether a call was refused before it could change anything, for lack of a right, as a sign-in that
// failed, or because there is nothing of that name: a caller can make as many such calls as it likes. An id that is out of scope
// looks like one that is not kept.
func fruitless(p *api.Problem) bool {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
		return true
	}
	return false
}

// Limits of what such calls write into the journal.
const (
	refusalEvery = time.Minute
	mostRefusals = 1000 // token, operation and status; others share one more
)

// refusal is one caller who is refused one operation in one way.
type refusal struct {
	actor, operation string
	status           int
}

// refusals lets through one entry a minute for each refusal, and counts the others.
type refusals struct {
	mu     sync.Mutex
	last   map[refusal]tally
	looked time.Time // when left last looked at all of them
}

type tally struct {
	at   time.Time // of the last entry
	more int       // since then
}

// take reports whether to write an entry now, and what was not written since the last one.
func (d *refusals) take(who refusal, now time.Time) (before tally, tell bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last, d.looked = map[refusal]tally{}, now
	}
	t, known := d.last[who]
	if !known && len(d.last) >= mostRefusals {
		who = refusal{}
		t, known = d.last[who]
	}
	if known && now.Sub(t.at) < refusalEvery {
		t.more++
		d.last[who] = t
		return t, false
	}
	d.last[who] = tally{at: now}
	return t, true
}

// left returns entries for what was counted of callers who have not come again, some at a time, and forgets
// those. It looks once a minute. told is of which calls they tell.
func (d *refusals) left(now time.Time) (entries []holdfast.Entry, told audit.Missed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.looked) < refusalEvery {
		return nil, told
	}
	d.looked = now
	for who, t := range d.last {
		if now.Sub(t.at) < 2*refusalEvery || len(entries) == holdfast.MaxEntries/2 {
			continue
		}
		delete(d.last, who)
		if t.more > 0 {
			told.Calls, told.Until = told.Calls+int64(t.more), now
			if told.Since.IsZero() || t.at.Before(told.Since) {
				told.Since = t.at
			}
			entries = append(entries, holdfast.Entry{
				Kind: holdfast.Called, Code: cmp.Or(who.operation, "several"), Actor: who.actor, Outcome: holdfast.Permanent,
				Error: fmt.Sprintf("refused %d times more after the last entry", t.more), Detail: json.RawMessage(fmt.Sprintf(`{"status":%d}`, who.status)),
			})
		}
	}
	return entries, told
}
