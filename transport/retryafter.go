package transport

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter caps what a peer may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the header of that name: seconds, or an HTTP date, which
// is held against the reply's own Date, since two machines' clocks differ.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// seconds rounds up for a Retry-After header.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
