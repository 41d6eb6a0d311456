package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// clock tests that a wrong clock ends nothing (F1-50, F1-51, F1-52), whether it is the machine's or
// the database's.
func clock(t *testing.T, m Maker) {
	t.Helper()
	m.needsStep(t)
	cases := map[string]func(k *kit){
		"a stop delivers what is due and holds what would end": aStop,
		"what is held ends when the hold does":                 theHoldEnds,
		"a person runs what is held":                           runsWhatIsHeld,
		"a person reschedules what is held":                    reschedulesWhatIsHeld,
		"another machine's time ends the hold, or prolongs it": evidence,
		"people are shown the time of a clock that is right":   showsTheRightTime,
		"a decision keeps its version":                         aDecisionKeepsItsVersion,
		"ids are remembered for as long as a sender tries":     remembersAsLong,
		"a token outlives a clock that jumps ahead": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "visitor", "read", day, hash(1), ""))
			k.step(40 * day)
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(2), "")) // deletes tokens that have ended
			k.step(-40 * day)
			k.token(1, "visitor", "read")
		},
	}
	for name, by := range map[string]time.Duration{
		"10 s ahead": 10 * time.Second, "10 s behind": -10 * time.Second, "2 d ahead": 2 * day, "2 d behind": -2 * day,
		"8 d ahead": 8 * day, "40 d ahead": 40 * day, "400 d behind": -400 * day,
	} {
		set, stopped := (*kit).step, (*kit).stopped
		for way, step := range map[string][2]func(k *kit, d time.Duration){
			"while it runs": {set, set}, "over a restart": {stopped, set}, "over two restarts": {stopped, stopped}, "until a restart": {set, stopped},
		} {
			cases[name+" "+way] = func(k *kit) { wrongFor4s(k, by, step[0], step[1]) }
		}
	}
	m.run(t, cases)
}

const day = 24 * time.Hour

// step sets the clock without letting time pass.
func (k *kit) step(d time.Duration) { k.t.Helper(); k.m.Step(k.t, k.Full, d) }

// stopped sets the clock while the store is closed.
func (k *kit) stopped(d time.Duration) {
	k.t.Helper()
	if err := k.Close(); err != nil {
		k.t.Fatal(err)
	}
	k.step(d)
	k.reopen()
}

// upkeep counts what a node does regularly.
type upkeep struct{ expired, purged, swept int }

func (k *kit) upkeep() (u upkeep) {
	k.t.Helper()
	u.expired = k.expire()
	u.purged = k.purge(holdfast.Retention{Delivered: day, Expired: day, Discarded: day, Parked: day}) + k.forget(day)
	u.swept = k.sweepInbox()
	return u
}

// look does what a node does in a second, and fails if anything ended. On a slow machine, messages
// with a TTL of seconds may have expired.
func (k *kit) look(slow func() bool) {
	k.t.Helper()
	u := k.upkeep()
	if slow() {
		u.expired = 0
	}
	if u != (upkeep{}) {
		k.t.Errorf("ended by a wrong clock: %+v", u)
	}
	for _, c := range k.claimOf("live", 10) {
		if c.Message.Attempt.FirstAgo > time.Hour {
			k.t.Errorf("%s says that it was first tried %s ago", c.Message.ID, c.Message.Attempt.FirstAgo)
		}
		k.wins(c, failed(time.Hour))
	}
	k.pass(time.Second)
}

