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

// Whoever pauses it, or seals its secrets anew, keeps what is there, and what is lost stays lost.
func TestADamagedSubscriptionIsChanged(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string][3]string{
		"topics":   {"", "{}", `{"url":"https://example.com"}`},
		"filter":   {`["*"]`, "", `{"url":"https://example.com"}`},
		"settings": {`["*"]`, "{}", ""},
		"all":      {"", "", ""},
	} {
		s := Subscription{ID: "shop", State: Paused}
		s.Read(columns[0], columns[1], columns[2])
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r, err := SubscriptionRow(&s)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]string{r.Topics, r.Filter, r.Settings}; got != columns {
			t.Errorf("%s: stored as %q, was %q", name, got, columns)
		}
	}
}
