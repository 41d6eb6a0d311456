package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

func reply(tb testing.TB, text string) wire.Reply {
	tb.Helper()
	var d wire.Decoder
	r, err := d.DecodeReply([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestResponsesSurviveAReply(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ response, want string }{
		"none":                  {"", `{"acknowledged":true,"duplicateDetected":false,"outcome":"delivered"}`},
		"JSON as it is":         {`{"a" : 1e0,"b":"\u0041<"}`, `{"acknowledged":true,"duplicateDetected":false,"payload":{"a" : 1e0,"b":"\u0041<"},"outcome":"delivered"}`},
		"text":                  {"it's \"done\"\n", `{"acknowledged":true,"duplicateDetected":false,"payload":"it's \"done\"\n","payloadEncoding":"text","outcome":"delivered"}`},
		"bytes":                 {"\xff\x00", `{"acknowledged":true,"duplicateDetected":false,"payload":"/wA=","payloadEncoding":"base64","outcome":"delivered"}`},
		"null":                  {"null", `{"acknowledged":true,"duplicateDetected":false,"payload":"null","payloadEncoding":"text","outcome":"delivered"}`},
		"only spaces":           {" ", `{"acknowledged":true,"duplicateDetected":false,"payload":" ","payloadEncoding":"text","outcome":"delivered"}`},
		"breaks out":            {`1},"x":{`, `{"acknowledged":true,"duplicateDetected":false,"payload":"1},\"x\":{","payloadEncoding":"text","outcome":"delivered"}`},
		"deeper than JSON here": {strings.Repeat("[", 300) + strings.Repeat("]", 300), `{"acknowledged":true,"duplicateDetected":false,"payload":"` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `","payloadEncoding":"text","outcome":"delivered"}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wire.ReplyTo(holdfast.Receipt{Response: []byte(c.response)}, nil)
			data := r.AppendTo(nil)
			if string(data) != c.want || !json.Valid(data) {
				t.Errorf("got %s, want %s", data, c.want)
			}
			back := reply(t, string(data))
			if got := string(back.Response); got != c.response {
				t.Errorf("got response %q, want %q", got, c.response)
			}
		})
	}
}

func TestSpacesAroundAResponseAreCut(t *testing.T) {
	t.Parallel()
	r := wire.ReplyTo(holdfast.Receipt{Response: []byte("{\"a\": 1}\n")}, nil)
	back := reply(t, string(r.AppendTo(nil)))
	if got := string(back.Response); got != `{"a": 1}` {
		t.Errorf("got %q", got)
	}
}

func TestReceiversErrorsAreClassifiedWithoutTheirText(t *testing.T) {
	t.Parallel()
	hidden := errors.New("password=hidden at db.go:42")
	cases := map[string]struct {
		err  error
		want holdfast.Failure
	}{
		"a handler's":     {hidden, holdfast.Failure{Code: wire.CodeHandler}},
		"marked by us":    {holdfast.ReceiveFailure(hidden), holdfast.Failure{Code: wire.CodeHandler}},
		"a panic":         {&holdfast.Failure{Code: "panic", Err: hidden}, holdfast.Failure{Code: "panic"}},
		"a conflict":      {fmt.Errorf("x: %w", holdfast.ErrConflict), holdfast.Failure{Outcome: holdfast.Permanent, Code: "conflict", Reason: holdfast.ReasonConflict}},
		"too old":         {holdfast.ErrTooOld, holdfast.Failure{Outcome: holdfast.Permanent, Code: "too_old", Reason: holdfast.ReasonTooOld}},
		"invalid":         {holdfast.ErrInvalid, holdfast.Failure{Outcome: holdfast.Permanent, Code: "invalid_message", Reason: holdfast.ReasonPermanent}},
		"disk full":       {holdfast.ErrDiskFull, holdfast.Failure{Code: "disk_full"}},
		"closed":          {holdfast.ErrClosed, holdfast.Failure{Code: "stopping"}},
		"out of time":     {fmt.Errorf("commit: %w", context.DeadlineExceeded), holdfast.Failure{Code: "timeout"}},
		"permanent":       {fmt.Errorf("x: %w", &holdfast.Failure{Outcome: holdfast.Permanent}), holdfast.Failure{Outcome: holdfast.Permanent, Code: "permanent", Reason: holdfast.ReasonPermanent}},
		"no endpoint":     {&holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonNoEndpoint}, holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_endpoint", Reason: holdfast.ReasonNoEndpoint}},
		"busy":            {&holdfast.Failure{Code: "busy", RetryAfter: 1500 * time.Millisecond}, holdfast.Failure{Code: "busy", RetryAfter: 1500 * time.Millisecond}},
		"not started":     {&holdfast.Failure{Outcome: holdfast.NotStarted}, holdfast.Failure{Outcome: holdfast.NotStarted, Code: "not_started"}},
		"unreachable":     {&holdfast.Failure{Outcome: holdfast.Unreachable}, holdfast.Failure{Outcome: holdfast.Unreachable, Code: "unreachable"}},
		"lane fault":      {&holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_grant"}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_grant"}},
		"maybe":           {&holdfast.Failure{MaybeDelivered: true}, holdfast.Failure{Code: "transient", MaybeDelivered: true}},
		"no such success": {&holdfast.Failure{Outcome: holdfast.Succeeded}, holdfast.Failure{Code: "transient"}},
		"no such code":    {&holdfast.Failure{Code: "Hidden text!"}, holdfast.Failure{Code: "transient"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wire.ReplyTo(holdfast.Receipt{ID: "m1"}, c.err)
			data := string(r.AppendTo(nil))
			if strings.Contains(strings.ToLower(data), "hidden") {
				t.Errorf("got %s, which tells internals", data)
			}
			back := reply(t, data)
			res, ok := back.Result("m1")
			if !ok || back.Acknowledged {
				t.Fatalf("got %s, which is no classified refusal", data)
			}
			got := *failure(t, res.Err)
			got.Err = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("got %+v, want %+v (-want +got):\n%s", got, c.want, diff)
			}
		})
	}
}

// F1-43: what a handler says of a message in a Failure of its own is told, within
// bounds, and without what is wrapped around it.
func TestAnExplicitFailureSaysItself(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"the order names no sku":  "the order names no sku",
		"two\nlines\x1b[31m":      "two lines [31m",
		strings.Repeat("x", 5000): strings.Repeat("x", 300) + "…",
	} {
		r := wire.ReplyTo(holdfast.Receipt{}, fmt.Errorf("handle order 7: %w", &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_sku", Err: errors.New(text)}))
		if back := reply(t, string(r.AppendTo(nil))); back.Error != want || back.Code != "no_sku" {
			t.Errorf("got %q, code %q, want %q", back.Error, back.Code, want)
		}
	}
}

func TestForeignRepliesAreUnderstood(t *testing.T) {
	t.Parallel()
	ack := func(dup bool, response string) holdfast.Result {
		r := holdfast.Result{Receipt: holdfast.Receipt{ID: "m1", State: holdfast.Delivered, Duplicate: dup}}
		if response != "" {
			r.Receipt.Response = []byte(response)
		}
		return r
	}
	cases := map[string]struct {
		in   string
		want holdfast.Result
		ok   bool
	}{
		"an ack":                   {`{"acknowledged":true}`, ack(false, ""), true},
		"all of the source's":      {`{"acknowledged":true,"duplicateDetected":true,"payload":null,"error":null}`, ack(true, ""), true},
		"a duplicate is success":   {`{"acknowledged":false,"duplicateDetected":true}`, ack(true, ""), true},
		"a response in a string":   {`{"acknowledged":true,"payload":"{\"a\":1}"}`, ack(false, `"{\"a\":1}"`), true},
		"unclassified":             {`{"acknowledged":false,"error":"boom"}`, holdfast.Result{}, false},
		"an outcome of the future": {`{"acknowledged":false,"outcome":"sideways"}`, holdfast.Result{}, false},
		"success without ack":      {`{"acknowledged":false,"outcome":"delivered"}`, holdfast.Result{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reply(t, c.in)
			got, ok := r.Result("m1")
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestWhatAPeerSaysIsCutToSize(t *testing.T) {
	t.Parallel()
	r := reply(t, `{"acknowledged":false,"outcome":"permanent","reason":"operator","code":"<script>","retryAfterMs":99999999999,"error":"a\u0007b`+strings.Repeat("é", 200)+`"}`)
	if r.Reason != "" || r.Code != "" || r.RetryAfter != 24*time.Hour || len(r.Error) > 310 || strings.ContainsRune(r.Error, 7) {
		t.Errorf("got %+v", r)
	}
	for _, wait := range []string{"-1", "1.5", "1e3", `"soon"`, "null", "99999999999999999999"} {
		if got := reply(t, `{"acknowledged":false,"retryAfterMs":`+wait+`}`).RetryAfter; got != 0 {
			t.Errorf("retryAfterMs %s: got %v, want no wait", wait, got)
		}
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `<html>`, `[]`, `{}`, `{"Acknowledged":true}`, `{"acknowledged":"true"}`, `{"acknowledged":1}`, `{"acknowledged":true}x`,
		`{"acknowledged":false,"acknowledged":true}`, `{"acknowledged":true,"payload":1,"payload":2}`,
		`{"acknowledged":true,"payload":"x","payloadEncoding":"rot13"}`, `{"acknowledged":true,"payload":"!","payloadEncoding":"base64"}`,
		`{"acknowledged":true,"payload":1,"payloadEncoding":"text"}`, `{"acknowledged":true,"payloadEncoding":"text"}`,
		`{"acknowledged":true,"payload":"\ud800","payloadEncoding":"text"}`, `{"acknowledged":null}`, `{"acknowledged":true,"error":{}}`,
	} {
		var d wire.Decoder
		if r, err := d.DecodeReply([]byte(in)); err == nil {
			t.Errorf("%s: got %+v, want an error", in, r)
		}
	}
}
