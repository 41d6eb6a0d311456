package postgres

import (
	"log/slog"
	"testing"
	"time"
)

// F1-51: a sweep may have read how far time has come before a beat that it learns of after it.
// What the beat has judged stands, until the database says something newer.
func TestAnEarlierLookAtTheClockTakesNothingBack(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	c := newClock(time.Hour)
	const day = 24 * 60 * 60 * clockSecond
	doubted := clockRow{at: 2 * day, raw: 2 * day, shows: 2 * day, leaps: `[{"at":172800000000,"doubt":86400000000,"false":0,"since":172800000000}]`}
	c.adopt(&doubted, log)
	if doubt, _ := c.guard.Doubt(c.seen()); doubt != day {
		t.Fatalf("got a doubt of %d µs, want a day", doubt)
	}

	beat := doubted
	beat.at, beat.raw, beat.shows = beat.at+clockSecond, beat.raw+clockSecond, beat.shows+clockSecond
	guard := c.judged(&beat)
	guard.Confirm()
	if doubt, _ := c.guard.Doubt(c.seen()); doubt != day {
		t.Errorf("got a doubt of %d µs while the beat is not committed, want a day", doubt)
	}
	beat.leaps = guard.Text()
	c.adopt(&beat, log)
	verdicts := c.guard.Verdicts()
	c.adopt(&doubted, log)
	if doubt, _ := c.guard.Doubt(c.seen()); doubt != 0 || c.guard.Verdicts() != verdicts {
		t.Errorf("got a doubt of %d µs and %d new verdicts after an earlier look, want neither", doubt, c.guard.Verdicts()-verdicts)
	}

	later := beat
	later.at, later.leaps = later.at+clockSecond, doubted.leaps
	c.adopt(&later, log)
	if doubt, _ := c.guard.Doubt(c.seen()); doubt != day {
		t.Errorf("got a doubt of %d µs after a later look, want a day", doubt)
	}
}
