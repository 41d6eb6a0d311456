package holdfast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

type orderPlaced struct {
	Order int `json:"order"`
}

func (orderPlaced) Endpoint() string { return "OrderPlaced" }

// named is a payload whose endpoint is its value.
type named string

func (n named) Endpoint() string { return string(n) }

type nameless struct{}

func (nameless) Endpoint() string { return "" }

type spaced struct{}

func (spaced) Endpoint() string { return "Order Placed" }

// embedding has an Endpoint that panics while nothing is embedded.
type embedding struct{ holdfast.Payload }

type byPointer struct{ name string }

func (p *byPointer) Endpoint() string { return p.name }

type unencodable struct{ C chan int }

func (unencodable) Endpoint() string { return "Unencodable" }

func ignore[P holdfast.Payload](context.Context, *sqlite.Tx, P) error { return nil }

// A handler that could never be called, or whose endpoint nobody can name, is
// refused where it is registered.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	in := db.Inbox()
	if err := holdfast.Register(in, ignore[orderPlaced]); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a pointer":                     {holdfast.Register(in, ignore[*byPointer]), "register *holdfast_test.byPointer: invalid: use the value type"},
		"a pointer to a value":          {holdfast.Register(in, ignore[*orderPlaced]), "use the value type"},
		"an interface":                  {holdfast.Register(in, ignore[holdfast.Payload]), "register holdfast.Payload: invalid: use the value type"},
		"an endpoint that panics":       {holdfast.Register(in, ignore[embedding]), "Endpoint of holdfast_test.embedding panics"},
		"an endpoint without a name":    {holdfast.Register(in, ignore[nameless]), `endpoint "" must not be empty`},
		"one that depends on the value": {holdfast.Register(in, ignore[named]), `endpoint "" must not be empty`},
		"an endpoint with a space":      {holdfast.Register(in, ignore[spaced]), `endpoint "Order Placed" byte 6`},
		"an endpoint that is taken":     {holdfast.Register(in, ignore[orderPlaced]), "handle OrderPlaced: invalid: the endpoint has a handler already"},
		"a taken endpoint, by name":     {in.Handle("OrderPlaced", noResponse), "has a handler already"},
		"no name":                       {in.Handle("", noResponse), `endpoint "" must not be empty`},
		"a long name":                   {in.Handle(strings.Repeat("x", 129), noResponse), "has 129 bytes; at most 128 fit"},
		"no handler":                    {in.Handle("Other", nil), "handle Other: invalid: the handler is nil"},
	} {
		if !errors.Is(c.err, holdfast.ErrInvalid) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrInvalid and %q", name, c.err, c.want)
		}
	}
	if err := in.Handle("Other", noResponse); err != nil {
		t.Errorf("a name that was refused once: %v", err)
	}
}

func noResponse(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, nil }

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	for name, c := range map[string]struct {
		payload holdfast.Payload
		want    string
	}{
		"nothing":                    {nil, "send to inventory: invalid: the payload is nil"},
		"a nil pointer":              {(*byPointer)(nil), "Endpoint of *holdfast_test.byPointer panics"},
		"an endpoint that panics":    {embedding{}, "Endpoint of holdfast_test.embedding panics"},
		"an endpoint without a name": {nameless{}, `endpoint "" must not be empty`},
	} {
		err := holdfast.Send(t.Context(), db, "inventory", c.payload)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrInvalid and %q", name, err, c.want)
		}
	}
	err := holdfast.Send(t.Context(), db, "inventory", unencodable{})
	if _, ok := errors.AsType[*json.UnsupportedTypeError](err); !ok || !strings.Contains(err.Error(), "send Unencodable to inventory: encode payload") {
		t.Errorf("got %v, want the encoder's error with the endpoint", err)
	}
	if err := holdfast.Send(t.Context(), db, "", orderPlaced{}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("no destination: got %v, want ErrInvalid", err)
	}
	if n := db.Counts().Pending; n != 0 {
		t.Errorf("%d messages were enqueued", n)
	}
}

