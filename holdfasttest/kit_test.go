package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/holdfasttest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

type orderApproved struct {
	Order int `json:"order"`
}

func (orderApproved) Endpoint() string { return "OrderApproved" }

type stockCounted struct {
	Count int `json:"count"`
}

func (stockCounted) Endpoint() string { return "StockCounted" }

func send(t testing.TB, to holdfast.Enqueuer, ps ...holdfast.Payload) {
	t.Helper()
	for _, p := range ps {
		if err := holdfast.Send(t.Context(), to, "inventory", p); err != nil {
			t.Fatal(err)
		}
	}
}

// fake is the test that a kit fails.
type fake struct {
	testing.TB
	text string
}

func (f *fake) Helper() {}

func (f *fake) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }

func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fake) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// fails runs a test that must fail, and wants each text in its failure.
func fails(t *testing.T, test func(k *holdfasttest.Kit), want ...string) {
	t.Helper()
	f := &fake{TB: t}
	passed := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(holdfasttest.New(f))
		passed = true
	}()
	<-done
	if passed || f.text == "" {
		t.Fatal("the test passed, want it to fail")
	}
	for _, w := range want {
		if !strings.Contains(f.text, w) {
			t.Errorf("the failure is\n%s\nwant %q in it", f.text, w)
		}
	}
}

func TestWhatWaitsIsShownInOrder(t *testing.T) {
	t.Parallel()
	k := holdfasttest.New(t)
	k.NothingEnqueued()
	send(t, k.DB, orderApproved{1}, stockCounted{7}, orderApproved{2})
	if diff := cmp.Diff([]orderApproved{{1}, {2}}, holdfasttest.Payloads[orderApproved](k, "inventory")); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	var endpoints []string
	for _, m := range k.Enqueued("inventory") {
		endpoints = append(endpoints, m.Endpoint)
	}
	if diff := cmp.Diff([]string{"OrderApproved", "StockCounted", "OrderApproved"}, endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	k.NothingEnqueued("billing", "mail")
}

// Pages of a list are 500 rows long.
func TestMoreThanOnePageWaits(t *testing.T) {
	t.Parallel()
	k := holdfasttest.New(t)
	ms := make([]holdfast.Message, 510)
	for i := range ms {
		ms[i] = holdfast.Message{Destination: "inventory", Endpoint: "OrderApproved", Payload: fmt.Appendf(nil, `{"order":%d}`, i)}
	}
	if _, err := k.DB.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	for i, p := range holdfasttest.Payloads[orderApproved](k, "inventory") {
		if p.Order != i {
			t.Fatalf("got order %d at %d", p.Order, i)
		}
	}
	if got := len(k.DeliverAll(taken)); got != 510 {
		t.Errorf("%d attempts, want 510", got)
	}
}

func taken(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	return holdfast.Receipt{ID: m.ID}, nil
}

func TestQuestionsFailWhereTheAnswerIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		test func(k *holdfasttest.Kit)
		want []string
	}{
		"nothing waits": {
			func(k *holdfasttest.Kit) { k.Enqueued("inventory") },
			[]string{"no message waits for inventory", "the outbox is empty"},
		},
		"it waits elsewhere": {
			func(k *holdfasttest.Kit) { send(t, k.DB, orderApproved{42}); k.Enqueued("billing") },
			[]string{"no message waits for billing", "for inventory at OrderApproved", `{"order":42}`},
		},
		"something waits": {
			func(k *holdfasttest.Kit) { send(t, k.DB, orderApproved{42}); k.NothingEnqueued() },
			[]string{"1 messages wait, want none", `{"order":42}`},
		},
		"something waits there": {
			func(k *holdfasttest.Kit) { send(t, k.DB, orderApproved{42}); k.NothingEnqueued("billing", "inventory") },
			[]string{"pending", "inventory"},
		},
		"another payload waits": {
			func(k *holdfasttest.Kit) {
				send(t, k.DB, stockCounted{1})
				holdfasttest.Payloads[orderApproved](k, "inventory")
			},
			[]string{"no holdfasttest_test.orderApproved waits for inventory at OrderApproved", "StockCounted"},
		},
		"the payload is another": {
			func(k *holdfasttest.Kit) {
				m := holdfast.Message{Destination: "inventory", Endpoint: "OrderApproved", Payload: []byte(`{"order":"many"}`)}
				if _, err := k.DB.Enqueue(t.Context(), m); err != nil {
					t.Error(err)
				}
				holdfasttest.Payloads[orderApproved](k, "inventory")
			},
			[]string{"is no holdfasttest_test.orderApproved", `{"order":"many"}`},
		},
		"what was delivered and parked is listed too": {
			func(k *holdfasttest.Kit) {
				send(t, k.DB, orderApproved{1})
				k.DeliverAll(taken)
				send(t, k.DB, orderApproved{2})
				k.DeliverAll(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
					return holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.Permanent, Err: errors.New("no such article")}
				})
				k.Enqueued("inventory")
			},
			[]string{"delivered", "parked", "permanent no such article"},
		},
		"a handler fails": {
			func(k *holdfasttest.Kit) {
				k.ProcessTwice(k.Message(orderApproved{1}), func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
					return nil, errors.New("no such table")
				})
			},
			[]string{"at OrderApproved, received for the first time: no such table"},
		},
		"a receiver has two effects": {
			func(k *holdfasttest.Kit) { k.ReceiveTwice(k.Message(orderApproved{1}), taken) },
			[]string{"taken as new twice"},
		},
		"a receiver answers twice": {
			func(k *holdfasttest.Kit) {
				n := 0
				k.ReceiveTwice(k.Message(orderApproved{1}), func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
					n++
					return holdfast.Receipt{Duplicate: n > 1, Response: fmt.Append(nil, n)}, nil
				})
			},
			[]string{`answered with "1", its repeat with "2"`},
		},
		"the id is used": {
			func(k *holdfasttest.Kit) {
				m := k.Message(orderApproved{1})
				k.ProcessTwice(m, nothing)
				k.ProcessTwice(m, nothing)
			},
			[]string{"was known before"},
		},
		"the id of an interrupted one is used": {
			func(k *holdfasttest.Kit) {
				m := k.Message(orderApproved{1})
				k.ProcessTwice(m, nothing)
				k.ProcessInterrupted(m, nothing)
			},
			[]string{"was known before"},
		},
		"an interrupted handler fails": {
			func(k *holdfasttest.Kit) {
				k.ProcessInterrupted(k.Message(orderApproved{1}), func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
					return nil, errors.New("no such table")
				})
			},
			[]string{"failed: no such table"},
		},
		"a payload that has no JSON": {
			func(k *holdfasttest.Kit) { k.Message(channel{}) },
			[]string{"encode holdfasttest_test.channel"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, c.test, c.want...)
		})
	}
}

