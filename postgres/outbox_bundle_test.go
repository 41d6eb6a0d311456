package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/postgres"
	tables "github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// bundle is one of n messages, each in a lane of its own.
func bundle(id holdfast.ID, payload []byte, n int) holdfast.Bundle {
	note := notify.Notification{ID: id, Origin: notify.Origin{Site: "plant-1"}}
	ms, channels := make([]holdfast.Message, n), make([]string, n)
	for i := range ms {
		channels[i] = fmt.Sprintf("c%03d", i)
		ms[i] = holdfast.Message{Source: "plant-1", Destination: notify.LanePrefix + channels[i], Endpoint: notify.Endpoint}
	}
	return notify.BundleOf(&note, [32]byte{}, payload, ms, channels)
}

func write(t testing.TB, db *postgres.DB, b holdfast.Bundle) {
	t.Helper()
	if results, err := db.Bundle(t.Context(), b); err != nil || results[0].Err != nil || results[0].Receipt.Duplicate {
		t.Fatalf("got %+v, %v", results, err)
	}
}

// claimOf claims one message of each channel.
func claimOf(t testing.TB, db *postgres.DB, n int) []holdfast.Claim {
	t.Helper()
	slots := map[string]int{}
	for i := range n {
		slots[fmt.Sprintf("%sc%03d", notify.LanePrefix, i)] = 1
	}
	batch, err := db.Claim(t.Context(), slots)
	if err != nil {
		t.Fatal(err)
	}
	return batch.Claims
}

// The payload of a bundle is kept once, however many messages it has: in the tables, in
// a copy of them, and in the memory of who claims them.
func TestABundlesPayloadIsKeptOnce(t *testing.T) {
	t.Parallel()
	const n, size = 200, 100 << 10
	payload := make([]byte, size)
	_, _ = rand.Read(payload)
	dsn, copied := database(t), pgtest.Shared(t).Database(t)
	db := open(t, dsn, postgres.Options{})
	write(t, db, bundle("b", payload, n))
	shut(t, db)
	source, err := postgres.OpenSource(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := postgres.OpenTarget(t.Context(), copied, storecopy.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := storecopy.Copy(t.Context(), source, target, storecopy.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	for what, dsn := range map[string]string{"the tables": dsn, "the copy": copied} {
		if got := number(t, dsn, `SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN ('hf_bundle', 'hf_message', 'hf_queue', 'hf_notification')`); got >= 1<<20 {
			t.Errorf("%s take %d bytes for %d messages of one payload of %d", what, got, n, size)
		}
	}
	claims := claimOf(t, opened(t, copied, postgres.Options{}), 20)
	if len(claims) != 20 {
		t.Fatalf("%d claimed", len(claims))
	}
	for _, c := range claims {
		if got := c.Message.Payload; string(got) != string(payload) || &got[0] != &claims[0].Message.Payload[0] {
			t.Errorf("%s has %d bytes of its own", c.Message.ID, len(got))
		}
	}
}

// A claim is bounded by the payloads of bundles as by others, and what does not fit comes next.
func TestAClaimOfManyLargeBundles(t *testing.T) {
	t.Parallel()
	db := opened(t, database(t), postgres.Options{})
	const n = 5
	for i := range n {
		write(t, db, bundle(holdfast.ID(fmt.Sprint("b", i)), make([]byte, 4<<20), 1))
	}
	const lane = notify.LanePrefix + "c000"
	seen := 0
	for seen < n {
		batch, err := db.Claim(t.Context(), map[string]int{lane: 10})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(batch.Claims); got == 0 || got > 2 {
			t.Fatalf("%d claimed at once, behind %d", got, seen)
		}
		seen += len(batch.Claims)
		if wait, known := batch.Next[lane]; seen < n && (!known || wait > 0) {
			t.Errorf("behind %d the next is said to be due in %s (%t)", seen, wait, known)
		}
	}
}

// A message whose bundle is gone, by a hand or by half a restore, is never sent empty.
func TestAMessageWithoutItsBundleIsParked(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, postgres.Options{})
	write(t, db, bundle("gone", []byte("x"), 2))
	write(t, db, bundle("empty", nil, 1))
	if err := sql(t.Context(), dsn, `DELETE FROM hf_bundle WHERE id = '\x02' || convert_to('gone', 'UTF8')`); err != nil {
		t.Fatal(err)
	}
	if got := claimOf(t, db, 2); len(got) > 0 {
		t.Errorf("claimed %s with %d bytes", got[0].Message.ID, len(got[0].Message.Payload))
	}
	waitFor(t, dsn, `SELECT count(*) FROM hf_final WHERE state = 3`, 2)
	p, err := db.List(t.Context(), holdfast.Query{States: []holdfast.State{holdfast.Parked}})
	if err != nil || len(p.Records) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, r := range p.Records {
		if r.Reason != holdfast.ReasonUndecodable || r.LastError == "" || r.Size != 0 {
			t.Errorf("parked as %+v", r)
		}
		if r, err = db.Get(t.Context(), r.Message.ID); err != nil || len(r.Message.Payload) != 0 {
			t.Errorf("shown as %+v, %v", r, err)
		}
	}
	if got := claimOf(t, db, 2); len(got) != 1 {
		t.Errorf("%d claimed, want the one of a bundle that is empty", len(got))
	}
	// A copy tells of it, and leaves it be once it is discarded.
	for _, want := range []error{storecopy.ErrContent, nil} {
		shut(t, db)
		source, err := postgres.OpenSource(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		_, err = source.Read(t.Context(), tables.Range{Table: tables.Of((*tables.Message)(nil))})
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if !errors.Is(err, want) {
			t.Errorf("copied: %v, want %v", err, want)
		}
		db = open(t, dsn, postgres.Options{})
		for _, r := range p.Records {
			if _, err := db.Discard(t.Context(), r.Message.ID, "mo"); err != nil && want != nil {
				t.Error(err)
			}
		}
	}
	shut(t, db)
}

// In another store bundles may have had higher numbers than messages. Those to come are above.
func TestNumbersOfBundlesAreAboveThoseCopied(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), pgtest.Shared(t).Database(t)
	target, err := postgres.OpenTarget(ctx, dsn, storecopy.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	list := make([]tables.Row, 9)
	for i := range list {
		list[i] = &tables.Bundle{Seq: int64(i + 1), Kind: notify.BundleKind, Source: "plant-1", ID: holdfast.ID(fmt.Sprint(i))}
	}
	p := storecopy.Progress{HereNow: time.Now().UnixMicro()}
	for _, err := range []error{target.Begin(ctx, p, storecopy.Totals{}), target.Write(ctx, list, p), target.End(ctx, storecopy.Progress{Done: true}), target.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	db := opened(t, dsn, postgres.Options{})
	write(t, db, bundle("b", []byte("x"), 1))
	// A hash that is lost says nothing against one that is sent.
	if results, err := db.Bundle(ctx, bundle("3", []byte("x"), 1)); err != nil || results[0].Err != nil || !results[0].Receipt.Duplicate {
		t.Errorf("sent again, its hash lost: %+v, %v", results, err)
	}
}
