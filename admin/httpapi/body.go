package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// smallBody is the most bytes that a request may have, without its payload.
const smallBody = 64 << 10

// body is the content of a request. We read it instead of huma, for two reasons: if it is too long, the
// answer names the limit; and a payload's bytes stay as they are.
type body struct {
	data  []byte
	fault *api.Problem
}

// Resolve reads the body. decode reports what went wrong.
func (b *body) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	b.data, b.fault = readBody(w, r, ctx.Operation().MaxBodyBytes)
	return nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *api.Problem) {
	if r.ContentLength > limit {
		return nil, api.TooLong(fmt.Sprint(r.ContentLength), limit)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, serve.ReadInTime(w, r), limit))
	if err != nil {
		if errors.Is(err, serve.ErrCrowded) {
			return nil, gate.Crowded()
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, api.TooLong(fmt.Sprintf("more than %d", limit), limit)
		}
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			return nil, api.TimedOut.Problem("the body did not arrive in time; send it again")
		}
		return nil, api.Unreadable.Problem("the body ended early: " + err.Error())
	}
	if len(data) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		return nil, api.MediaType.Problem("send the header Content-Type: application/json",
			api.Fault{Field: "Content-Type", Value: api.Clip(r.Header.Get("Content-Type")), Problem: "must be application/json"}).
			With("Accept", "application/json")
	}
	return data, nil
}

// isJSON also keeps pages of other sites out. A browser sends this type only after a preflight request, and
// nothing here answers one.
func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
