package transporttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// Source is the source of every message of the suite. A transport with secrets must know one for
// it.
const Source = "conformance"

// Pair joins a receiver to a new Deliverer. It cleans up after the test.
type Pair func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer

// Suite describes a transport under test. Only New is required. A transport leaves out the fields
// that do not apply to it.
type Suite struct {
	New         Pair
	WrongSecret Pair                                                       // the sender's secret differs from the receiver's
	Nobody      func(t *testing.T) holdfast.Deliverer                      // a Deliverer to an address where nothing listens
	MaxPayload  int                                                        // in bytes; New's receiver takes no more
	Virtual     func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer // like New, without sockets; called inside a synctest bubble
}

// Run runs the tests that every transport must pass.
func Run(t *testing.T, newPair Pair) {
	t.Helper()
	Suite{New: newPair}.Run(t)
}

// Run runs the tests that every transport must pass, and those for the optional fields of s.
func (s Suite) Run(t *testing.T) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Suite){
		"acknowledges":                           testAck,
		"tells duplicates":                       testDuplicate,
		"carries every payload as it is":         testPayloads,
		"carries every response as it is":        testResponses,
		"carries headers and attempt":            testHeaders,
		"classifies failures":                    testFailures,
		"parks what is not JSON":                 testNotJSON,
		"contains panics":                        testPanic,
		"does not start what is cancelled":       testCancelledBefore,
		"may have delivered what is cancelled":   testCancelledMeanwhile,
		"may have delivered what times out":      testTimeout,
		"is used concurrently":                   testConcurrent,
		"gives each of a batch its own result":   testBatch,
		"parks one of a batch":                   testBatchNotJSON,
		"knows when a batch's result is missing": testBatchMissing,
		"has one effect over a faulty network":   testFaulty,
		"finds nobody":                           testNobody,
		"refuses what is too large":              testOversize,
		"holds the lane at a wrong secret":       testWrongSecret,
		"does not start what is out of budget":   testBudget,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// Message returns a message of the suite, with all fields that travel.
func Message() holdfast.Message {
	return holdfast.Message{
		ID: holdfast.NewID(), Source: Source, Destination: "peer", Endpoint: "OrderApproved", Kind: holdfast.Command,
		CorrelationID: "order 42", OrderingKey: "größe", Payload: []byte(`{"orderId":42}`),
		Headers: map[string]string{"traceparent": "00-1", "leer": ""},
		Attempt: holdfast.Attempt{Number: 3, Cycle: 2, FirstAgo: 1500 * time.Millisecond, RetryFor: time.Hour, Forced: true},
	}
}

// arrived returns m as a receiver sees it.
func arrived(m holdfast.Message) holdfast.Message {
	m.Destination = ""
	return m
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s: got %+v, want %+v (-want +got):\n%s", what, got, want, d)
	}
}

// check compares the classification of err. It does not compare an empty code.
func check(t *testing.T, err error, want holdfast.Failure) {
	t.Helper()
	f, ok := errors.AsType[*holdfast.Failure](err)
	if !ok {
		t.Fatalf("got error %v, want a Failure: %v", err, want.Outcome)
	}
	got := *f
	got.Err = nil
	if want.Code == "" {
		got.Code = ""
	}
	diff(t, err.Error(), want, got)
}

func testAck(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{}
	d := s.New(t, r)
	m := Message()
	for range 2 { // the second delivery reuses the connection
		receipt, err := d.Deliver(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "receipt", holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}, receipt)
	}
	for _, got := range r.Got() {
		got.Destination = ""
		diff(t, "message", arrived(m), got)
	}
	if n := len(r.Got()); n != 2 {
		t.Errorf("got %d messages, want 2", n)
	}
}

func testDuplicate(t *testing.T, s Suite) {
	t.Helper()
	b := &Inbox{}
	d := s.New(t, b)
	m := Message()
	for _, duplicate := range []bool{false, true, true} {
		receipt, err := d.Deliver(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "receipt", holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Duplicate: duplicate, Response: m.Payload}, receipt)
	}
}

