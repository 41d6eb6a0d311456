package web

import (
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// A sparkline has a point for each quarter of an hour of the last day.
const (
	sparkStep   = 15 * time.Minute
	sparkPoints = 96
)

// day is what happened in the last day.
type day struct {
	list []api.Minute
	end  time.Time
}

// lastDay reads the last day. If it cannot be read, or nobody keeps it, there are no lines.
func (p *Pages) lastDay(r *http.Request) day {
	end := time.Now().Truncate(sparkStep).Add(sparkStep)
	h, err := admin.Node{Service: p.Service}.History(r.Context(), end.Add(-sparkPoints*sparkStep))
	if err != nil {
		return day{}
	}
	return day{h.Minutes, end}
}

// level draws how many there were: the highest of each quarter of an hour. Nodes that share a store see the same.
func (d day) level(title string, of func(m *api.Minute) int64) *spark {
	return d.draw(title, func(list []api.Minute) (highest int64) {
		for i := range list {
			highest = max(highest, of(&list[i]))
		}
		return highest
	})
}

// rate draws how many there were a minute, of all nodes together.
func (d day) rate(title string, of func(m *api.Minute) int64) *spark {
	return d.draw(title+" a minute", func(list []api.Minute) int64 {
		sum, times := int64(0), int64(0)
		for i := range list {
			if sum += of(&list[i]); i == 0 || !list[i].At.Equal(list[i-1].At) {
				times++
			}
		}
		return (sum + times - 1) / times
	})
}

func (d day) draw(title string, value func(list []api.Minute) int64) *spark {
	if len(d.list) == 0 {
		return nil
	}
	values, rest := make([]int64, sparkPoints), d.list
	for i := range values {
		until, n := d.end.Add(-time.Duration(sparkPoints-1-i)*sparkStep), 0
		for n < len(rest) && rest[n].At.Before(until) {
			n++
		}
		values[i] = gap
		if n > 0 {
			values[i] = value(rest[:n])
		}
		rest = rest[n:]
	}
	return sparkline(title, values)
}
