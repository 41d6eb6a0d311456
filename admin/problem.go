package admin

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// inDoubt tells the id with which the same request finds out what became of it,
// also where the node has made it.
func inDoubt(p *api.Problem, err error, id holdfast.ID) *api.Problem {
	if errors.Is(err, holdfast.ErrUnknown) {
		p.Message = string(id)
		p.Detail = fmt.Sprintf("outcome unknown, send the same id again: the store was asked to keep %s, and nobody can tell now whether it has; with that id it is kept once", id)
	}
	return p
}

// Unavailable answers each request that the node cannot do it now, and why.
func Unavailable(detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		api.Unavailable.Problem(detail).With("Retry-After", "1").Answer(w)
	})
}

// crowded is said to somebody for whom there is no room now.
func crowded() *api.Problem {
	return api.Busy.Problem("the node has more requests in hand than it has room for; nothing was done: send the same request again in a moment").
		With("Retry-After", "1")
}
