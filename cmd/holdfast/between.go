package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-mq/holdfast/internal/span"
)

// between holds the flags of lists that are narrowed to a time.
type between struct{ since, until string }

// flags adds the flags. what says in a few words what is in the list and when, such as "what happened".
func (b *between) flags(s *pflag.FlagSet, what string) {
	s.StringVar(&b.since, "since", "", "only "+what+" then or later: 24h (so long ago), a day in UTC such as 2026-11-28, or an instant such as 2026-11-28T08:00:00Z")
	s.StringVar(&b.until, "until", "", "only "+what+" before then")
}

// read returns the instants that the flags say; zero: not narrowed.
func (b *between) read() (since, until time.Time, err error) {
	var faults [2]error
	since, faults[0] = ago("--since", b.since)
	until, faults[1] = ago("--until", b.until)
	if err := errors.Join(faults[:]...); err != nil {
		return since, until, usage(err)
	}
	return since, until, nil
}

// ago reads an instant, a day in UTC, or how long ago something happened.
func ago(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if d, p := span.Parse(text); p == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%s %q: must be 24h (so long ago), a day such as 2026-11-28, or an instant such as 2026-11-28T08:00:00Z", flag, text)
}
