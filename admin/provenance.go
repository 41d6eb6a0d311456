package admin

import (
	"maps"
	"strings"

	"github.com/holdfast-mq/holdfast/notify"
)

// Provenance is where a message comes from, beside its source. Each field is
// empty where nobody has said it.
type Provenance struct {
	OriginInstance    string `json:"originInstance,omitempty" doc:"Which instance of a program it comes from."`
	SourceScript      string `json:"sourceScript,omitempty" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" doc:"Which run started that run."`
}

func provenanceOf(headers map[string]string) Provenance {
	o := notify.OriginOf(headers)
	return Provenance{OriginInstance: o.Instance, SourceScript: o.Script, ExecutionID: o.Execution, ParentExecutionID: o.ParentExecution}
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

// ownHeaders are the caller's, without those that are shown as fields.
func ownHeaders(headers map[string]string) map[string]string {
	own := maps.Clone(headers)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, notify.HeaderPrefix) })
	return own
}
