package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/link/sites"
)

// sitesClock tests that a wrong clock neither ends a site's access nor prolongs it (F1-50):
// enrolment tokens and former credentials.
func sitesClock(t *testing.T, m Maker) {
	t.Helper()
	m.needsStep(t)
	cases := map[string]func(k *kit){
		"a stop holds what would end":          aStopOfSites,
		"what is held ends when the hold does": sitesAfterTheHold,
		"what is set after a stop has its own time": func(k *kit) {
			k.stopped(2 * day)
			s := standing(k)
			k.pass(23 * time.Hour)
			s.lets(9)
			k.pass(2 * time.Hour)
			s.over()
		},
	}
	for name, by := range map[string]time.Duration{"2 d ahead": 2 * day, "2 d behind": -2 * day, "40 d ahead": 40 * day} {
		for way, step := range map[string][2]func(k *kit, d time.Duration){
			"while it runs": {(*kit).step, (*kit).step}, "over a restart": {(*kit).stopped, (*kit).step},
			"over two restarts": {(*kit).stopped, (*kit).stopped}, "until a restart": {(*kit).step, (*kit).stopped},
		} {
			cases[name+" "+way] = func(k *kit) { sitesWrongFor4s(k, by, step[0], step[1]) }
		}
	}
	m.run(t, cases)
}

// standing makes a site with a former credential, 9, and one with an unspent token, 5.
func standing(k *kit) *siteKit {
	k.t.Helper()
	s := &siteKit{k}
	s.enroll("plant-7", 1, 9)
	s.ok(s.RotateSite(k.ctx(), "plant-7", hash(2), false, ""))
	s.is("plant-7")(s.EnrollSite(k.ctx(), hash(2), hash(8)))
	s.ok(s.AddSite(k.ctx(), "plant-8", hash(5), ""))
	return s
}

// lets fails unless a credential of plant-7 is accepted.
func (k *siteKit) lets(credential int) {
	k.t.Helper()
	k.is("plant-7")(k.FindSite(k.ctx(), hash(credential)))
}

// left returns how long the token of plant-8 is still valid.
func (k *siteKit) left() time.Duration {
	k.t.Helper()
	until := k.site("plant-8").TokenUntil
	if until.IsZero() {
		k.t.Fatal("the token is over")
	}
	return until.Sub(k.now())
}

func (k *siteKit) doubted() {
	k.t.Helper()
	if name, err := k.EnrollSite(k.ctx(), hash(5), hash(6)); !errors.Is(err, sites.ErrDoubted) {
		k.t.Errorf("got %q, %v; want that the clock is doubted", name, err)
	}
	k.none(k.FindSite(k.ctx(), hash(9)))
	k.lets(8)
	if k.site("plant-8").TokenUntil.IsZero() {
		k.t.Error("the token is shown as over")
	}
}

func (k *siteKit) over() {
	k.t.Helper()
	k.none(k.EnrollSite(k.ctx(), hash(5), hash(6)))
	k.none(k.FindSite(k.ctx(), hash(9)))
	k.lets(8)
	if until := k.site("plant-8").TokenUntil; !until.IsZero() {
		k.t.Errorf("the token is shown as good until %s", until)
	}
}

func sitesWrongFor4s(k *kit, by time.Duration, wrong, right func(k *kit, d time.Duration)) {
	s := standing(k)
	wrong(k, by)
	for range 4 {
		s.lets(8)
		s.left()
		k.pass(time.Second)
	}
	right(k, -by)
	k.reopen() // no decision is lost
	s.lets(9)
	if k.m.Clock == nil || k.m.Run != nil { // times are shown by the corrected clock
		if left := s.left(); left < 23*time.Hour || left > 25*time.Hour {
			k.t.Errorf("the token is shown as good for %s more", left)
		}
	}
	k.pass(23 * time.Hour)
	s.lets(9)
	k.pass(2 * time.Hour)
	s.over()
	s.ok(s.RotateSite(k.ctx(), "plant-8", hash(4), false, ""))
	s.is("plant-8")(s.EnrollSite(k.ctx(), hash(4), hash(6)))
}

func aStopOfSites(k *kit) {
	s := standing(k)
	k.stopped(2*day + time.Hour)
	s.doubted()
	s.ok(s.AddSite(k.ctx(), "plant-9", hash(3), "")) // what is made now is accepted
	s.is("plant-9")(s.EnrollSite(k.ctx(), hash(3), hash(7)))
	k.reopen()
	s.doubted()
	k.hear(time.Minute) // another machine has the same time
	s.over()
}

func sitesAfterTheHold(k *kit) {
	s := standing(k)
	k.stopped(40 * day)
	k.pass(23 * time.Hour)
	s.doubted()
	k.pass(2 * time.Hour)
	s.over()
}
