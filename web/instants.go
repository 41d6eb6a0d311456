package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// instantIn returns an instant that a filter names, as the API takes it: a time in the caller's zone, or an age such as
// 2h, which means so long ago. What is neither stays as it is.
func instantIn(r *http.Request, text string) string {
	text = strings.TrimSpace(text)
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d).UTC().Format(time.RFC3339)
	}
	for _, form := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(form, text, preferencesOf(r).location); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return text
}

// timeIn is instantIn of a filter, as a time. Zero: it is not set.
func timeIn(r *http.Request, name string) (at time.Time, err error) {
	text := instantIn(r, r.FormValue(name))
	if text == "" {
		return at, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err = time.ParseInLocation(form, text, preferencesOf(r).location); err == nil {
			return at, nil
		}
	}
	return at, api.Faulty(api.Fault{Field: name, Value: api.Clip(text), Problem: "is no instant; write one such as 2026-11-30 08:15, 2026-11-30T08:15:00Z, or 2h for two hours ago"})
}

// period reads the filters from and to.
func period(r *http.Request) (from, to time.Time, err error) {
	if from, err = timeIn(r, "from"); err == nil {
		to, err = timeIn(r, "to")
	}
	return from, to, err
}

// inMillis says how long something takes that is given in milliseconds.
func inMillis(ms int64) string {
	if ms <= 0 {
		return "–"
	}
	return inWords(time.Duration(ms) * time.Millisecond)
}

// numberOf reads a place in a list; zero: the beginning.
func numberOf(r *http.Request, name string) (int64, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, api.Faulty(api.Fault{Field: name, Value: api.Clip(text), Problem: "is not a place in this list"})
	}
	return n, nil
}
