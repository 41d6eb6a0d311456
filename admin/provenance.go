package admin

import (
	"context"
	"maps"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

func provenanceOf(headers map[string]string) api.Provenance {
	o := notify.OriginOf(headers)
	return provenanceFrom(&o)
}

func provenanceFrom(o *notify.Origin) api.Provenance {
	return api.Provenance{OriginInstance: o.Instance, SourceScript: o.Script, ExecutionID: o.Execution, ParentExecutionID: o.ParentExecution, TraceID: o.Trace.ID()}
}

// withOrigin puts an origin into the headers of a request. The headers lead: a trace context that does not fit
// beside them is left out, and no reason to refuse the request.
func withOrigin(headers map[string]string, o notify.Origin) map[string]string {
	all := o.Headers()
	maps.Copy(all, headers)
	size := 0
	for name, value := range all {
		size += len(name) + len(value)
	}
	if len(all) > holdfast.MaxHeaders || size > holdfast.MaxHeaderSize {
		o.Trace.Each(func(name, _ string) {
			if _, own := headers[name]; !own {
				delete(all, name)
			}
		})
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

type traceKey struct{}

// Within returns a context of a request that is a part of a trace. What is sent in it carries the trace on.
func Within(ctx context.Context, t holdfast.Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

func traceOf(ctx context.Context) holdfast.Trace {
	t, _ := ctx.Value(traceKey{}).(holdfast.Trace)
	return t
}

// ownHeaders returns the caller's headers, without those that are shown as fields.
func ownHeaders(headers map[string]string) map[string]string {
	own := maps.Clone(headers)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, notify.HeaderPrefix) })
	return own
}
