package web

import (
	"net/http"
	"time"
)

// designs is what the page of the design system shows: each part in each of its states.
type designs struct {
	States []string
	Icons  []string
	Tones  []string
	Past   time.Time
	Soon   time.Time
	Sparks []*spark
	Tiles  []tile
	Lines  []string
}

func (*Pages) design(*http.Request) (answer, error) {
	rise, calm := make([]int64, 48), make([]int64, 48)
	for i := range rise {
		rise[i], calm[i] = int64(i*i%97+i), int64(40+i%5)
	}
	past := time.Date(2026, 3, 29, 0, 59, 30, 0, time.UTC)
	return &view{template: "design", title: "Design", data: &designs{
		States: []string{"pending", "claimed", "retrying", "delivered", "parked", "expired", "discarded", "up", "down", "held", "paused", "ok", "degraded", "failing", "unknown"},
		Icons:  []string{"home", "mail", "flag", "out", "clock", "send", "warn", "check", "stop", "pause", "play", "trash", "retry", "copy", "dot", "more", "search", "user", "gear", "shield", "list", "people", "bolt", "site"},
		Tones:  []string{"red", "amber", "green", "blue", "violet", "grey"},
		Past:   past, Soon: time.Now().Add(90 * time.Minute),
		Sparks: []*spark{sparkline("Delivered", rise), sparkline("Waiting", calm)},
		Tiles: []tile{
			{Label: "Waiting", Value: grouped(1234), Hint: "pending", Href: "#tiles", Spark: sparkline("Waiting", calm)},
			{Label: "Parked", Value: grouped(17), Hint: "for a person", Href: "#tiles", Tone: "red", Spark: sparkline("Parked", rise)},
			{Label: "Expired", Value: grouped(3), Hint: "time to live ended", Href: "#tiles", Tone: "amber"},
			{Label: "Delivered", Value: grouped(1_204_482), Hint: "in the last minute"},
		},
		Lines: []string{"plain", "<script>alert(1)</script>", "abc\u202edef", "nul \x00 bell \a"},
	}}, nil
}
