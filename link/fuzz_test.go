package link_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/link"
)

// FuzzWhatTheOtherEndSays gives both ends bytes of a machine that was taken over:
// whatever of it is shown, counted or kept is bounded and acts on no terminal (F1-20).
func FuzzWhatTheOtherEndSays(f *testing.F) {
	const hostile = `\u001b[2J\u202e`
	f.Add([]byte(`{"records":[{"seq":2,"id":"a"},{"seq":1,"id":"`+hostile+`","failures":-1,"history":[{"code":"`+hostile+`","attempt":-2,"tookNs":-3}]}],"next":"1"}`), 2)
	f.Add([]byte(`{"answers":[{"id":"a","problem":"state","text":"`+hostile+`"}],"health":{"depth":-1,"oldestNs":-1,"version":"`+hostile+`"}}`), 0)
	f.Add([]byte(`{"incarnation":"`+hostile+`","commands":[{"id":"c","verb":"retry","message":"m","actor":"`+hostile+`"},{"id":""}]}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		shows := func(what string, v any, most int) {
			t.Helper()
			if s := fmt.Sprintf("%+v", v); strings.ContainsFunc(s, shown.Acts) || len(s) > most {
				t.Errorf("%s: %d bytes: %.300q", what, len(s), s)
			}
		}
		p, _ := link.PageOf(text, limit)
		for i := range p.Records {
			r := &p.Records[i]
			r.Message.Payload, r.Message.Kind = nil, "" // bytes are shown as what they are; a kind is one that is known
			if r.Failures < 0 || r.Tries < 0 || r.Size < 0 || r.Cycle < 0 {
				t.Errorf("below zero: %+v", r)
			}
			shows("record", r, len(text)*12+1<<16)
		}
		problems, h := link.ProblemsOf(text)
		for _, err := range problems {
			shows("problem", err, 2000)
		}
		if shows("health", h, 1000); h.Depth < 0 || h.Parked < 0 || h.Oldest < 0 || h.Replayed < 0 {
			t.Errorf("below zero: %+v", h)
		}
		ids, faults, actors := link.CommandsOf(text)
		for _, id := range ids {
			if len(id) > holdfast.MaxNameLen {
				t.Errorf("an id of %d bytes is kept", len(id))
			}
		}
		for _, err := range faults {
			shows("fault", err, 2000)
		}
		for _, actor := range actors {
			shows("actor", actor, 1000)
		}
	})
}
