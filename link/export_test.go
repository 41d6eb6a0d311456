package link

import (
	"encoding/json"

	"github.com/holdfast-mq/holdfast"
)

// PageOf reads what a site says of its messages; ok: it can be read.
func PageOf(text []byte, limit int) (p holdfast.Page, ok bool) {
	var list page
	if json.Unmarshal(text, &list) != nil {
		return p, false
	}
	p, err := list.whole(limit, false)
	return p, err == nil
}

// ProblemsOf reads a site's answers, and how it fares.
func ProblemsOf(text []byte) (problems []error, h Health) {
	var said struct {
		answers
		Health Health `json:"health"`
	}
	if json.Unmarshal(text, &said) != nil {
		return nil, h
	}
	for _, a := range said.Answers {
		_, err := a.result("plant-7")
		problems = append(problems, err)
	}
	return problems, said.Health.clean()
}

// CommandsOf reads what central asks: the ids that a site would keep, why others
// are refused, and who stands in the history.
func CommandsOf(text []byte) (ids []string, faults []error, actors []string) {
	var got polled
	if json.Unmarshal(text, &got) != nil {
		return nil, nil, nil
	}
	for i := range got.Commands {
		c := &got.Commands[i]
		actors = append(actors, actorOf(c))
		if err := c.check(); err != nil {
			faults = append(faults, err)
		} else {
			ids = append(ids, c.ID)
		}
	}
	return ids, faults, actors
}