// What Send encodes, Register decodes: the endpoint stands in one place.
func TestSendAndRegisterMeet(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	in := db.Inbox()
	var got []orderPlaced
	if err := holdfast.Register(in, func(_ context.Context, _ *sqlite.Tx, p orderPlaced) error {
		got = append(got, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := holdfast.Send(t.Context(), db, "inventory", orderPlaced{42}); err != nil {
		t.Fatal(err)
	}
	if err := holdfast.Send(t.Context(), db, "inventory", &orderPlaced{43}); err != nil {
		t.Fatal(err) // to send by pointer is fine
	}
	batch, err := db.Claim(t.Context(), map[string]int{"inventory": 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range batch.Claims {
		for _, duplicate := range []bool{false, true} {
			if r, err := in.Receive(t.Context(), c.Message); err != nil || r.Duplicate != duplicate {
				t.Errorf("receive: %+v, %v", r, err)
			}
		}
	}
	if diff := cmp.Diff([]orderPlaced{{42}, {43}}, got); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

// arrivals are one message of each fate.
func arrivals() []holdfast.Message {
	at := func(endpoint, payload string) holdfast.Message {
		return holdfast.Message{ID: holdfast.ID(endpoint + payload), Source: "shop", Endpoint: endpoint, Payload: []byte(payload)}
	}
	conflict := at("OrderPlaced", `{"order":1}`)
	conflict.Payload = []byte(`{"order":9}`)
	return []holdfast.Message{
		at("OrderPlaced", `{"order":1}`), at("OrderPlaced", `{"order":"x"}`), at("NoSuch", "{}"), at("Plain", "{}"),
		at("Typed", "{}"), conflict, at("Panics", `{"secret":1}`), at("Short", "{}"), at("OrderPlaced", `{"order":2}`),
	}
}

// Each message of a batch has its own fate, in one transaction as in many, and
// the same one by one (OI-07).
func TestReceiveBatchSaysWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	for name, receive := range map[string]func(ctx context.Context, in *holdfast.Inbox[*sqlite.Tx], ms []holdfast.Message) []holdfast.Result{
		"one by one": func(ctx context.Context, in *holdfast.Inbox[*sqlite.Tx], ms []holdfast.Message) (list []holdfast.Result) {
			for _, m := range ms {
				r, err := in.Receive(ctx, m)
				list = append(list, holdfast.Result{Receipt: r, Err: err})
			}
			return list
		},
		"a batch": func(ctx context.Context, in *holdfast.Inbox[*sqlite.Tx], ms []holdfast.Message) []holdfast.Result {
			return in.ReceiveBatch(ctx, ms)
		},
		"together": func(ctx context.Context, in *holdfast.Inbox[*sqlite.Tx], ms []holdfast.Message) []holdfast.Result {
			in.Together = true
			return in.ReceiveBatch(ctx, ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openStore(t)
			defer closeStore(t, db)
			in := db.Inbox()
			var handled []int
			for _, err := range []error{
				holdfast.Register(in, func(_ context.Context, _ *sqlite.Tx, p orderPlaced) error {
					handled = append(handled, p.Order)
					return nil
				}),
				in.Handle("Plain", func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
					return nil, errors.New("no stock")
				}),
				in.Handle("Panics", func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) { panic(string(m.Payload)) }),
				in.Handle("Short", func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) { return m.Payload[:99], nil }),
				in.Handle("Typed", func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
					return nil, fmt.Errorf("reserve: %w", &holdfast.Failure{Outcome: holdfast.Permanent, Code: "closed", Reason: holdfast.ReasonTooOld, Err: errors.New("closed")})
				}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, r := range receive(t.Context(), in, arrivals()) {
				if r.Err == nil {
					got = append(got, r.Receipt.State.String())
					continue
				}
				f := holdfast.AsFailure(r.Err)
				got = append(got, fmt.Sprint(f.Outcome, " ", f.Code, " ", f.Reason))
				if text := f.Error(); f.Code == "handler_panic" && (!strings.HasPrefix(text, "handler panicked at register_test.go:") || strings.Contains(text, "secret")) {
					t.Errorf("the panic reads %q, want where it was and no payload", text)
				}
			}
			want := []string{
				"delivered", "permanent undecodable undecodable", "permanent no_endpoint no_endpoint", "transient handler_error ",
				"permanent closed too_old", "permanent conflict conflict", "transient handler_panic ", "transient handler_panic ", "delivered",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fates (-want +got):\n%s", diff)
			}
			if !slices.Equal(handled, []int{1, 2}) {
				t.Errorf("handled %v, want 1 and 2", handled)
			}
			if n := db.Counts().Inbox; n != 2 {
				t.Errorf("%d ids are remembered, want those of the two that were handled", n)
			}
		})
	}
}

// After the sender's patience is over nothing is begun, and it is told so.
func TestReceiveBatchBeginsNothingAfterItsTime(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("together=%t", together), func(t *testing.T) {
			t.Parallel()
			db := openStore(t)
			defer closeStore(t, db)
			in := db.Inbox()
			in.Together = together
			ctx, cancel := context.WithCancel(t.Context())
			ran := 0
			if err := in.Handle("E", func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
				ran++
				return nil, nil
			}); err != nil {
				t.Fatal(err)
			}
			if got := in.ReceiveBatch(ctx, nil); len(got) != 0 {
				t.Errorf("got %+v of nothing", got)
			}
			cancel()
			for i, r := range in.ReceiveBatch(ctx, []holdfast.Message{{ID: "1", Source: "s", Endpoint: "E"}, {ID: "2", Source: "s", Endpoint: "E"}}) {
				if f := holdfast.AsFailure(r.Err); r.Err == nil || f.Outcome != holdfast.NotStarted {
					t.Errorf("message %d: got %v, want NotStarted", i+1, r.Err)
				}
			}
			if ran != 0 {
				t.Errorf("%d handlers ran", ran)
			}
		})
	}
}

// A patience that ends in the middle of a shared transaction undoes it: no
// message of it is taken, and each may come again.
func TestTogetherIsAllOrNothingWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	in := db.Inbox()
	in.Together = true
	ctx, cancel := context.WithCancel(t.Context())
	if err := in.Handle("E", func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		if m.ID == "2" {
			cancel()
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	ms := []holdfast.Message{{ID: "1", Source: "s", Endpoint: "E"}, {ID: "2", Source: "s", Endpoint: "E"}, {ID: "3", Source: "s", Endpoint: "E"}}
	for i, r := range in.ReceiveBatch(ctx, ms) {
		if r.Err == nil || holdfast.AsFailure(r.Err).Outcome == holdfast.Permanent {
			t.Errorf("message %d: got %v, want a failure that may be tried again", i+1, r.Err)
		}
	}
	for i, r := range in.ReceiveBatch(t.Context(), ms) {
		if r.Err != nil || r.Receipt.Duplicate {
			t.Errorf("message %d, again: %+v", i+1, r)
		}
	}
}