// wrongFor4s makes a clock wrong and corrects it after 4 s.
func wrongFor4s(k *kit, by time.Duration, wrong, right func(k *kit, d time.Duration)) {
	const short = 13 * time.Second // over if the clock is 10 s ahead
	k.put(
		holdfast.Message{ID: "short", Destination: "down", TTL: short},
		holdfast.Message{ID: "long", Destination: "down", TTL: day},
		holdfast.Message{ID: "tried", Destination: "live"}, holdfast.Message{ID: "tried-ends", Destination: "live", TTL: day},
		holdfast.Message{ID: "delivered"})
	k.wins(k.one("delivered"), delivered())
	k.park(holdfast.Message{ID: "parked", TTL: day})
	k.put(holdfast.Message{ID: "last", Destination: "last"})
	k.winAll(k.claimOf("live", 10), failed(time.Minute))
	k.record(arrived("known"), "{}")
	k.record(arrived("newest"), "{}")
	k.ingest(note("note", "plant-1", "mail"))
	k.wins(k.oneOf("mail"), delivered())
	began := time.Now()
	slow := func() bool { return k.m.Run == nil && time.Since(began) > 5*time.Second }

	wrong(k, by)
	for range 4 {
		k.look(slow)
	}
	right(k, -by)
	k.look(slow)
	k.reopen() // no decision is lost
	k.look(slow)
	late := slow()
	if late {
		k.t.Log("too slow to tell what ends by 10 s")
	} else {
		k.is("short", holdfast.Pending)
	}
	for id, want := range map[holdfast.ID]holdfast.State{
		"long": holdfast.Pending, "tried": holdfast.Pending, "tried-ends": holdfast.Pending, "parked": holdfast.Parked, "delivered": holdfast.Delivered,
	} {
		k.is(id, want)
	}
	if known, r := k.known(arrived("known")); !known || r.Err != nil {
		k.t.Errorf("the id of the inbox is known: %t, %v", known, r.Err)
	}

	// Everything goes on at once.
	k.put(holdfast.Message{ID: "new", Destination: "down", TTL: 20 * time.Second})
	k.pass(21 * time.Second)
	if n := k.expire(); n != 2 && (n != 1 || !late) {
		k.t.Errorf("%d expired, want short and new", n)
	}
	equal(k, "what can be delivered", sorted(idsOf(k.claimOf("down", 10))), []holdfast.ID{"long"})
	k.pass(day + time.Hour)
	u := k.upkeep()
	if u.expired != 2 { // "long" is in hand
		k.t.Errorf("%d expired after their time, want tried and parked", u.expired)
	}
	if u.purged < 4 { // delivered, short, the note and its message; the newest row may stay
		k.t.Errorf("%d purged after a day", u.purged)
	}
	k.pass(week)
	if u := k.upkeep(); u.swept < 1 { // the newest may stay
		k.t.Error("no id is forgotten after its time")
	}
}

func aStop(k *kit) {
	k.put(holdfast.Message{ID: "ends", TTL: day}, holdfast.Message{ID: "stays"}, holdfast.Message{ID: "later", TTL: 3 * day}, holdfast.Message{ID: "delayed", Delay: day})
	k.put(holdfast.Message{ID: "parked", Destination: "b", TTL: day})
	k.wins(k.claimOf("b", 1)[0], parked())
	k.stopped(2*day + time.Hour)
	claims := k.claim(10)
	equal(k, "claims", sorted(idsOf(claims)), []holdfast.ID{"delayed", "later", "stays"})
	k.winAll(claims, delivered())
	if n := k.expire(); n != 0 {
		k.t.Errorf("%d expired at once", n)
	}
	k.nothing()
	k.is("ends", holdfast.Pending)
	k.is("parked", holdfast.Parked)
	d := k.Doubt()
	if d.Claimed < 2*day || d.Claimed > 2*day+2*time.Hour || d.Left <= 23*time.Hour || d.Held != 2 {
		k.t.Errorf("doubt %+v", d)
	}
	for _, r := range k.all(holdfast.Query{}) {
		held := map[holdfast.ID]bool{"ends": true, "parked": true}[r.Message.ID]
		if held != !r.HeldUntil.IsZero() {
			k.t.Errorf("%s is held until %s", r.Message.ID, r.HeldUntil)
		} else if held {
			k.within(string(r.Message.ID)+" is held for", r.HeldUntil.Sub(k.clock()), day)
		}
	}
	k.listsHeld()
	k.requeue("parked") // a person decides
	if got := k.claimOf("b", 1); len(got) != 1 {
		k.t.Error("what a person has retried is not delivered")
	}
	k.reopen()
	k.nothing()
	k.is("ends", holdfast.Pending)
}

