// Package retryafter reads and writes the Retry-After header of HTTP (RFC
// 9110, 10.2.3), for everything that calls or answers.
package retryafter

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Max caps what the other side may ask for.
const Max = 24 * time.Hour

// Of reads the header: seconds, or an HTTP date, which is held against the
// answer's own Date, since two machines' clocks differ. Zero: none, or
// nothing that can be read.
func Of(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(n, uint64(Max/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), Max)
}

// Seconds writes a wait for the header, rounded up.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
