package holdfast_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast"
)

// SF-12: a UUID in any of its forms is one id.
func TestUUIDsAreOneValueInEveryForm(t *testing.T) {
	t.Parallel()
	const want = "01a21f5d-bd83-7efa-bd3f-39eaf909a3d3"
	for _, form := range []string{
		want, strings.ToUpper(want), strings.ReplaceAll(want, "-", ""), "{" + want + "}", "urn:uuid:" + want, "URN:UUID:" + strings.ToUpper(want),
	} {
		if id, err := holdfast.ParseID(form); err != nil || id != want {
			t.Errorf("%s: got %s, %v", form, id, err)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", strings.Repeat("x", 128), "!~"} {
		if id, err := holdfast.ParseID(good); err != nil || string(id) != good {
			t.Errorf("%q: got %q, %v", good, id, err)
		}
	}
	for _, bad := range []string{"", "a b", "a\n", "é", strings.Repeat("x", 129), "\x7f"} {
		if id, err := holdfast.ParseID(bad); err == nil {
			t.Errorf("%q was accepted as %q", bad, id)
		} else if f, ok := errors.AsType[*holdfast.FieldError](err); !ok || f.Field != "id" {
			t.Errorf("%q: %v does not name the field", bad, err)
		}
	}
}

// Outbox case 40: ids that are minted in the same instant differ.
func TestMintedIDsNeverCollide(t *testing.T) {
	t.Parallel()
	ids := make(chan holdfast.ID, 4000)
	for range 4 {
		go func() {
			for range 1000 {
				ids <- holdfast.NewID()
			}
		}()
	}
	seen := map[holdfast.ID]bool{}
	for range 4000 {
		id := <-ids
		if seen[id] {
			t.Fatalf("%s was minted twice", id)
		}
		seen[id] = true
	}
}

// OI-21, F1-97: a Response says what it answers, wherever it is handed in.
func TestAResponseSaysWhatItAnswers(t *testing.T) {
	t.Parallel()
	m := []holdfast.Message{{Kind: holdfast.Response, Source: "s", Destination: "a", Endpoint: "E"}}
	var fault *holdfast.FieldError
	if err := holdfast.Normalize("s", m); !errors.Is(err, holdfast.ErrInvalid) || !errors.As(err, &fault) || fault.Field != "correlationId" {
		t.Errorf("got %v", err)
	}
	m[0].CorrelationID = "order-42"
	if err := holdfast.Normalize("s", m); err != nil {
		t.Error(err)
	}
}

func TestParsedIDsAreStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		id, err := holdfast.ParseID(s)
		if err != nil {
			return
		}
		if again, err := holdfast.ParseID(string(id)); err != nil || again != id {
			t.Fatalf("%q became %q, then %q, %v", s, id, again, err)
		}
	})
}

// Every fault of a message is reported at once, each by its field.
func TestNormalizeNamesEveryFault(t *testing.T) {
	t.Parallel()
	ms := []holdfast.Message{{
		ID: "a b", Kind: "Question", Destination: "", Endpoint: "x y", CorrelationID: "c\x00", OrderingKey: strings.Repeat("k", 200),
		TTL: -1, Delay: -time.Second, Headers: map[string]string{"h": strings.Repeat("v", 9000)}, Retry: &holdfast.RetryPolicy{Attempts: -5},
	}}
	err := holdfast.Normalize("shop", ms)
	if !errors.Is(err, holdfast.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, field := range []string{"id ", "kind ", "destination ", "endpoint ", "correlationId ", "orderingKey ", "ttl ", "delay ", "headers.h ", "retry.attempts "} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

func TestNormalizeFillsWhatIsMissing(t *testing.T) {
	t.Parallel()
	ms := []holdfast.Message{{Destination: "d", Endpoint: "e"}, {ID: "URN:UUID:01A21F5D-BD83-7EFA-BD3F-39EAF909A3D3", Source: "own", Destination: "d", Endpoint: "e"}}
	if err := holdfast.Normalize("shop", ms); err != nil {
		t.Fatal(err)
	}
	if ms[0].ID == "" || ms[0].Source != "shop" || ms[0].Kind != holdfast.Signal {
		t.Errorf("got %+v", ms[0])
	}
	if ms[1].ID != "01a21f5d-bd83-7efa-bd3f-39eaf909a3d3" || ms[1].Source != "own" {
		t.Errorf("got %+v", ms[1])
	}
}

// F1-99: names and values of headers have 8 KiB together, and not a byte more.
func TestHeadersHaveARoom(t *testing.T) {
	t.Parallel()
	for size, ok := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		half := size / 2
		m := holdfast.Message{Destination: "d", Endpoint: "e", Headers: map[string]string{"a": strings.Repeat("x", half-1), "b": strings.Repeat("x", size-half-1)}}
		if err := holdfast.Normalize("shop", []holdfast.Message{m}); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The arrows of the lifecycle, as doc comments and guides draw them.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	want := map[holdfast.State]string{
		holdfast.Pending:   "claimed expired parked discarded",
		holdfast.Claimed:   "delivered pending parked expired discarded",
		holdfast.Delivered: "",
		holdfast.Parked:    "pending expired discarded",
		holdfast.Expired:   "pending discarded",
		holdfast.Discarded: "pending",
	}
	for from, names := range want {
		for to := range want {
			if got := from.CanBecome(to); got != strings.Contains(names, to.String()) {
				t.Errorf("%s to %s: %t", from, to, got)
			}
		}
		var back holdfast.State
		if err := back.UnmarshalText([]byte(from.String())); err != nil || back != from {
			t.Errorf("%s reads back as %s, %v", from, back, err)
		}
	}
}

func TestAFailureKeepsItsClassThroughWrapping(t *testing.T) {
	t.Parallel()
	inner := &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no", Err: errors.New("no")}
	f := holdfast.AsFailure(errors.Join(errors.New("outer"), inner))
	if f.Outcome != holdfast.Permanent || f.Code != "no" || f.Error() != "outer\nno" {
		t.Errorf("got %+v: %v", f, f)
	}
	if got := holdfast.AsFailure(inner); got != inner {
		t.Errorf("got %+v, want the failure itself", got)
	}
	if f := holdfast.AsFailure(errors.New("x")); f.Outcome != holdfast.Transient || f.Error() != "x" {
		t.Errorf("got %+v, want transient", f)
	}
}
