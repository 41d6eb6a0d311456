package rows_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/rows"
)

func TestAnOperationKeepsWhereItCameFromAndNothingElse(t *testing.T) {
	t.Parallel()
	for headers, want := range map[string]string{
		"": "", "{}": "", "{": "", `{"authorization":"secret"}`: "",
		`{"hf-instance":"filler-3","traceparent":"00-1"}`:                        `{"hf-instance":"filler-3","traceparent":"00-1"}`,
		`{"authorization":"secret","hf-instance":"filler-3","tracestate":"a=1"}`: `{"hf-instance":"filler-3","tracestate":"a=1"}`,
	} {
		var o rows.Operation
		if o.SetOrigin(headers); o.Origin != want {
			t.Errorf("of %s it keeps %s, want %s", headers, o.Origin, want)
		}
	}
}