// listsHeld lists what is held, with every filter and page size: only ends and parked, and nothing
// else.
func (k *kit) listsHeld() {
	k.t.Helper()
	for name, c := range map[string]struct {
		q    holdfast.Query
		want []holdfast.ID
	}{
		"all":                 {holdfast.Query{}, []holdfast.ID{"ends", "parked"}},
		"page by page":        {holdfast.Query{Limit: 1}, []holdfast.ID{"ends", "parked"}},
		"what waits":          {holdfast.Query{States: []holdfast.State{holdfast.Pending}}, []holdfast.ID{"ends"}},
		"what is parked":      {holdfast.Query{States: []holdfast.State{holdfast.Parked, holdfast.Delivered}}, []holdfast.ID{"parked"}},
		"of a destination":    {holdfast.Query{Destination: "b", Limit: 1}, []holdfast.ID{"parked"}},
		"of another":          {holdfast.Query{Destination: "a"}, []holdfast.ID{"ends"}},
		"of none that is":     {holdfast.Query{Destination: "unknown"}, nil},
		"what cannot be held": {holdfast.Query{States: []holdfast.State{holdfast.Delivered}}, nil},
	} {
		c.q.Held = true
		equal(k, "held, "+name, sorted(recordIDs(k.all(c.q))), c.want)
	}
	for _, after := range []string{"x", "1", k.first(holdfast.Query{Limit: 1}).Next} {
		if _, err := k.List(k.ctx(), holdfast.Query{Held: true, After: after}); !errors.Is(err, holdfast.ErrInvalid) {
			k.t.Errorf("after %q: got %v, want ErrInvalid", after, err)
		}
	}
}

