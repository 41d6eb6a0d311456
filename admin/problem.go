package admin

import (
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// inDoubt adds the id to a problem whose outcome is unknown: the same request with this id finds out. It does
// so even if the node made the id.
func inDoubt(p *api.Problem, err error, id holdfast.ID) *api.Problem {
	if errors.Is(err, holdfast.ErrUnknown) {
		p.Message = string(id)
		p.Detail = fmt.Sprintf("outcome unknown, send the same id again: the store did not say whether it kept %s; with that id it is kept once", id)
	}
	return p
}
