package web

import (
	"fmt"
	"time"
	_ "time/tzdata" // a container may have no time zones
)

// stamp is a time as pages show it: absolute in the caller's zone, with the age beside it.
type stamp struct {
	ISO, Date, Clock, Zone, Age string
}

// When returns a time for the template "time"; nil: there is none. It takes a time.Time or a *time.Time.
func (f *frame) When(t any) *stamp {
	var at time.Time
	switch t := t.(type) {
	case time.Time:
		at = t
	case *time.Time:
		if t != nil {
			at = *t
		}
	}
	if at.IsZero() {
		return nil
	}
	in := at.In(f.location)
	return &stamp{
		ISO: at.UTC().Format(time.RFC3339Nano), Date: in.Format("2006-01-02"), Clock: in.Format("15:04:05"), Zone: in.Format("MST"), Age: ageOf(f.now.Sub(at)),
	}
}

// skew is how far clocks may be apart without being told of: a time of another node that is ahead of ours is
// now, and no negative age.
const skew = 2 * time.Second

// ageOf says how long ago something was, or in how long it will be.
func ageOf(d time.Duration) string {
	switch {
	case d < -skew:
		return "in " + inWords(-d)
	case d < time.Second:
		return "now"
	}
	return inWords(d) + " ago"
}

// inWords says how long something takes, in at most two units.
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 60*day:
		return fmt.Sprintf("%d d %d h", int(d/day), int(d%day/time.Hour))
	}
	return fmt.Sprintf("%d d", int(d/day))
}
