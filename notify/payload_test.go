package notify_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// NO-04: what a site sends, central reads; id and site are the message's.
func TestANotificationTravelsInAMessage(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]notify.Notification{
		"all of it": {
			ID: "n", Type: "alarm", List: "operators", Subject: "Tank 4 <full> & \"hot\"", Body: "Level\t98 %.\nCall é.", Data: json.RawMessage(`{"level":98}`),
			Origin: notify.Origin{
				Site: "plant-7", Instance: "tank-4", Script: "level.lua", Execution: "7", ParentExecution: "6",
				Enqueued: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC),
			},
		},
		"little":        {ID: "n", List: "l", Subject: "s", Origin: notify.Origin{Site: "plant-7"}},
		"without title": {ID: "n", List: "l", Body: "b", Origin: notify.Origin{Site: "plant-7"}},
	} {
		payload, err := notify.Encode(n)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, _ := notify.Encode(n)
		got, err := notify.Decode(holdfast.Message{ID: "n", Source: "plant-7", Payload: payload, Headers: n.Origin.Headers()})
		if diff := cmp.Diff(n, got); err != nil || diff != "" || string(again) != string(payload) {
			t.Errorf("%s: %v, %s then %s (-want +got):\n%s", name, err, payload, again, diff)
		}
	}
}