type channel struct{ C chan int }

func (channel) Endpoint() string { return "Channel" }

func nothing(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, nil }

// Statements that do not run, and a file that cannot be attached to, fail the
// test that asks for them.
func TestAttachFailsTheTest(t *testing.T) {
	t.Parallel()
	f := &fake{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		holdfasttest.Attach(f, "CREATE TABEL orders (id INTEGER)")
	}()
	<-done
	if !strings.Contains(f.text, `run "CREATE TABEL`) {
		t.Errorf("the failure is %q", f.text)
	}
}

func TestDeliverAllUntilNothingIsDue(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *holdfasttest.Kit{
		"file of its own": func(t *testing.T) *holdfasttest.Kit { t.Helper(); return holdfasttest.New(t) },
		"attached":        func(t *testing.T) *holdfasttest.Kit { t.Helper(); return holdfasttest.Attach(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				k := open(t)
				var fail error
				var got []int
				inbox := k.DB.Inbox()
				must(t, holdfast.Register(inbox, func(ctx context.Context, tx *sqlite.Tx, p orderApproved) error {
					got = append(got, p.Order)
					if p.Order < 3 {
						return holdfast.Send(ctx, tx, "inventory", orderApproved{p.Order + 1})
					}
					return fail
				}))
				fail = errors.New("busy")
				send(t, k.DB, orderApproved{1})
				results := k.DeliverAll(inbox.Receive)
				if diff := cmp.Diff([]int{1, 2, 3}, got); diff != "" {
					t.Errorf("handled (-want +got):\n%s", diff)
				}
				if len(results) != 3 || results[0].Err != nil || results[2].Err == nil {
					t.Errorf("results %+v", results)
				}
				if n := len(k.DeliverAll(inbox.Receive)); n != 0 {
					t.Errorf("%d attempts at once, want none before the retry is due", n)
				}
				k.Enqueued("inventory")
				time.Sleep(3 * time.Second)
				fail = nil
				if n := len(k.DeliverAll(inbox.Receive)); n != 1 {
					t.Errorf("%d attempts, want one", n)
				}
				k.NothingEnqueued()
			})
		})
	}
}

// A policy that does not wait must not keep DeliverAll for ever, nor lose the
// message; the last of its attempts parks it.
func TestDeliverAllTriesAMessageOnce(t *testing.T) {
	t.Parallel()
	k := holdfasttest.New(t)
	at := &holdfast.RetryPolicy{List: []time.Duration{0}, Jitter: -1, Attempts: 3}
	m := holdfast.Message{Destination: "inventory", Endpoint: "E", Retry: at}
	if _, err := k.DB.Enqueue(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		k.Enqueued("inventory")
		if n := len(k.DeliverAll(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			return holdfast.Receipt{}, errors.New("busy")
		})); n != 1 {
			t.Errorf("%d attempts, want one", n)
		}
	}
	k.NothingEnqueued()
}

func TestHandlersAreTriedAsInProduction(t *testing.T) {
	t.Parallel()
	k := holdfasttest.Attach(t, "CREATE TABLE reserved (id INTEGER)")
	book := func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO reserved VALUES (1)")
		return []byte("booked"), err
	}
	rows := func() (n int) {
		must(t, k.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM reserved").Scan(&n))
		return n
	}
	m := k.Message(orderApproved{1})
	k.ProcessInterrupted(m, book)
	if n := rows(); n != 0 {
		t.Errorf("%d rows after the interruption", n)
	}
	if r := k.ProcessTwice(m, book); string(r.Response) != "booked" || r.Duplicate {
		t.Errorf("receipt %+v", r)
	}
	if n := rows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// A message of a transaction of the caller's own is there once it commits.
func TestCallersTransactionIsSeen(t *testing.T) {
	t.Parallel()
	k := holdfasttest.Attach(t, "CREATE TABLE orders (id INTEGER)")
	for _, commit := range []bool{false, true} {
		tx, err := k.SQL.BeginTx(t.Context(), nil)
		must(t, err)
		send(t, k.DB.In(tx), orderApproved{1})
		if !commit {
			must(t, tx.Rollback())
			k.NothingEnqueued()
			continue
		}
		must(t, tx.Commit())
	}
	if n := len(k.DeliverAll(taken)); n != 1 {
		t.Errorf("%d attempts, want one", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
