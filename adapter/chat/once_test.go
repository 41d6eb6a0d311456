package chat_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
)

// F1-30: an attempt is one request to each recipient, whatever net/http would
// repeat.
func TestAWarmConnectionThatIsClosedCostsOneAttempt(t *testing.T) {
	t.Parallel()
	for _, kind := range chat.Kinds() {
		s := exchangetest.Slamming(t, answer(200, "ok"))
		r := open(t, kind, own(kind, s.URL), keep(s.URL), nil)
		s.Warm(4, func() { r.Send(t.Context(), example(), to(""), nil) })
		for n := range 4 {
			report := r.Send(t.Context(), example(), to(""), nil)
			if got := verdict(report, 0); got != "deferred, maybe, connection_lost" || s.Requests() != 5+n {
				t.Errorf("%s: got %q after %d requests, want %d", kind, got, s.Requests(), 5+n)
			}
		}
	}
}