func (k *kit) first(q holdfast.Query) holdfast.Page {
	k.t.Helper()
	p, err := k.List(k.ctx(), q)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// within fails unless d equals want, to within some minutes.
func (k *kit) within(what string, d, want time.Duration) {
	k.t.Helper()
	if (d - want).Abs() > 10*time.Minute {
		k.t.Errorf("%s: %s, want %s", what, d, want)
	}
}

// last returns the last entry in a message's history.
func (k *kit) last(id holdfast.ID) holdfast.Entry {
	k.t.Helper()
	history := k.get(id).History
	return history[len(history)-1]
}

// runsWhatIsHeld decides that messages are delivered whose TTL is over by a doubted clock. Their
// TTL begins anew (F1-51).
func runsWhatIsHeld(k *kit) {
	k.put(holdfast.Message{ID: "first", TTL: day}, holdfast.Message{ID: "aside", TTL: day}, holdfast.Message{ID: "lives", TTL: 4 * day})
	k.put(holdfast.Message{ID: "again", Destination: "b", TTL: 2 * day})
	k.wins(k.claimOf("b", 1)[0], parked())
	if _, err := k.Requeue(k.ctx(), "again", holdfast.Requeue{TTL: day}); err != nil {
		k.t.Fatal(err)
	}
	k.stopped(2*day + 12*time.Hour)
	k.reschedule("first", 0) // before a claim has met it
	if got := idsOf(k.claim(10)); len(got) != 2 {
		k.t.Fatalf("claimed %v, want first and lives", got)
	}
	k.reopen()
	k.is("aside", holdfast.Pending)
	for id, ttl := range map[holdfast.ID]time.Duration{"aside": day, "again": 2 * day} {
		k.reschedule(id, 0)
		r := k.is(id, holdfast.Pending)
		k.within(string(id)+" ends after", r.Expires.Sub(k.clock()), ttl)
		if e := k.last(id); e.Kind != holdfast.Rescheduled || e.Code != holdfast.CodeRenewed || e.Actor != "anna" {
			k.t.Errorf("the history of %s ends with %+v", id, e)
		}
	}
	k.reschedule("lives", 0)
	if e := k.last("lives"); e.Code != "" {
		k.t.Errorf("the TTL of a message that lives began anew: %+v", e)
	}
	equal(k, "expired", k.expire(), 0)
	k.step(-2*day - 12*time.Hour) // the clock was wrong: nothing new is affected
	equal(k, "expired", k.expire(), 0)
	k.reopen()
	c := k.claimOf("b", 1)[0]
	k.within("again ends after", c.Expires, 2*day)
	k.wins(c, failed(time.Hour))
	for _, c := range k.claim(10) {
		if c.Message.ID != "lives" {
			k.within(string(c.Message.ID)+" ends after", c.Expires, day)
		}
		k.wins(c, failed(2*day))
	}
	k.pass(day + time.Hour)
	equal(k, "expired after their time", k.expire(), 2)
	k.is("lives", holdfast.Pending)
	k.is("again", holdfast.Pending)
	k.pass(day)
	equal(k, "expired after its time", k.expire(), 1)
	k.is("again", holdfast.Expired)
}

// reschedulesWhatIsHeld postpones it by more than its TTL, which then begins anew.
func reschedulesWhatIsHeld(k *kit) {
	k.put(holdfast.Message{ID: "head", OrderingKey: "key"}, holdfast.Message{ID: "behind", OrderingKey: "key", TTL: day}, holdfast.Message{ID: "m", TTL: day})
	k.stopped(2 * day)
	head := k.next("head")
	k.wins(head, failed(0))
	k.next("head")
	r := k.reschedule("m", 3*day)
	k.within("due in", r.Due.Sub(k.clock()), 3*day)
	k.within("ends after", r.Expires.Sub(r.Due), day)
	k.reschedule("behind", 3*day)
	k.pass(3*day - time.Hour) // the hold is over, and everything is believed
	equal(k, "expired", k.expire(), 0)
	k.nothing()
	k.pass(2 * time.Hour)
	k.wins(k.one("m"), failed(3*day))
	if _, err := k.Reschedule(k.ctx(), "m", holdfast.Reschedule{In: 2 * day}); !errors.Is(err, holdfast.ErrInvalid) {
		k.t.Errorf("past its TTL: got %v, want ErrInvalid", err)
	}
	k.pass(day)
	equal(k, "expired after their time", k.expire(), 2)
}

func theHoldEnds(k *kit) {
	k.put(holdfast.Message{ID: "m", TTL: 3 * day}, holdfast.Message{ID: "delivered", Destination: "b"}, holdfast.Message{ID: "last", Destination: "b"})
	k.wins(k.claimOf("b", 1)[0], delivered())
	k.stopped(4 * day)
	for range 23 {
		k.nothing()
		if n := k.expire() + k.purge(holdfast.Retention{Delivered: 3 * day}); n != 0 {
			k.t.Fatalf("%d ended within the hold", n)
		}
		k.pass(time.Hour)
	}
	k.pass(2 * time.Hour)
	if n := k.expire(); n != 1 {
		k.t.Errorf("%d expired after the hold, want 1", n)
	}
	if n := k.purge(holdfast.Retention{Delivered: 3 * day}); n != 1 {
		k.t.Errorf("%d purged after the hold, want 1", n)
	}
	equal(k, "doubt", k.Doubt(), holdfast.Doubt{})
	equal(k, "held, and the clock is believed", len(k.all(holdfast.Query{Held: true})), 0)
}

func evidence(k *kit) {
	k.put(holdfast.Message{ID: "m", TTL: 3 * day})
	k.stopped(4 * day)
	k.nothing()
	k.pass(20 * time.Hour)
	k.hear(-4 * day) // it says that the clock is wrong
	k.pass(20 * time.Hour)
	if n := k.expire(); n != 0 {
		k.t.Errorf("%d expired though the clock is said to be wrong", n)
	}
	k.hear(time.Minute)
	if n := k.expire(); n != 1 {
		k.t.Errorf("%d expired after the clock was confirmed, want 1", n)
	}
	equal(k, "doubt", k.Doubt(), holdfast.Doubt{})
}

// showsTheRightTime hides from people the time that never was: instants before, within and after it
// are shown by the corrected clock (F1-47).
func showsTheRightTime(k *kit) {
	k.put(holdfast.Message{ID: "old", TTL: 3 * day}, holdfast.Message{ID: "delayed", Delay: 3 * day, Destination: "b"})
	k.put(holdfast.Message{ID: "parked", TTL: day, Destination: "c"})
	k.wins(k.claimOf("c", 1)[0], parked())
	k.ingest(note("note", "plant-1", "mail"))
	began := k.clock()
	k.stopped(2 * day)
	k.put(holdfast.Message{ID: "within", Destination: "b"})
	k.pass(time.Hour)
	k.stopped(-2 * day)
	k.put(holdfast.Message{ID: "new", TTL: day, Destination: "b"})
	look := func(when string, passed time.Duration) {
		k.t.Helper()
		now := k.clock()
		k.within(when+": the clock has gone on by", now.Sub(began), time.Hour+passed)
		for id, ago := range map[holdfast.ID]time.Duration{"old": time.Hour, "parked": time.Hour, "within": time.Hour, "new": 0} {
			r := k.get(id)
			k.within(fmt.Sprint(when, ": ", id, " was accepted before"), now.Sub(r.Created), ago+passed)
			k.within(fmt.Sprint(when, ": ", id, " was accepted, by its history, before"), now.Sub(r.History[0].At), ago+passed)
		}
		k.within(when+": what the leap has brought nearer is due in", k.get("delayed").Due.Sub(now), 23*time.Hour-passed)
		k.within(when+": old ends in", k.get("old").Expires.Sub(now), 3*day-time.Hour-passed)
		k.within(when+": new ends in", k.get("new").Expires.Sub(now), day-passed)
		k.within(when+": parked was parked before", now.Sub(k.get("parked").Settled), time.Hour+passed)
		list, err := k.Notification(k.ctx(), "plant-1", "note")
		if err != nil || len(list) != 1 {
			k.t.Fatalf("%d notifications, %v", len(list), err)
		}
		k.within(when+": the note was accepted before", now.Sub(list[0].Created), time.Hour+passed)
	}
	look("put right", 0)
	k.reopen()
	look("after a restart", 0)
	k.pass(2 * time.Hour)
	k.reopen()
	look("later", 2*time.Hour)
}

// The time of a decision about a destination follows the clock. By its version a dispatcher sees
// that the decision is not new.
func aDecisionKeepsItsVersion(k *kit) {
	versions := func() []int64 {
		k.t.Helper()
		got, err := k.LaneDecisions(k.ctx())
		if err != nil || len(got) != 1 {
			k.t.Fatalf("decisions are %+v, %v", got, err)
		}
		return []int64{got[0].Version}
	}
	resume := func() {
		k.t.Helper()
		if err := k.ResumeLane(k.ctx(), "a", "anna"); err != nil {
			k.t.Fatal(err)
		}
	}
	resume()
	first := versions()
	for _, d := range []time.Duration{2 * day, -4 * day, 2 * day} {
		k.step(d)
		k.pass(time.Minute)
		equal(k, "version", versions(), first)
	}
	resume()
	if next := versions(); next[0] <= first[0] {
		k.t.Errorf("the next decision has version %d, after %d", next[0], first[0])
	}
}

// hear tells the store of a clock that is ahead of its own by the given time.
func (k *kit) hear(ahead time.Duration) {
	k.t.Helper()
	k.HearTime(k.clock().Add(ahead))
}

// clock returns the time of the clock that Step sets.
func (k *kit) clock() time.Time {
	k.t.Helper()
	if k.m.Clock == nil {
		return k.now()
	}
	return k.m.Clock(k.t, k.Full)
}

// remembersAsLong: a clock that was wrong and was put right takes nothing from a memory that is
// longer than the retention (OI-10, F1-50).
func remembersAsLong(k *kit) {
	long := arrived("long")
	long.Attempt.RetryFor = 4 * week
	k.record(long, "{}")
	k.record(arrived("newest"), "{}")
	k.pass(week + day)
	k.sweepInbox() // the others are over
	k.stopped(40 * day)
	equal(k, "forgotten by a wrong clock", k.sweepInbox(), 0)
	k.step(-40 * day)
	k.pass(time.Second)
	equal(k, "forgotten, and the clock is right again", k.sweepInbox(), 0)
	if known, r := k.known(long); !known || r.Err != nil {
		k.t.Errorf("the id is known: %t, %v", known, r.Err)
	}
	k.record(arrived("newer"), "{}")
	k.pass(4 * week)
	if n := k.sweepInbox(); n < 1 { // the newest may stay
		k.t.Error("it is never forgotten")
	}
}
