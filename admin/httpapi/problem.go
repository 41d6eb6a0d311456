package httpapi

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

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
