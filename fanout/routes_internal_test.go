package fanout

import (
	"testing"
	"time"
)

// An attempt has more time than its request, whoever sets that: the deliverer keeps the time itself.
func TestARouteHasMoreTimeThanItsRequest(t *testing.T) {
	t.Parallel()
	r := &Routes{Book: NewBook(nil, nil), Timeout: 15 * time.Second}
	for _, s := range []Settings{{}, {Timeout: time.Second}, {Timeout: maxTimeout}, {Timeout: maxTimeout, Concurrency: 8, Rate: &Rate{Count: 1, Per: time.Minute}}} {
		request := s.Timeout
		if request == 0 {
			request = r.Timeout
		}
		request += mostTurn // it may wait for its turn first
		if got := r.route(&Subscription{Settings: s}, &courier{}).Timeout; got <= request {
			t.Errorf("%+v: the route has %s, the request takes up to %s", s, got, request)
		}
	}
}
