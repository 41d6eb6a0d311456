package web

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// A time when no node ran is a gap of a line, and not a zero; nodes are added where they count, and not where they
// see the same.
func TestADayHasGaps(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(before time.Duration, node string, delivered, waiting int64) api.Minute {
		return api.Minute{At: end.Add(-before), Node: node, Seconds: 60, Delivered: delivered, Waiting: waiting}
	}
	d := day{[]api.Minute{
		at(24*time.Hour, "a", 1, 1), at(40*time.Minute, "a", 3, 9), at(40*time.Minute, "b", 5, 9), at(39*time.Minute, "a", 4, 2),
		at(20*time.Minute, "a", 2, 7), at(time.Minute, "a", 0, 0),
	}, end}
	rate := d.rate("Delivered", func(m *api.Minute) int64 { return m.Delivered })
	level := d.level("Waiting", func(m *api.Minute) int64 { return m.Waiting })
	if rate.Title != "Delivered a minute: last 0, at most 6" || level.Title != "Waiting: last 0, at most 9" {
		t.Errorf("%q and %q", rate.Title, level.Title)
	}
	if len(rate.Parts) != 2 || rate.Parts[0].Line != "0.0,22.0 1.2,22.0" || rate.Parts[1].Line != "117.5,2.0 118.7,18.0 120.0,26.0" {
		t.Errorf("the line is %+v", rate.Parts)
	}
	if (day{}).level("None", nil) != nil {
		t.Error("nothing is known, and a line is drawn")
	}
}
