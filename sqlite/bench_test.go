package sqlite_test

import (
	"context"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

const batch = 100

func hundred() []holdfast.Message {
	ms := make([]holdfast.Message, batch)
	for i := range ms {
		ms[i] = holdfast.Message{Destination: "a", Endpoint: "E", Payload: make([]byte, 500)}
	}
	return ms
}

func settleAll(b *testing.B, db *sqlite.DB, claims []holdfast.Claim) {
	b.Helper()
	list := make([]holdfast.Settlement, len(claims))
	for i, c := range claims {
		list[i] = settlement(c, holdfast.Delivered)
	}
	if _, err := db.Settle(b.Context(), list...); err != nil {
		b.Fatal(err)
	}
}

func insertAnd(m holdfast.Message) func(ctx context.Context, tx *sqlite.Tx) error {
	return func(ctx context.Context, tx *sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO business VALUES (1)"); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, m)
		return err
	}
}

// BenchmarkEnqueue is one caller, one message, one commit: the latency.
func BenchmarkEnqueue(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	m := holdfast.Message{Destination: "a", Endpoint: "E", Payload: make([]byte, 500)}
	for b.Loop() {
		enqueue(b, db, m)
	}
}

// BenchmarkEnqueueHundred is a hundred messages in one call.
func BenchmarkEnqueueHundred(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	ms := hundred()
	for b.Loop() {
		enqueue(b, db, ms...)
	}
}

// BenchmarkClaimMemory claims a hundred fresh messages.
func BenchmarkClaimMemory(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	claim(b, db, 1)
	for b.Loop() {
		b.StopTimer()
		enqueue(b, db, hundred()...)
		b.StartTimer()
		if c := claim(b, db, batch); len(c) != batch {
			b.Fatalf("%d claims", len(c))
		}
	}
}

// BenchmarkClaimTable claims a hundred messages that only the table has.
func BenchmarkClaimTable(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	for b.Loop() {
		b.StopTimer()
		enqueue(b, db, hundred()...)
		db.ForgetFresh("a")
		b.StartTimer()
		c := claim(b, db, batch)
		if len(c) != batch {
			b.Fatalf("%d claims", len(c))
		}
		b.StopTimer()
		settleAll(b, db, c)
		b.StartTimer()
	}
}

// BenchmarkSettle settles a hundred deliveries in one call.
func BenchmarkSettle(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	claim(b, db, 1)
	for b.Loop() {
		b.StopTimer()
		enqueue(b, db, hundred()...)
		c := claim(b, db, batch)
		b.StartTimer()
		settleAll(b, db, c)
	}
}

// BenchmarkDo is a transaction of the caller's with one message.
func BenchmarkDo(b *testing.B) {
	db := withBusiness(b)
	defer shut(b, db)
	m := holdfast.Message{Destination: "a", Endpoint: "E", Payload: make([]byte, 500)}
	for b.Loop() {
		if err := db.Do(b.Context(), insertAnd(m)); err != nil {
			b.Fatal(err)
		}
	}
}
