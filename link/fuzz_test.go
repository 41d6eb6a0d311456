package link

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
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
			if s := fmt.Sprintf("%+v", v); strings.ContainsFunc(s, shown.Acts) || len(s) > most {
				t.Errorf("%s: %d bytes: %.300q", what, len(s), s)
			}
		}
		var list page
		if json.Unmarshal(text, &list) == nil {
			if p, err := list.whole(limit); err == nil {
				for i := range p.Records {
					r := &p.Records[i]
					r.Message.Payload, r.Message.Kind = nil, "" // bytes are shown as what they are; a kind is one that is known
					if r.Failures < 0 || r.Tries < 0 || r.Size < 0 || r.Cycle < 0 {
						t.Errorf("below zero: %+v", r)
					}
					shows("record", r, len(text)*12+1<<16)
				}
			}
		}
		var said struct {
			answers
			Health Health `json:"health"`
		}
		if json.Unmarshal(text, &said) == nil {
			for _, a := range said.Answers {
				if _, err := a.result("plant-7"); err != nil {
					shows("problem", err, 2000)
				}
			}
			if h := said.Health.clean(); h.Depth < 0 || h.Parked < 0 || h.Oldest < 0 || h.Replayed < 0 {
				t.Errorf("below zero: %+v", h)
			} else {
				shows("health", h, 1000)
			}
		}
		var got polled
		if json.Unmarshal(text, &got) == nil {
			for i := range got.Commands {
				c := &got.Commands[i]
				if err := c.check(); err != nil {
					shows("fault", err, 2000)
				} else if len(c.ID) > holdfast.MaxNameLen {
					t.Errorf("an id of %d bytes is kept", len(c.ID))
				}
				shows("actor", actorOf(c), 1000)
			}
		}
	})
}