// What people read has no breaks in its subject, and nothing that a mail or a
// database would act on.
func TestTextsAreCleaned(t *testing.T) {
	t.Parallel()
	payload, err := notify.Encode(notify.Notification{List: "l", Subject: " a\r\nBcc: x\x00 \u2028 b\t", Body: "one\r\ntwo\x00\x1b[31m\tthree", Data: json.RawMessage("null")})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"list":"l","subject":"a Bcc: x b","body":"one\ntwo  [31m\tthree"}`; string(payload) != want {
		t.Errorf("got %s, want %s", payload, want)
	}
	// F1-68: each kind of line end is one, for every channel.
	payload, err = notify.Encode(notify.Notification{List: "l", Subject: "a\rb", Body: "one\rtwo\r\nthree\n\rfour\r"})
	if want := `{"list":"l","subject":"a b","body":"one\ntwo\nthree\n\nfour\n"}`; err != nil || string(payload) != want {
		t.Errorf("got %s, %v; want %s", payload, err, want)
	}
	n, err := notify.Decode(holdfast.Message{Payload: []byte(`{"list":"l","subject":"a\nb","body":"\u0000"}`)})
	if err != nil || n.Subject != "a b" || n.Body != " " || n.Origin.Site != notify.UnknownSite { // SF-26
		t.Errorf("got %+v, %v", n, err)
	}
}

// F1-99: each byte that a terminal or a mail would act on goes, and none that
// people write; a subject has exactly so much room.
func TestWhichCharactersAreCleaned(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"a\vb": "a b", "a\x7fb": "a b", "a\uFFFDb": "a b", "a\nb\tc": "a\nb\tc", "a\u0080é漢\uFF01b": "a\u0080é漢\uFF01b", "a\x1fb": "a b", "a b~": "a b~",
	} {
		payload, err := notify.Encode(notify.Notification{List: "l", Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := notify.Decode(holdfast.Message{Payload: payload}); err != nil || n.Body != want {
			t.Errorf("%q became %q, %v; want %q", body, n.Body, err, want)
		}
	}
	n, err := notify.Decode(holdfast.Message{Payload: []byte(`{"list":"l","subject":"a\u0085b\u0086c\u2028d\u2029e"}`)})
	if err != nil || n.Subject != "a b\u0086c d e" {
		t.Errorf("got subject %q, %v", n.Subject, err)
	}
	for length, ok := range map[int]bool{notify.MaxSubject: true, notify.MaxSubject + 1: false} {
		if _, err := notify.Encode(notify.Notification{List: "l", Subject: strings.Repeat("x", length)}); (err == nil) != ok {
			t.Errorf("a subject of %d bytes: %v", length, err)
		}
	}
}

// Inside data, everything that is JSON is the author's.
func TestDataIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	const data = `{"a": 1,"a":2.0, "Subject":"x","subject":"y"}`
	n, err := notify.Decode(holdfast.Message{Payload: []byte(`{"list":"l","subject":"s","data":` + data + `}`)})
	if err != nil || string(n.Data) != data {
		t.Errorf("got %s, %v", n.Data, err)
	}
}

// SF-20: what is no notification is refused, and the reason names the field.
func TestWhatIsNoNotificationIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1001)
	for payload, want := range map[string]string{
		``:                                      "unexpected end",
		`null`:                                  `list "" must not be empty`,
		`[]`:                                    "array",
		`7`:                                     "not an object",
		`{"list":"l","subject":"s"} {}`:         "after top-level value",
		`{"list":"l","subject":"s","to":"x"}`:   `unknown field "to"`,
		`{"list":7}`:                            "list",
		`{"list":"a","subject":"s","list":"b"}`: "list stands twice", // F1-20
		`{"list":"a","Subject":"s"}`:            `unknown field "Subject"`,
		`{"list":"a","sub\u006aect":"s","subject":"t"}`:    "subject stands twice",
		`{"list":"a b","subject":"s"}`:                     "letters",
		`{"list":"..","subject":"s"}`:                      "letters",
		`{"list":"` + long + `","subject":"s"}`:            "1 to 64",
		`{"list":"l","subject":"` + long + `"}`:            "subject",
		`{"list":"l","subject":" \n","body":" \t"}`:        "at least one must be set",
		`{"list":"l","subject":"s","type":"a\nb"}`:         "type",
		`{"list":"l","subject":"s","type":"` + long + `"}`: "type",
	} {
		_, err := notify.Decode(holdfast.Message{Payload: []byte(payload)})
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), want) || len(err.Error()) > 2500 {
			t.Errorf("%.60s: got %v, want %q in it", payload, err, want)
		}
	}
	for want, n := range map[string]notify.Notification{
		"not JSON":    {List: "l", Subject: "s", Data: json.RawMessage("{")},
		"is too long": {List: "l", Subject: "s", Body: strings.Repeat("x", 1<<20)},
		"not UTF-8":   {List: "l", Subject: "s", Body: "\xff"},
	} {
		if _, err := notify.Encode(n); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// SF-13: provenance comes from another machine: it is bounded, and an instant
// that a store could not keep is none.
func TestAnOriginFromElsewhereIsBounded(t *testing.T) {
	t.Parallel()
	o := notify.OriginOf(map[string]string{
		notify.HeaderInstance: strings.Repeat("é", 200), notify.HeaderScript: "s", notify.HeaderEnqueued: "0001-01-01T00:00:00Z", "other": "x",
	})
	if len(o.Instance) != notify.MaxOriginLen || o.Script != "s" || !o.Enqueued.IsZero() || o.Site != "" {
		t.Errorf("got %+v", o)
	}
	for _, at := range []string{"2000-01-01T00:00:00Z", "2200-12-31T23:59:59Z"} {
		if o := notify.OriginOf(map[string]string{notify.HeaderEnqueued: at}); o.Enqueued.Format(time.RFC3339) != at {
			t.Errorf("%q is read as %s", at, o.Enqueued)
		}
	}
	for _, at := range []string{"", "today", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "1999-12-31T23:59:59Z", "2201-01-01T00:00:00Z"} {
		if o := notify.OriginOf(map[string]string{notify.HeaderEnqueued: at}); !o.Enqueued.IsZero() {
			t.Errorf("%q is read as %s", at, o.Enqueued)
		}
	}
	if h := (notify.Origin{}).Headers(); h == nil || len(h) != 0 {
		t.Errorf("nothing is said in %v, want an empty map of the caller's own", h)
	}
	if err := notify.CheckHeaders(map[string]string{"lot": "9", "h": ""}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"hf-script", "HF-", "hf-anything"} {
		if err := notify.CheckHeaders(map[string]string{name: "x"}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("header %s: got %v, want ErrInvalid", name, err)
		}
	}
}

// BenchmarkDecode is what central and the channel do with each notification.
func BenchmarkDecode(b *testing.B) {
	text, err := notify.Encode(notify.Notification{Type: "batch.failed", List: "operators", Subject: "Batch 7 failed at filler 3", Body: strings.Repeat("The filler has stopped, and the tank is full. ", 20)})
	if err != nil {
		b.Fatal(err)
	}
	m := holdfast.Message{ID: "n", Source: "plant-7", Payload: text}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := notify.Decode(m); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"t","list":"l","subject":"s","body":"b","data":{"a":[1,"\u0000"]}}`))
	f.Add([]byte(`{"list":"l","subject":"\u2028\ud800","body":"\r\n"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		n, err := notify.Decode(holdfast.Message{ID: "n", Source: "s", Payload: payload})
		if err != nil {
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			return
		}
		again, err := notify.Encode(n)
		if err != nil && len(payload) < notify.MaxPayload/8 {
			t.Fatalf("%q was read as %+v, which cannot be written: %v", payload, n, err)
		}
		if err != nil {
			return
		}
		back, err := notify.Decode(holdfast.Message{ID: "n", Source: "s", Payload: again})
		if err != nil || back.Subject != n.Subject || back.Body != n.Body || back.List != n.List || back.Type != n.Type {
			t.Fatalf("%q: got %+v, %v, want %+v", payload, back, err, n)
		}
	})
}
