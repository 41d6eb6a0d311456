package audit_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
)

func full() audit.Record {
	return audit.Record{
		ID: "0198c0de-0000-7000-8000-000000000001", Occurred: time.Date(2026, 11, 30, 9, 0, 0, 123456000, time.UTC),
		Channel: audit.Notification, Kind: audit.NotifyDeliver, Status: audit.Attempted,
		Correlation: "c", Execution: "e", Parent: "p", Trace: "t", Site: "s", Node: "n", Instance: "i", Script: "x", Actor: "system", Target: "<a@b.c>",
		HTTP: 422, Took: 3 * time.Millisecond, Error: "no & such", Request: "{}", Response: "ok", Extra: json.RawMessage(`{"a":1}`),
	}
}

// Case A5: what is hashed is what is stored, and reading it back loses nothing.
func TestARecordIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := full()
	data, values, err := r.Leaf()
	if err != nil || len(values) != 0 {
		t.Fatal(values, err)
	}
	again, err := audit.Read(data, nil)
	if diff := cmp.Diff(r, again); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if !strings.HasPrefix(string(data), `{"v":1,"id":"0198c0de-`) || strings.Contains(string(data), `\u003c`) {
		t.Errorf("leaf %s", data)
	}
}

func TestPersonalValuesAreSealed(t *testing.T) {
	t.Parallel()
	r := full()
	r.Personal = []string{"error", "target"}
	data, values, err := r.Leaf()
	if err != nil || len(values) != 2 || strings.Contains(string(data), "a@b.c") || strings.Contains(string(data), "no & such") {
		t.Fatalf("leaf %s, values %v, error %v", data, values, err)
	}
	whole, err := audit.Read(data, values)
	if diff := cmp.Diff(r, whole); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	erased, err := audit.Read(data, values[:1])
	if err != nil || len(erased.Erased) != 1 || erased.Erased[0] != values[1].Field {
		t.Errorf("without a value: %+v, %v", erased, err)
	}
	values[0].Text += "."
	if _, err := audit.Read(data, values); !errors.Is(err, audit.ErrLeaf) {
		t.Errorf("a changed value gives %v", err)
	}
}

func TestARecordNamesItsSite(t *testing.T) {
	t.Parallel()
	r := full()
	r.Site = ""
	if _, _, err := r.Leaf(); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("without a site: %v (SF-26)", err)
	}
}

// What others have sent is kept as far as it can be, and never stops the log.
func TestARecordTakesWhatOthersHaveSent(t *testing.T) {
	t.Parallel()
	r := full()
	r.Error, r.Extra = "a\xffb\u2028<\x01", json.RawMessage("{ \"b\": \"<\xff>\", \"a\": 1,\n\"a\":2 }")
	data, _, err := r.Leaf()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(data), "\"error\":\"a\ufffdb\u2028<\\u0001\",\"request\":\"{}\",\"response\":\"ok\",\"extra\":{\"b\":\"<\ufffd>\",\"a\":1,\"a\":2}}") || !json.Valid(data) {
		t.Errorf("leaf %s", data)
	}
	again, err := audit.Read(data, nil)
	if err != nil || again.Error != "a\ufffdb\u2028<\x01" || string(again.Extra) != "{\"b\":\"<\ufffd>\",\"a\":1,\"a\":2}" {
		t.Errorf("read %+v, %v", again, err)
	}
	r.Extra = json.RawMessage(`{`)
	if _, _, err := r.Leaf(); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("an extra that is no JSON gives %v", err)
	}
}