func testPayloads(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{}
	d := s.New(t, r)
	var want []string
	for _, p := range []string{
		`null`, `true`, `""`, `0`, `{}`, "{ \"a\" :\t[ 1 ,\r\n 2 ] }", `"\u0041\/\u00e9 é \ud83d\ude00"`, `"<script>&amp;"`, "\"\u2028\u2029\"",
		`[12345678901234567890.10, 1E400, -0.0, 1e-0]`, `{"a":1,"a":2}`, `{"messageId":"x","headers":{"rf-hmac":""}}`, "[\n\n]",
	} {
		m := Message()
		m.Payload = []byte(p)
		if _, err := d.Deliver(t.Context(), m); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		want = append(want, p)
	}
	var got []string
	for _, m := range r.Got() {
		got = append(got, string(m.Payload))
	}
	diff(t, "payloads", want, got)
}

func testResponses(t *testing.T, s Suite) {
	t.Helper()
	response := ""
	r := &Recorder{Answer: func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		return holdfast.Receipt{ID: m.ID, Response: []byte(response)}, nil
	}}
	d := s.New(t, r)
	for _, response = range []string{
		"", "null", "{ \"a\" : 1e0 }", `"\u0041<&>"`, "plain text\n", "with \"quotes\" and \\", "1 2", `{"a":`, "\x00\xff\xfe", " ",
	} {
		receipt, err := d.Deliver(t.Context(), Message())
		if err != nil {
			t.Fatalf("%q: %v", response, err)
		}
		if got := string(receipt.Response); got != response {
			t.Errorf("got response %q, want %q", got, response)
		}
	}
}

func testHeaders(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{}
	d := s.New(t, r)
	var want []holdfast.Message
	for _, change := range []func(m *holdfast.Message){
		func(*holdfast.Message) {},
		func(m *holdfast.Message) { m.Headers = nil },
		func(m *holdfast.Message) {
			m.Headers = map[string]string{"Größe": "ü\u2028\"<", "Host": "x", "Content-Length": "7"}
		},
		func(m *holdfast.Message) { m.Attempt = holdfast.Attempt{Number: 1, Cycle: 1} },
		func(m *holdfast.Message) { m.Attempt = holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: -1} },
		func(m *holdfast.Message) { m.CorrelationID, m.OrderingKey, m.Kind = "", "", holdfast.Command },
		func(m *holdfast.Message) { m.ID = "order/42" },
	} {
		m := Message()
		change(&m)
		if _, err := d.Deliver(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want = append(want, arrived(m))
	}
	got := r.Got()
	for i := range got {
		got[i].Destination = ""
	}
	diff(t, "messages", want, got)
}

func testFailures(t *testing.T, s Suite) {
	t.Helper()
	var answer error
	d := s.New(t, &Recorder{Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
		return holdfast.Receipt{}, answer
	}})
	permanent := func(r holdfast.Reason) holdfast.Failure {
		return holdfast.Failure{Outcome: holdfast.Permanent, Reason: r}
	}
	for _, c := range []struct {
		answer error
		want   holdfast.Failure
	}{
		{errors.New("handler"), holdfast.Failure{}},
		{holdfast.ErrConflict, permanent(holdfast.ReasonConflict)},
		{holdfast.ErrTooOld, permanent(holdfast.ReasonTooOld)},
		{holdfast.ErrInvalid, permanent(holdfast.ReasonPermanent)},
		{holdfast.ErrDiskFull, holdfast.Failure{}},
		{holdfast.ErrClosed, holdfast.Failure{}},
		{&holdfast.Failure{Outcome: holdfast.Permanent}, permanent(holdfast.ReasonPermanent)},
		{&holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonNoEndpoint}, permanent(holdfast.ReasonNoEndpoint)},
		{&holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonTooLarge}, permanent(holdfast.ReasonTooLarge)},
		{&holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonUndecodable}, permanent(holdfast.ReasonUndecodable)},
		{&holdfast.Failure{Code: "busy", RetryAfter: 90 * time.Second}, holdfast.Failure{Code: "busy", RetryAfter: 90 * time.Second}},
		{&holdfast.Failure{MaybeDelivered: true}, holdfast.Failure{MaybeDelivered: true}},
		{&holdfast.Failure{Outcome: holdfast.Unreachable}, holdfast.Failure{Outcome: holdfast.Unreachable}},
		{&holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_grant"}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_grant"}},
		{&holdfast.Failure{Outcome: holdfast.NotStarted}, holdfast.Failure{Outcome: holdfast.NotStarted}},
	} {
		answer = c.answer
		_, err := d.Deliver(t.Context(), Message())
		check(t, err, c.want)
	}
}

