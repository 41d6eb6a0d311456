package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// siteNames tests that each site has its own credential, that a token is accepted once, and that
// both end when they should.
func siteNames(t *testing.T, m Maker) {
	t.Helper()
	cases := map[string]func(k *siteKit){
		"a token makes a credential known, once": func(k *siteKit) {
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
			k.none(k.FindSite(k.ctx(), hash(9)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(1), hash(9)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(9)))
			k.none(k.EnrollSite(k.ctx(), hash(1), hash(8)))
			k.none(k.FindSite(k.ctx(), hash(8)))
			k.none(k.EnrollSite(k.ctx(), hash(2), hash(8)))
		},
		// The answer was lost: the site asks again with the same credential.
		"a spent token answers who spent it": func(k *siteKit) {
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
			for range 3 {
				k.is("plant-7")(k.EnrollSite(k.ctx(), hash(1), hash(9)))
				k.pass(2 * day)
			}
			first := k.site("plant-7").Enrolled
			if first.IsZero() || k.now().Sub(first) < 5*day {
				k.t.Errorf("enrolled %v, want the first time", first)
			}
			k.is("plant-7")(k.FindSite(k.ctx(), hash(9)))
		},
		"a token ends": func(k *siteKit) {
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
			if until := k.site("plant-7").TokenUntil; until.Sub(k.now()) < 23*time.Hour {
				k.t.Errorf("token until %v", until)
			}
			k.pass(day + time.Minute)
			k.none(k.EnrollSite(k.ctx(), hash(1), hash(9)))
			if until := k.site("plant-7").TokenUntil; !until.IsZero() {
				k.t.Errorf("token until %v, want none", until)
			}
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(2), false, ""))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(2), hash(9)))
		},
		"a name is taken until it is revoked": func(k *siteKit) {
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
			k.fails(k.AddSite(k.ctx(), "plant-7", hash(2), ""), holdfast.ErrConflict)
			k.none(k.EnrollSite(k.ctx(), hash(2), hash(9)))
			k.ok(k.RevokeSite(k.ctx(), "plant-7", ""))
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(3), ""))
			if s := k.site("plant-7"); !s.Revoked.IsZero() || !s.Enrolled.IsZero() {
				k.t.Errorf("got %+v, want a new site", s)
			}
			k.none(k.EnrollSite(k.ctx(), hash(1), hash(9)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(3), hash(9)))
		},
		"a rotation has both credentials good for a while": func(k *siteKit) {
			k.enroll("plant-7", 1, 9)
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(2), false, ""))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(9)))
			k.none(k.EnrollSite(k.ctx(), hash(1), hash(9)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(9)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(8)))
			k.pass(day + time.Minute)
			k.none(k.FindSite(k.ctx(), hash(9)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(8)))
		},
		// F1-16: a thief does not keep a stolen credential for a day.
		"a rotation at once ends both credentials": func(k *siteKit) {
			k.enroll("plant-7", 1, 9)
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(2), false, ""))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(3), true, ""))
			k.none(k.FindSite(k.ctx(), hash(9)))
			k.none(k.FindSite(k.ctx(), hash(8)))
			k.none(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(3), hash(7)))
			k.none(k.FindSite(k.ctx(), hash(8)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(7)))
		},
		"a token says whose it is, and is not spent by that": func(k *siteKit) {
			k.none(k.TokenSite(k.ctx(), hash(1)))
			k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
			k.is("plant-7")(k.TokenSite(k.ctx(), hash(1)))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(1), hash(9)))
			k.is("plant-7")(k.TokenSite(k.ctx(), hash(1)))
			k.none(k.TokenSite(k.ctx(), hash(9)))
			k.ok(k.RevokeSite(k.ctx(), "plant-7", ""))
			k.none(k.TokenSite(k.ctx(), hash(1)))
		},
		"a revoked site is out": func(k *siteKit) {
			k.enroll("plant-7", 1, 9)
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(2), false, ""))
			k.is("plant-7")(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.enroll("plant-8", 5, 7)
			k.ok(k.RotateSite(k.ctx(), "plant-7", hash(3), false, ""))
			for range 2 {
				k.ok(k.RevokeSite(k.ctx(), "plant-7", ""))
			}
			k.none(k.FindSite(k.ctx(), hash(9)))
			k.none(k.FindSite(k.ctx(), hash(8)))
			k.none(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.none(k.EnrollSite(k.ctx(), hash(3), hash(6)))
			k.fails(k.RotateSite(k.ctx(), "plant-7", hash(4), false, ""), holdfast.ErrNotFound)
			k.is("plant-8")(k.FindSite(k.ctx(), hash(7)))
			if s := k.site("plant-7"); s.Revoked.IsZero() {
				k.t.Errorf("got %+v, want it revoked", s)
			}
		},
		// A credential identifies a site: two sites cannot have the same.
		"a credential belongs to one site": func(k *siteKit) {
			k.enroll("plant-7", 1, 9)
			k.ok(k.AddSite(k.ctx(), "plant-8", hash(2), ""))
			k.none(k.EnrollSite(k.ctx(), hash(2), hash(9)))
			k.is("plant-8")(k.EnrollSite(k.ctx(), hash(2), hash(8)))
			k.is("plant-7")(k.FindSite(k.ctx(), hash(9)))
		},
		"nobody is nobody": func(k *siteKit) {
			k.fails(k.RotateSite(k.ctx(), "plant-7", hash(1), false, ""), holdfast.ErrNotFound)
			k.fails(k.RevokeSite(k.ctx(), "plant-7", ""), holdfast.ErrNotFound)
			k.none(k.FindSite(k.ctx(), [32]byte{}))
			if err := k.SiteSeen(k.ctx(), "plant-7", "1", sites.Report{}); err != nil {
				k.t.Error(err)
			}
			if list := k.list(); len(list) > 0 {
				k.t.Errorf("got %v", list)
			}
		},
		// F1-93, AU-08.
		"the last report of each node is kept": func(k *siteKit) {
			said := func(node, text string) {
				k.t.Helper()
				k.pass(time.Minute)
				k.ok(k.SiteSeen(k.ctx(), "plant-7", "1", sites.Report{Node: node, Text: text}))
			}
			has := func(want ...string) {
				k.t.Helper()
				var got []string
				s := k.site("plant-7")
				for i, r := range s.Reports {
					got = append(got, r.Node+" "+r.Text)
					if i == 0 && k.now().Sub(r.At) > 20*time.Second {
						k.t.Errorf("the newest is of %v; now is %v", r.At, k.now())
					}
				}
				equal(k.kit, "reports", fmt.Sprint(got), fmt.Sprint(want))
			}
			k.enroll("plant-7", 1, 9)
			k.ok(k.AddSite(k.ctx(), "plant-8", hash(5), ""))
			said("a", "1")
			said("a", "2")
			said("b", "3")
			has("b 3", "a 2")
			for i := range 10 { // a site that invents names
				said(fmt.Sprint("n", i), "4")
			}
			has("n9 4", "n8 4", "n7 4", "n6 4")
			k.reopen()
			if got := k.site("plant-7").Reports; len(got) != sites.MostReports || got[0].Node != "n9" {
				k.t.Errorf("after a restart: %+v", got)
			}
			if got := k.site("plant-8").Reports; len(got) > 0 {
				k.t.Errorf("the other site has %+v", got)
			}
			k.ok(k.RevokeSite(k.ctx(), "plant-7", ""))
			said("a", "late")
			has()
		},
		"what is known of sites stays": func(k *siteKit) {
			k.enroll("b", 1, 9)
			k.ok(k.AddSite(k.ctx(), "a", hash(2), ""))
			k.pass(time.Minute)
			k.ok(k.SiteSeen(k.ctx(), "b", "1.2.3", sites.Report{Node: "b-1", Text: `{"depth":7}`}))
			before := k.list()
			id, err := k.Incarnation(k.ctx())
			k.ok(err)
			k.reopen()
			again, err := k.Incarnation(k.ctx())
			k.ok(err)
			if id == "" || again != id {
				k.t.Errorf("incarnation %q, then %q; want it to stay", id, again)
			}
			k.is("b")(k.FindSite(k.ctx(), hash(9)))
			if len(before) != 2 || before[0].Name != "a" || before[1].Version != "1.2.3" || before[1].Seen.Before(before[1].Enrolled) || before[0].Created.IsZero() {
				k.t.Errorf("got %+v", before)
			}
			equal(k.kit, "sites", fmt.Sprint(k.list()), fmt.Sprint(before))
		},
	}
	wrapped := map[string]func(k *kit){}
	for name, test := range cases {
		wrapped[name] = func(k *kit) { test(&siteKit{k}) }
	}
	m.run(t, wrapped)
	m.meet(t, map[string]func(k *kit){
		"of two that spend a token one wins": func(k *kit) { tokenSpentAtOnce(&siteKit{k}) },
	})
}

