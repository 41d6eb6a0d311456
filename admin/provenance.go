package admin

import (
	"maps"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

func provenanceOf(headers map[string]string) api.Provenance {
	o := notify.OriginOf(headers)
	return api.Provenance{OriginInstance: o.Instance, SourceScript: o.Script, ExecutionID: o.Execution, ParentExecutionID: o.ParentExecution}
}

// withOrigin puts an origin into the headers of a request.
func withOrigin(headers map[string]string, o notify.Origin) map[string]string {
	all := o.Headers()
	maps.Copy(all, headers)
	if len(all) == 0 {
		return nil
	}
	return all
}

// ownHeaders returns the caller's headers, without those that are shown as fields.
func ownHeaders(headers map[string]string) map[string]string {
	own := maps.Clone(headers)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, notify.HeaderPrefix) })
	return own
}
