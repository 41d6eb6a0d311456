package config

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Policy is the shape of the waits between retries.
type Policy string

// The retry policies.
const (
	Exponential Policy = "exponential" // min(Cap, Base · Factorⁿ), n from 0
	Fixed       Policy = "fixed"       // Interval
	List        Policy = "list"        // Waits, the last of which repeats
)

// Retry says when and how often a failed message is tried again. Fields that
// belong to another policy are zero.
type Retry struct {
	Policy   Policy
	Base     time.Duration
	Cap      time.Duration
	Factor   float64
	Interval time.Duration
	Waits    []time.Duration
	Jitter   time.Duration // each wait is longer by up to this much
	Retries  int           // after the first attempt; Unlimited: no number ends them
}

// FirstWait returns the wait before the first retry, without its jitter.
func (r Retry) FirstWait() time.Duration {
	switch r.Policy {
	case Exponential:
		return min(r.Base, r.Cap)
	case Fixed:
		return r.Interval
	case List:
		if len(r.Waits) > 0 {
			return r.Waits[0]
		}
	}
	return 0
}

const (
	maxFactor  = 100
	maxRetries = 1_000_000
	maxWaits   = 100
)

// retryKeys are those of all policies; the policy decides which of them have a
// meaning, and their defaults.
func retryKeys() section[Retry] {
	of := func(p Policy) func(*Config, *Retry) bool {
		return func(_ *Config, r *Retry) bool { return r.Policy == p }
	}
	e, f := DefaultRetry(Exponential), DefaultRetry(Fixed)
	wait := period(time.Millisecond, maxTime)
	return section[Retry]{
		key("policy", func(r *Retry) *Policy { return &r.Policy }, word(Exponential, Exponential, Fixed, List), e.Policy,
			"Shape of the waits; it decides which of the other keys are allowed."),
		key("base", func(r *Retry) *time.Duration { return &r.Base }, wait, e.Base, "`exponential`: the first wait.").only(of(Exponential)),
		key("cap", func(r *Retry) *time.Duration { return &r.Cap }, wait, e.Cap, "`exponential`: the longest wait; not shorter than `base`.").only(of(Exponential)),
		key("factor", func(r *Retry) *float64 { return &r.Factor }, factor(), e.Factor, "`exponential`: what each wait is multiplied by to get the next.").only(of(Exponential)),
		key("interval", func(r *Retry) *time.Duration { return &r.Interval }, wait, f.Interval, "`fixed`: every wait.").only(of(Fixed)),
		waitsKey().only(of(List)),
		key("jitter", func(r *Retry) *time.Duration { return &r.Jitter }, period(0, maxTime), e.Jitter, "Each wait becomes longer by a random time of up to this.").
			tells("", "`500ms`; `0s` for `fixed` and `list`"),
		retriesKey(),
	}
}

func retryKey() entry[Destination] {
	keys := retryKeys()
	e := group("retry", func(d *Destination) *Retry { return &d.Retry }, keys, yaml.FlowStyle)
	e.reset = func(d *Destination) { d.Retry = DefaultRetry(Exponential) }
	e.read = func(l *loader, d *Destination) decode {
		return func(path string, n *yaml.Node) {
			// The policy decides the defaults of the other keys, and may stand below them.
			d.Retry = DefaultRetry(policyOf(n, d.Retry.Policy))
			l.object(path, n, keys.decoders(l, &d.Retry))
			if !l.given(join(path, "retries")) && d.Retry.Policy == List {
				d.Retry.Retries = len(d.Retry.Waits)
			}
		}
	}
	e.check = func(r *report, path string, d *Destination) {
		if slices.Contains([]Policy{Exponential, Fixed, List}, d.Retry.Policy) { // else nobody knows which keys belong to it
			r.checkRetry(path, d.Retry)
		}
		keys.check(r, path, &d.Retry)
	}
	return e
}

func factor() form[float64] {
	return form[float64]{
		read: func(l *loader, to *float64) decode { return l.number(to, "2") },
		show: func(f float64) *yaml.Node { return plain("", formatFactor(f)) },
		check: func(r *report, path string, f float64) {
			if !(f >= 1 && f <= maxFactor) { // so that NaN is refused
				r.fault(path, formatFactor(f), problem{"is out of bounds", "write a number from 1 (equal waits) to " + strconv.Itoa(maxFactor)})
			}
		},
		values: "`1` to `" + strconv.Itoa(maxFactor) + "`",
		schema: schema{"type": "number", "minimum": 1, "maximum": maxFactor},
	}
}

func waitsKey() entry[Retry] {
	return entry[Retry]{
		name: "waits",
		read: func(l *loader, r *Retry) decode {
			return func(path string, n *yaml.Node) { r.Waits = l.waits(path, n) }
		},
		show: func(_ printer, r *Retry) *yaml.Node {
			n := listOf(r.Waits, FormatDuration)
			return n
		},
		check:  func(r *report, path string, t *Retry) { r.checkWaits(path, t.Waits) },
		told:   []row{{"", "`list`: the waits one after the other; the last one repeats.", "1 to " + strconv.Itoa(maxWaits) + " times from `0s` to `3650d`", "must be set"}},
		schema: schema{"type": "array", "minItems": 1, "maxItems": maxWaits, "items": schema{"type": "string", "pattern": durationPattern}},
	}
}

// retriesKey is a number; the file's 0 is Unlimited.
func retriesKey() entry[Retry] {
	return entry[Retry]{
		name: "retries",
		read: func(l *loader, r *Retry) decode {
			return func(path string, n *yaml.Node) {
				retries := r.Retries
				l.integer(&retries, "5")(path, n)
				switch {
				case l.bad[path]:
				case retries == 0:
					r.Retries = Unlimited
				case retries < 0: // -1 must not pass for Unlimited
					l.fault(path, strconv.Itoa(retries), problem{"is negative", "write 1 or more, or 0 for no limit"})
					r.Retries = Unlimited
				default:
					r.Retries = retries
				}
			}
		},
		show: func(_ printer, r *Retry) *yaml.Node { return plain("!!int", strconv.Itoa(max(r.Retries, 0))) },
		told: []row{{
			"", "Retries after the first attempt. `0` means without limit, never \"do not retry\".",
			"`0` to `" + strconv.Itoa(maxRetries) + "`; for `list` not fewer than its waits", "`5`; `50` for `fixed`; the number of waits for `list`",
		}},
		schema: schema{"type": "integer", "minimum": 0, "maximum": maxRetries},
	}
}

// policyOf is the policy that a mapping names, wherever in it that stands.
func policyOf(n *yaml.Node, usual Policy) Policy {
	if v := valueOf(n, "policy"); v != nil {
		return Policy(v.Value)
	}
	return usual
}
