package config

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

const (
	maxFactor  = 100
	maxRetries = 1_000_000
	maxWaits   = 100
)

// retryKeys returns the keys of all policies. The policy decides which of them have a meaning, and their defaults.
func retryKeys() setting.Section[Retry] {
	of := func(p Policy) func(any, *Retry) bool {
		return func(_ any, r *Retry) bool { return r.Policy == p }
	}
	e, f := DefaultRetry(Exponential), DefaultRetry(Fixed)
	wait := setting.Period(time.Millisecond, setting.MaxTime)
	return setting.Section[Retry]{
		setting.Key("policy", func(r *Retry) *Policy { return &r.Policy }, setting.Word(Exponential, Exponential, Fixed, List), e.Policy,
			"Shape of the waits; it decides which of the other keys are allowed."),
		setting.Key("base", func(r *Retry) *time.Duration { return &r.Base }, wait, e.Base, "`exponential`: the first wait.").Only(of(Exponential)),
		setting.Key("cap", func(r *Retry) *time.Duration { return &r.Cap }, wait, e.Cap, "`exponential`: the longest wait; not shorter than `base`.").Only(of(Exponential)),
		setting.Key("factor", func(r *Retry) *float64 { return &r.Factor }, factor(), e.Factor, "`exponential`: what each wait is multiplied by to get the next.").Only(of(Exponential)),
		setting.Key("interval", func(r *Retry) *time.Duration { return &r.Interval }, wait, f.Interval, "`fixed`: every wait.").Only(of(Fixed)),
		waitsKey().Only(of(List)),
		setting.Key("jitter", func(r *Retry) *time.Duration { return &r.Jitter }, setting.Period(0, setting.MaxTime), e.Jitter, "Each wait becomes longer by a random time up to this.").
			Tells("", "`500ms`; `0s` for `fixed` and `list`"),
		retriesKey(),
	}
}

func retryKey() setting.Entry[Destination] {
	keys := retryKeys()
	e := setting.Group("retry", func(d *Destination) *Retry { return &d.Retry }, keys, yaml.FlowStyle)
	e.Reset = func(d *Destination) { d.Retry = DefaultRetry(Exponential) }
	e.Read = func(l *setting.Loader, d *Destination) setting.Decode {
		return func(path string, n *yaml.Node) {
			// The policy decides the defaults of the other keys, but may stand below them.
			d.Retry = DefaultRetry(policyOf(n, d.Retry.Policy))
			l.Object(path, n, keys.Decoders(l, &d.Retry))
			if !l.Given(setting.Join(path, "retries")) && d.Retry.Policy == List {
				d.Retry.Retries = len(d.Retry.Waits)
			}
		}
	}
	e.Check = func(r *setting.Report, path string, d *Destination) {
		if slices.Contains([]Policy{Exponential, Fixed, List}, d.Retry.Policy) { // else it is unknown which keys belong to it
			checkRetry(r, path, d.Retry)
		}
		keys.Check(r, path, &d.Retry)
	}
	return e
}

func factor() setting.Form[float64] {
	return setting.Form[float64]{
		Read: func(l *setting.Loader, to *float64) setting.Decode { return setting.Number(l, to, "2") },
		Show: func(f float64) *yaml.Node { return setting.Scalar("", formatFactor(f)) },
		Check: func(r *setting.Report, path string, f float64) {
			if !(f >= 1 && f <= maxFactor) { // in this form it refuses NaN
				r.Fault(path, formatFactor(f), setting.Problem{What: "is out of bounds", Fix: "write a number from 1 (equal waits) to " + strconv.Itoa(maxFactor)})
			}
		},
		Values: "`1` to `" + strconv.Itoa(maxFactor) + "`",
		Schema: setting.Schema{"type": "number", "minimum": 1, "maximum": maxFactor},
	}
}

func waitsKey() setting.Entry[Retry] {
	return setting.Entry[Retry]{
		Name: "waits",
		Read: func(l *setting.Loader, r *Retry) setting.Decode {
			return func(path string, n *yaml.Node) { r.Waits = waits(l, path, n) }
		},
		Show: func(_ setting.Printer, r *Retry) *yaml.Node {
			n := setting.ListOf(r.Waits, setting.FormatDuration)
			return n
		},
		Check:  func(r *setting.Report, path string, t *Retry) { checkWaits(r, path, t.Waits) },
		Told:   []setting.Row{{Doc: "`list`: the waits one after the other; the last one repeats.", Values: "1 to " + strconv.Itoa(maxWaits) + " times from `0s` to `3650d`", Usual: "must be set"}},
		Schema: setting.Schema{"type": "array", "minItems": 1, "maxItems": maxWaits, "items": setting.Schema{"type": "string", "pattern": setting.DurationPattern}},
	}
}

// retriesKey returns the key for a number. The file's 0 is Unlimited.
func retriesKey() setting.Entry[Retry] {
	return setting.Entry[Retry]{
		Name: "retries",
		Read: func(l *setting.Loader, r *Retry) setting.Decode {
			return func(path string, n *yaml.Node) {
				retries := r.Retries
				setting.Integer(l, &retries, "5")(path, n)
				switch {
				case l.Bad[path]:
				case retries == 0:
					r.Retries = Unlimited
				case retries < 0: // -1 must not be taken for Unlimited
					l.Fault(path, strconv.Itoa(retries), setting.Problem{What: "is negative", Fix: "write 1 or more, or 0 for no limit"})
					r.Retries = Unlimited
				default:
					r.Retries = retries
				}
			}
		},
		Show: func(_ setting.Printer, r *Retry) *yaml.Node {
			return setting.Scalar("!!int", strconv.Itoa(max(r.Retries, 0)))
		},
		Told: []setting.Row{{
			Doc:    "Retries after the first attempt. `0` means without limit, never \"do not retry\".",
			Values: "`0` to `" + strconv.Itoa(maxRetries) + "`; for `list` not fewer than its waits", Usual: "`5`; `50` for `fixed`; the number of waits for `list`",
		}},
		Schema: setting.Schema{"type": "integer", "minimum": 0, "maximum": maxRetries},
	}
}

// policyOf returns the policy that a mapping names, at any place in it.
func policyOf(n *yaml.Node, usual Policy) Policy {
	if v := setting.ValueOf(n, "policy"); v != nil {
		return Policy(v.Value)
	}
	return usual
}

func waits(l *setting.Loader, path string, n *yaml.Node) []time.Duration {
	items := l.List(path, n, "write a list, such as [1s, 5s, 30s]")
	waits := make([]time.Duration, len(items))
	for i, item := range items {
		l.Duration(&waits[i])(setting.Element(path, i), item)
	}
	return waits
}
