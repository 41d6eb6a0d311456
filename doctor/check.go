package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

// Status is the result of one check, or of all of them.
type Status string

// The statuses, from the best to the worst. Skipped counts as ok: something could not be asked, or there was
// nothing to ask.
const (
	OK      Status = "ok"
	Skipped Status = "skipped"
	Warning Status = "warning" // a node works, but something needs attention
	Failing Status = "failing" // a node does not work, will not start, or loses what it should keep
)

// Check is the result of one check.
type Check struct {
	Group  string             `json:"group"`
	Name   string             `json:"name"`
	Status Status             `json:"status"`
	Detail string             `json:"detail"`           // what the check found
	Hint   string             `json:"hint,omitempty"`   // what to do
	Items  []string           `json:"items,omitempty"`  // one line each
	Values map[string]float64 `json:"values,omitempty"` // what was measured, for programs
}

// Report is the result of all checks.
type Report struct {
	Status  Status    `json:"status"` // the worst status of the checks
	Node    string    `json:"node,omitempty"`
	Data    string    `json:"data,omitempty"`
	Store   string    `json:"store,omitempty"` // address of a database, without its password
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	OK      int       `json:"ok"`
	Warning int       `json:"warnings"`
	Failing int       `json:"failing"`
	Skipped int       `json:"skipped"`
	Checks  []Check   `json:"checks"`
}

func (r *Report) add(checks ...Check) {
	for _, c := range checks {
		switch c.Status {
		case OK:
			r.OK++
		case Skipped:
			r.Skipped++
		case Warning:
			r.Warning++
		case Failing:
			r.Failing++
		}
	}
	r.Checks = append(r.Checks, checks...)
	switch {
	case r.Failing > 0:
		r.Status = Failing
	case r.Warning > 0:
		r.Status = Warning
	default:
		r.Status = OK
	}
}

// String returns the report for a person: a line for each check, with a mark that needs no colour, and below
// it what to do.
func (r *Report) String() string {
	var b strings.Builder
	group := ""
	for _, c := range r.Checks {
		if c.Group != group {
			if group = c.Group; b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(group + "\n")
		}
		fmt.Fprintf(&b, "  %-4s  %s: %s\n", mark(c.Status), flat(c.Name), flat(c.Detail))
		for _, item := range c.Items {
			fmt.Fprintf(&b, "        - %s\n", flat(item))
		}
		if c.Hint != "" {
			fmt.Fprintf(&b, "        > %s\n", flat(c.Hint))
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %s, %d failing", r.OK, brief.Count(r.Warning, "warning", "warnings"), r.Failing)
	if r.Skipped > 0 {
		fmt.Fprintf(&b, ", %d skipped", r.Skipped)
	}
	b.WriteByte('\n')
	return b.String()
}

func mark(s Status) string {
	switch s {
	case OK:
		return "ok"
	case Skipped:
		return "skip"
	case Warning:
		return "WARN"
	case Failing:
		return "FAIL"
	}
	return "?"
}

// flat puts text of others into one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// in makes the checks of its group.
type in string

func (g in) ok(name, detail string) Check {
	return Check{Group: string(g), Name: name, Status: OK, Detail: detail}
}

func (g in) skipped(name, detail string) Check {
	return Check{Group: string(g), Name: name, Status: Skipped, Detail: detail}
}

func (g in) warning(name, detail, hint string) Check {
	return Check{Group: string(g), Name: name, Status: Warning, Detail: detail, Hint: hint}
}

func (g in) failing(name, detail, hint string) Check {
	return Check{Group: string(g), Name: name, Status: Failing, Detail: detail, Hint: hint}
}

func (c Check) with(name string, value float64) Check {
	if c.Values == nil {
		c.Values = map[string]float64{}
	}
	c.Values[name] = value
	return c
}

func (c Check) listing(items []string) Check {
	c.Items = items
	return c
}

// size formats bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	value, i := float64(n)/unit, 0
	for value >= unit && i < 4 {
		value, i = value/unit, i+1
	}
	return fmt.Sprintf("%.1f %s", value, [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"}[i])
}

// span formats a duration for people, in at most two units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d >= 48*time.Hour:
		return brief.Count(int(d.Hours()/24), "day", "days")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}
