package audit_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
)

func TestAFilterSelectsWhatAllItsFieldsAgreeWith(t *testing.T) {
	t.Parallel()
	r := full()
	for name, c := range map[string]struct {
		f    audit.Filter
		want bool
	}{
		"no field": {audit.Filter{}, true},
		"all": {audit.Filter{
			From: r.Occurred, Until: r.Occurred.Add(time.Microsecond), Site: "s", Node: "n", Instance: "i", Actor: "system", Target: "<a@b.c>",
			Channel: audit.Notification, Kind: audit.NotifyDeliver, Status: audit.Attempted, Correlation: "c",
		}, true},
		"later":             {audit.Filter{From: r.Occurred.Add(time.Microsecond)}, false},
		"before":            {audit.Filter{Until: r.Occurred}, false},
		"errors":            {audit.Filter{ErrorsOnly: true}, false},
		"other site":        {audit.Filter{Site: "x"}, false},
		"other node":        {audit.Filter{Node: "x"}, false},
		"other instance":    {audit.Filter{Instance: "x"}, false},
		"other actor":       {audit.Filter{Actor: "x"}, false},
		"other target":      {audit.Filter{Target: "x"}, false},
		"other channel":     {audit.Filter{Channel: "x"}, false},
		"other kind":        {audit.Filter{Kind: "x"}, false},
		"other status":      {audit.Filter{Status: "x"}, false},
		"other correlation": {audit.Filter{Correlation: "x"}, false},
	} {
		if got := c.f.Match(&r); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	r.Status = audit.Parked
	if f := (audit.Filter{ErrorsOnly: true}); !f.Match(&r) {
		t.Error("a parked message is an error")
	}
}