func tokenSpentAtOnce(k *siteKit) {
	k.ok(k.AddSite(k.ctx(), "plant-7", hash(1), ""))
	var all sync.WaitGroup
	var won [8]bool
	for i := range won {
		all.Go(func() {
			_, err := k.EnrollSite(k.ctx(), hash(1), hash(100+i))
			won[i] = err == nil
		})
	}
	all.Wait()
	n := 0
	for i, ok := range won {
		_, err := k.FindSite(k.ctx(), hash(100+i))
		if found := err == nil; found != ok {
			k.t.Errorf("credential %d: enrolled %v, found %v", i, ok, found)
		}
		if ok {
			n++
		}
	}
	if n != 1 {
		k.t.Errorf("%d have spent the token, want 1", n)
	}
}

// siteKit is a store of sites under test.
type siteKit struct {
	*kit
}

func hash(n int) (h [32]byte) {
	h[0], h[31] = byte(n), byte(n>>8)+1
	return h
}

func (k *siteKit) ok(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *siteKit) none(name string, err error) {
	k.t.Helper()
	if !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Fatalf("got %q, %v; want not found", name, err)
	}
}

func (k *siteKit) is(want string) func(name string, err error) {
	return func(name string, err error) {
		k.t.Helper()
		if err != nil || name != want {
			k.t.Fatalf("got %q, %v; want %s", name, err, want)
		}
	}
}

func (k *siteKit) enroll(name string, token, credential int) {
	k.t.Helper()
	k.ok(k.AddSite(k.ctx(), name, hash(token), ""))
	k.is(name)(k.EnrollSite(k.ctx(), hash(token), hash(credential)))
}

func (k *siteKit) list() []sites.Info {
	k.t.Helper()
	list, err := k.Sites(k.ctx())
	k.ok(err)
	return list
}

func (k *siteKit) site(name string) sites.Info {
	k.t.Helper()
	for _, s := range k.list() {
		if s.Name == name {
			return s
		}
	}
	k.t.Fatalf("site %s is not listed", name)
	return sites.Info{}
}
