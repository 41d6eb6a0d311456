package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
)

// people lists who may sign in. What is done about them is a command.
func (p *Pages) people(r *http.Request) (answer, error) {
	all, err := admin.People{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	return &view{template: "people", title: "People", rail: "Settings", data: all.People}, nil
}
