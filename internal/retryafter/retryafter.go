// Package retryafter reads and writes the Retry-After header of HTTP (RFC 9110, 10.2.3), for all
// clients and servers.
package retryafter

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Max limits the wait that the other side may ask for.
const Max = 24 * time.Hour

// Of reads the header: seconds, or an HTTP date. A date is compared with the answer's own Date,
// since two machines' clocks differ. Zero: absent or unreadable.
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

// Seconds returns a wait in the form of the header, rounded up.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
