package fanout

import "testing"

// What a damaged file has lost of a subscription takes nothing else with it.
func TestADamagedSubscriptionKeepsTheRest(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][3]string{
		"topics": {"", "{}", `{"url":"https://example.com"}`},
		"filter": {`["*"]`, "", `{"url":"https://example.com"}`},
	} {
		var s Subscription
		if s.Read(columns[0], columns[1], columns[2]); s.URL == "" || s.Fault == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
