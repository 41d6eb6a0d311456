package httpapi

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Unavailable answers each request with a refusal: the node cannot do it now. detail says why.
func Unavailable(detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		api.Unavailable.Problem(detail).With("Retry-After", "1").Answer(w)
	})
}
