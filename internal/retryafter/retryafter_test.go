package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/retryafter"
)

func TestOf(t *testing.T) {
	t.Parallel()
	const date = "Fri, 27 Nov 2026 10:00:00 GMT"
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 8 ": 8 * time.Second, "-1": 0, "5m": 0, "1h2m3": 0, "1e300": 0, "7.5": 0,
		"99999999999": retryafter.Max, "99999999999999999999999": 0,
		"Fri, 27 Nov 2026 10:01:30 GMT": 90 * time.Second, "Fri, 27 Nov 2026 09:00:00 GMT": 0,
		"Fri, 27 Nov 2036 10:00:00 GMT": retryafter.Max, "soon": 0,
	} {
		h := http.Header{"Retry-After": {text}, "Date": {date}}
		if got := retryafter.Of(h); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := retryafter.Seconds(1500 * time.Millisecond); got != "2" {
		t.Errorf("1.5 s is written %s, want 2", got)
	}
}
