package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
)

// What is not valid by W3C Trace Context is no trace, and never refused.
func TestTraces(t *testing.T) {
	t.Parallel()
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for parent, want := range map[string]string{
		"00-" + id + "-" + span + "-01": id, "01-" + id + "-" + span + "-01": id, "01-" + id + "-" + span + "-01-more": id,
		"00-" + id + "-" + span + "-01-more": "", "01-" + id + "-" + span + "-01more": "", "ff-" + id + "-" + span + "-01": "",
		"00-" + strings.ToUpper(id) + "-" + span + "-01": "", "00-" + strings.Repeat("0", 32) + "-" + span + "-01": "",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01": "", "00-" + id + "-" + span + "-0g": "", "00_" + id + "-" + span + "-01": "", "": "",
		"01-" + id + "-" + span + "-01-\n": "",
	} {
		if got := holdfast.ParseTrace(parent, "").ID(); got != want {
			t.Errorf("%q: got %q, want %q", parent, got, want)
		}
	}
	for state, valid := range map[string]bool{
		"rojo=00f067aa0ba902b7": true, "a=1, b@c=2,,": true, "a": false, "a=": false, "=1": false, "A=1": false, "a=1\n": false, ",": false, "a=1=2": false,
		strings.Repeat("a=1,", 32): true, strings.Repeat("a=1,", 33): false, "a=" + strings.Repeat("x", 511): false,
	} {
		if got := holdfast.ParseTrace("00-"+id+"-"+span+"-01", state).State; got != map[bool]string{true: state}[valid] {
			t.Errorf("%q: got %q", state, got)
		}
	}
}