func testNotJSON(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{}
	d := s.New(t, r)
	for _, p := range []string{"hello", "1 2", `{"a":`, "\"\xff\"", " "} {
		m := Message()
		m.Payload = []byte(p)
		_, err := d.Deliver(t.Context(), m)
		check(t, err, holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonUndecodable})
	}
	if got := r.Got(); len(got) > 0 {
		t.Errorf("got %d messages, want none", len(got))
	}
}

func testPanic(t *testing.T, s Suite) {
	t.Helper()
	panics := true
	d := s.New(t, &Recorder{Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
		if panics {
			panic("handler")
		}
		return holdfast.Receipt{}, nil
	}})
	_, err := d.Deliver(t.Context(), Message())
	check(t, err, holdfast.Failure{})
	panics = false
	if _, err := d.Deliver(t.Context(), Message()); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func testNobody(t *testing.T, s Suite) {
	t.Helper()
	if s.Nobody == nil {
		t.Skip("this transport always finds somebody")
	}
	_, err := s.Nobody(t).Deliver(t.Context(), Message())
	check(t, err, holdfast.Failure{Outcome: holdfast.Unreachable})
}

func testOversize(t *testing.T, s Suite) {
	t.Helper()
	if s.MaxPayload == 0 {
		t.Skip("this transport has no limit")
	}
	r := &Recorder{}
	d := s.New(t, r)
	m := Message()
	m.Payload = make([]byte, s.MaxPayload)
	for i := range m.Payload {
		m.Payload[i] = '1'
	}
	if _, err := d.Deliver(t.Context(), m); err != nil {
		t.Errorf("a payload of just the limit: %v", err)
	}
	for _, more := range []int{1, 1 << 20} {
		m.Payload = append(m.Payload, make([]byte, more)...)
		for i := range m.Payload {
			m.Payload[i] = '1'
		}
		_, err := d.Deliver(t.Context(), m)
		check(t, err, holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonTooLarge})
	}
	if got := r.Got(); len(got) != 1 {
		t.Errorf("got %d messages, want 1", len(got))
	}
}

func testWrongSecret(t *testing.T, s Suite) {
	t.Helper()
	if s.WrongSecret == nil {
		t.Skip("this transport knows no secrets")
	}
	r := &Recorder{}
	d := s.WrongSecret(t, r)
	for range 50 { // many deliveries must not change that
		_, err := d.Deliver(t.Context(), Message())
		f := holdfast.AsFailure(err)
		check(t, err, holdfast.Failure{Outcome: holdfast.LaneFault, RetryAfter: f.RetryAfter})
	}
	if got := r.Got(); len(got) > 0 {
		t.Errorf("got %d messages behind a wrong secret, want none", len(got))
	}
}

// testBudget lets every message take a second, and sends more of them than the sender has time for.
func testBudget(t *testing.T, s Suite) {
	t.Helper()
	if s.Virtual == nil {
		t.Skip("this transport needs real time")
	}
	racetest.Bubble(t, func(t *testing.T) {
		r := &Recorder{Answer: func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			<-time.After(time.Second)
			return holdfast.Receipt{ID: m.ID}, nil
		}}
		d, ok := learnBatch(t, s.Virtual(t, r))
		if !ok {
			t.Skip("this transport has no batches")
		}
		ms := make([]holdfast.Message, 200)
		for i := range ms {
			ms[i] = Message()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := 0
		for _, result := range d.DeliverBatch(ctx, ms) {
			if result.Err == nil {
				begun++
				continue
			}
			check(t, result.Err, holdfast.Failure{Outcome: holdfast.NotStarted})
		}
		if got := len(r.Got()) - 1; begun == 0 || begun == len(ms) || got != begun {
			t.Errorf("got %d messages received and %d acknowledged of %d, want the same number, and neither none nor all", got, begun, len(ms))
		}
	})
}
