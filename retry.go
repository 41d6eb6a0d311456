package holdfast

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Unlimited in RetryPolicy.Attempts means that only a TTL ends the tries.
const Unlimited = -1

// RetryPolicy says when a failed message is tried again. The wait before
// retry n, from 0, is
//
//	min(Max, First · Factorⁿ) + a random part of up to Jitter
//
// or List[n], whose last entry repeats. Jitter only makes a wait longer. The zero policy
// means DefaultRetry, and so does each zero field of a policy in use.
type RetryPolicy struct {
	First  time.Duration   `json:"first,omitempty"`
	Max    time.Duration   `json:"max,omitempty"`
	Jitter time.Duration   `json:"jitter,omitempty"` // negative: no jitter
	Factor float64         `json:"factor,omitempty"` // 1: a fixed interval
	List   []time.Duration `json:"list,omitempty"`   // instead of the formula
	// Attempts is the budget: the number of charged failures that parks the message. The
	// first attempt counts. Unlimited: no number parks it. (The sources count retries; they
	// are converted where they are read: SF-29.)
	Attempts int `json:"attempts,omitempty"`
}

// DefaultRetry returns the policy between services: waits of 2, 4, 8, 16 and 32 s, each
// with up to 500 ms on top, and six attempts in all (OI-05).
func DefaultRetry() RetryPolicy {
	return RetryPolicy{First: 2 * time.Second, Max: 5 * time.Minute, Jitter: 500 * time.Millisecond, Factor: 2, Attempts: 6}
}

// Over returns p with its zero fields filled from base.
func (p RetryPolicy) Over(base RetryPolicy) RetryPolicy {
	if p.First == 0 && len(p.List) == 0 {
		p.First, p.List = base.First, base.List
	}
	if p.Max == 0 {
		p.Max = base.Max
		if p.Max > 0 {
			p.Max = max(p.Max, p.First) // p.First is set on purpose, so it wins over base.Max
		}
	}
	if p.Jitter == 0 {
		p.Jitter = base.Jitter
	}
	if p.Factor == 0 {
		p.Factor = base.Factor
	}
	if p.Attempts == 0 {
		p.Attempts = base.Attempts
	}
	return p
}

// Wait returns the wait before retry n, counted from 0, without jitter.
func (p RetryPolicy) Wait(n int) time.Duration {
	n = max(n, 0)
	if len(p.List) > 0 {
		return p.List[min(n, len(p.List)-1)]
	}
	if p.Factor == 1 || n == 0 || p.First <= 0 {
		return p.cap(p.First)
	}
	w := float64(p.First) * math.Pow(p.Factor, float64(n))
	if w > float64(math.MaxInt64/2) { // avoid oagudo's overflow: a huge wait, never a negative one
		w = float64(math.MaxInt64 / 2)
	}
	return p.cap(time.Duration(w))
}

func (p RetryPolicy) cap(w time.Duration) time.Duration {
	if p.Max > 0 && w > p.Max {
		return p.Max
	}
	return w
}

// Next returns the wait before retry n with jitter. It is at least the wait that the other
// side asked for, which counts up to a day.
func (p RetryPolicy) Next(n int, retryAfter time.Duration) time.Duration {
	w := p.Wait(n)
	if p.Jitter > 0 {
		w += rand.N(p.Jitter + 1) //nolint:gosec // spread, not secrecy
	}
	return least(w, retryAfter)
}

// least makes a wait at least as long as the other side asked for, up to a day.
func least(wait, retryAfter time.Duration) time.Duration {
	return max(wait, min(retryAfter, 24*time.Hour))
}

// Spent reports whether this number of charged failures parks a message.
func (p RetryPolicy) Spent(failures int) bool {
	return p.Attempts != Unlimited && failures >= max(p.Attempts, 1)
}

// Validate reports every fault of the policy at once.
func (p RetryPolicy) Validate() error {
	const longest = 10 * 365 * 24 * time.Hour // short enough that no sum of two overflows
	var faults []error
	bad := func(field string, value any, problem string) {
		faults = append(faults, &FieldError{"retry." + field, fmt.Sprint(value), problem})
	}
	if p.First < 0 || p.First > longest {
		bad("first", p.First, "must be from 0 to ten years")
	}
	if p.Max < 0 || p.Max > longest {
		bad("max", p.Max, "must be from 0 to ten years")
	}
	if p.Jitter > longest {
		bad("jitter", p.Jitter, "must be at most ten years")
	}
	if p.Max > 0 && p.First > p.Max {
		bad("first", p.First, fmt.Sprintf("is longer than max %s", p.Max))
	}
	if p.Factor != 0 && (p.Factor < 1 || math.IsNaN(p.Factor) || math.IsInf(p.Factor, 0)) {
		bad("factor", p.Factor, "must be 1 (a fixed interval) or more")
	}
	if p.Attempts < Unlimited {
		bad("attempts", p.Attempts, "must be positive, 0 for the default or Unlimited")
	}
	for i, w := range p.List {
		if w < 0 || w > longest {
			bad(fmt.Sprintf("list[%d]", i), w, "must be from 0 to ten years")
		}
	}
	if len(p.List) > 0 && p.First > 0 {
		bad("list", p.List, "excludes first: give a list of waits or a formula")
	}
	return errors.Join(faults...)
}

// Timetable prints when each attempt after the first happens, without jitter, in at most
// rows lines.
func (p RetryPolicy) Timetable(rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "attempt 1 at once\n")
	at := time.Duration(0)
	for n := 0; p.Attempts == Unlimited || n < p.Attempts-1; n++ {
		if n+1 >= rows {
			if p.Attempts == Unlimited {
				fmt.Fprintf(&b, "… every %s without end\n", p.Wait(n))
			} else {
				fmt.Fprintf(&b, "… %d more\n", p.Attempts-1-n)
			}
			break
		}
		at += p.Wait(n)
		fmt.Fprintf(&b, "attempt %d after %s (+%s)\n", n+2, p.Wait(n), at)
	}
	if p.Jitter > 0 {
		fmt.Fprintf(&b, "each wait up to %s longer\n", p.Jitter)
	}
	return b.String()
}
