package email

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// run is one attempt.
type run struct {
	m      *Mailer
	n      *notify.Notification
	mail   []byte        // its Message-ID is that of the current recipients
	addr   []string      // address of each recipient; empty: it has no valid one
	open   []int         // recipients still to be tried, by index
	twins  map[int][]int // for a recipient, the others with the same mailbox
	report notify.Report
	known  func(notify.Part) bool
	untold map[int]notify.Delivery // outcomes not yet passed to known
	served bool                    // the server handled at least one mail
}

// address refuses recipients without a valid address, before the server is asked (E62). A mailbox
// that is listed in several forms gets one mail: no server distinguishes names by case.
func (r *run) address(to []notify.Recipient) {
	r.addr = make([]string, len(to))
	seen := map[string]int{}
	for i := range to {
		address, err := parseAddress(to[i].Address)
		if err != nil { // without the address: it stands beside the error, and would be logged
			r.report.To[i] = notify.Delivery{Outcome: notify.Refused, Code: "bad_address", Text: "not a mail address: " + err.Error()}
			continue
		}
		r.addr[i] = address
		if first, ok := seen[strings.ToLower(address)]; ok {
			r.twins[first] = append(r.twins[first], i)
			continue
		}
		seen[strings.ToLower(address)] = i
		r.open = append(r.open, i)
	}
}

// send sends one mail after the other until no recipient is left or no progress is possible.
func (r *run) send(ctx context.Context) {
	var err error
	if r.mail, err = r.m.compose(r.n, time.Now()); err != nil {
		r.report.Fault = &holdfast.Failure{Code: "compose", Err: err}
		return
	}
	r.report.Server = r.m.settings.address()
	renew := false
	for len(r.open) > 0 {
		open := len(r.open)
		s, f := r.m.session(ctx, renew)
		if f == nil {
			r.report.Server, r.report.TLS = s.server, s.tls
			var t *transaction
			t, f = r.transact(ctx, s)
			renew = t.stale
			if t.broke && len(r.open) < open && ctx.Err() == nil { // some outcome is known: try the others over another connection (F1-63)
				f = nil
			}
		}
		if f != nil {
			if f.Outcome == holdfast.Unreachable && slices.ContainsFunc(r.report.To, deferred) {
				f.Outcome = holdfast.Transient // the server was reached, so this counts as an attempt
			}
			r.report.Fault, r.report.Served = f, false
			return
		}
		r.report.Served = r.served
		if len(r.open) > 0 && !r.tell() {
			r.report.Fault = &holdfast.Failure{Outcome: holdfast.NotStarted, Code: exchange.Canceled, Err: errors.New("stopped: what became of those who were asked could not be recorded")}
			return
		}
	}
}

// tell records the outcomes of a mail before the next one begins. So a kill in the middle of a long
// list repeats at most one mail.
func (r *run) tell() bool {
	ends := r.untold
	r.untold = nil
	return r.known == nil || len(ends) == 0 || r.known(notify.Part{Ends: ends, Server: r.report.Server, TLS: r.report.TLS})
}

func deferred(d notify.Delivery) bool { return d.Outcome == notify.Deferred }

// settle records a recipient's outcome and takes it off the open ones.
func (r *run) settle(i int, d notify.Delivery) {
	if r.untold == nil {
		r.untold = map[int]notify.Delivery{}
	}
	for _, twin := range append(r.twins[i], i) {
		r.report.To[twin], r.untold[twin] = d, d
	}
	r.open = slices.DeleteFunc(r.open, func(o int) bool { return o == i })
}

// transact sends one mail over a session and gives the session back. The failure concerns all
// recipients that are still open.
func (r *run) transact(ctx context.Context, s *session) (t *transaction, f *holdfast.Failure) {
	t = &transaction{run: r, s: s, batch: r.batch(), sound: true}
	t.stop = context.AfterFunc(ctx, s.cut)
	f = t.make(ctx)
	t.stop()
	r.m.giveBack(s, t.sound && ctx.Err() == nil)
	return t, f
}

// batch returns as many recipients as one mail may have.
func (r *run) batch() []int {
	most := r.m.settings.recipientsPerMail
	if l := r.m.bears.Load(); l != nil && time.Since(l.at) < learnedFor {
		most = min(most, l.most)
	}
	return slices.Clone(r.open[:min(most, len(r.open))])
}
