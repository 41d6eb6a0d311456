package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type liveInput struct {
	// A browser that connects again sends it by itself.
	Last int64 `header:"Last-Event-ID" minimum:"0" doc:"The id of the last event, to hear how much was missed."`
}

func live(b *builder) {
	live := admin.Live{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/live", id: "stream-hints", tag: "diagnostics", right: api.Read, scoped: true, slow: true,
		summary: "Hear when something changes",
		description: "Server-sent events that say that something changed, and nothing of what it is now: ask for it again. First hello, then counts, message, " +
			"notification, channel and destination, at most twice a second. More changes than can be named are counted. The answer has no end. " +
			"A comment comes every 15 s while nothing happens. A node has 256 streams, and a caller 64: beyond that the answer is 503.",
	}, func(ctx context.Context, in *liveInput) (*huma.StreamResponse, error) {
		follow, err := live.Follow(ctx, in.Last)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			h.SetHeader("Content-Type", eventStream)
			h.SetHeader("Cache-Control", "no-store")
			h.SetHeader("X-Accel-Buffering", "no")                                                       // a proxy must not wait for more
			_ = streamed(h.BodyWriter(), []byte(": hello follows\n\n"))                                  // the answer begins at once; the next write tells
			_ = follow(ctx, func(list []api.LiveEvent) error { return sendHints(h.BodyWriter(), list) }) // half an answer: nobody can be told
		}}, nil
	})
	b.operation(http.MethodGet, "/v1/live").Responses["200"] = &huma.Response{
		Description: "OK", Content: map[string]*huma.MediaType{eventStream: {Schema: b.schema(reflect.TypeFor[api.Hint]())}},
	}
}

// sendHints writes events, or a comment for one without a kind.
func sendHints(w io.Writer, list []api.LiveEvent) error {
	var text bytes.Buffer
	for i := range list {
		e := &list[i]
		if e.Kind == "" {
			text.WriteString(": still here\n\n")
			continue
		}
		var content any = e.Hint
		if e.Hello != nil {
			content = e.Hello
		}
		data, err := json.Marshal(content)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data)
	}
	return streamed(w, text.Bytes())
}

// streamed writes a part of a stream to a reader that must take it in time.
func streamed(w io.Writer, part []byte) error {
	answer, is := w.(http.ResponseWriter)
	if is {
		_ = http.NewResponseController(answer).SetWriteDeadline(time.Now().Add(streamWrite)) // fails only for a recorder in a test
	}
	if _, err := w.Write(part); err != nil {
		return err
	}
	if is {
		_ = http.NewResponseController(answer).Flush() // the next write tells
	}
	return nil
}
