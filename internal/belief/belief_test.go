package belief_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/belief"
)

const day = int64(86_400_000_000)

// F1-51: a leap holds what would end because of it, until it is denied, believed
// or the time is seen to pass.
func TestJudge(t *testing.T) {
	t.Parallel()
	g := belief.New(0)
	const set = 100 * day
	end, now := set+day, set+2*day+day/2
	judge := func(what string, at int64, want belief.Verdict) {
		t.Helper()
		if got := g.Judge(at, end, day); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	judge("without a leap, early", set+day-1, belief.Lives)
	judge("without a leap", now, belief.Over)
	g.Leap(now, 2*day, false) // half a day was seen to pass
	judge("doubted", now, belief.Held)
	judge("later", now+day/2-1, belief.Held)
	judge("its time was seen to pass", now+day/2, belief.Over)
	if got := g.Deny(2*day + 5); got != 2*day {
		t.Errorf("%d denied", got)
	}
	judge("denied", now+day/2-1, belief.Lives)
	judge("denied and over", now+day/2, belief.Over)
	if got := g.Judge(now+day, now+day, day-1); got != belief.Over {
		t.Errorf("what was set after the leap: %d", got)
	}
	if got := g.Age(now, set); got != day/2 {
		t.Errorf("age %d", got)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	g := belief.New(day)
	now := 500 * day
	g.Leap(now, 2*day, false)
	if got := g.Settle(now + day - 1); got != 0 {
		t.Errorf("%d believed within the hold", got)
	}
	g.Contradict(now + day/2)
	if got := g.Settle(now + day); got != 0 {
		t.Errorf("%d believed though others say that it is wrong", got)
	}
	if doubt, left := g.Doubt(now + day); doubt != 2*day || left != day/2 {
		t.Errorf("doubt %d for %d", doubt, left)
	}
	if got := g.Settle(now + day + day/2); got != 2*day {
		t.Errorf("%d believed after the hold", got)
	}
	if got := g.Text(); got != "[]" {
		t.Errorf("left: %s", got)
	}
}

// Whatever leaps there were, and however many are led into one: an age is never
// more than the time that was seen to pass, it shrinks the younger an instant is,
// Before is its inverse, and a text holds all.
func TestAgesOfManyLeaps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := belief.New(0)
		type instant struct{ at, seen int64 }
		now := instant{at: 1000 * day}
		var all []instant
		for range 60 {
			all = append(all, now)
			switch step := r.Int64N(3 * day); r.IntN(3) {
			case 0:
				now.at += step
				g.Leap(now.at, step, r.IntN(2) == 0)
			case 1:
				g.Deny(step)
			}
			step := r.Int64N(day)
			now.at, now.seen = now.at+step, now.seen+step
		}
		again := belief.New(0)
		if err := again.Load(g.Text()); err != nil || again.Text() != g.Text() {
			t.Fatalf("seed %d: %v, %s read as %s", seed, err, g.Text(), again.Text())
		}
		last := int64(1 << 62)
		for _, i := range all {
			age := g.Age(now.at, i.at)
			if seen := now.seen - i.seen; age > seen || age > last {
				t.Fatalf("seed %d: age %d, seen %d, of the one before %d", seed, age, seen, last)
			}
			last = age
			if at := g.Before(now.at, age); at < i.at || g.Age(now.at, at+1) >= age && age > 0 {
				t.Fatalf("seed %d: instant %d has age %d, before that is %d", seed, i.at, age, at)
			}
			if got := g.Judge(now.at, i.at+age, age); got != belief.Over {
				t.Fatalf("seed %d: at its age it is %d", seed, got)
			}
		}
		if !slices.IsSortedFunc(all, func(a, b instant) int { return int(a.at - b.at) }) {
			t.Fatal("the instants are not in order")
		}
	}
}

// F1-51: that the hold begins anew changes no verdict, here or in what is read of another
// node; what is denied, believed or leapt does.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	g, other := belief.New(0), belief.New(0)
	verdicts := func(what string, change func(), want bool) {
		t.Helper()
		before, news := g.Verdicts(), g.News()
		change()
		if g.Verdicts() != before != want || g.News() == news {
			t.Errorf("%s: verdicts %d, were %d; news %d, were %d", what, g.Verdicts(), before, g.News(), news)
		}
	}
	load := func() {
		if err := g.Load(other.Text()); err != nil {
			t.Error(err)
		}
	}
	verdicts("a leap", func() { g.Leap(2e12, 1e12, false) }, true)
	verdicts("a contradiction", func() { g.Contradict(2e12 + 5) }, false)
	other.Leap(2e12, 1e12, false)
	verdicts("another since", load, false)
	verdicts("a part that never was", func() { g.Deny(4e11) }, true)
	verdicts("another node's leaps", load, true)
	verdicts("a confirmation", func() { g.Confirm() }, true)
}
