package notify_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

// NO-01, F1-05: the same notification again is acked as a duplicate; another one
// under its id is a conflict, and the one that is kept stays. Another site's is
// one of its own.
func TestIngestTakesANotificationOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	defer o.close(t)
	if r, err := o.send(t, "n", "ops"); err != nil || r.Duplicate {
		t.Fatalf("the first: %+v, %v", r, err)
	}
	if r, err := o.send(t, "n", "ops"); err != nil || !r.Duplicate {
		t.Errorf("the same again: %+v, %v", r, err)
	}
	_, err := o.send(t, "n", "other")
	if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.Permanent || f.Reason != holdfast.ReasonConflict {
		t.Errorf("other content: %v", err)
	}
	payload, err := notify.Encode(notify.Notification{List: "ops", Subject: "Press 4 stopped", Body: "Oil."})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := o.ingester.Receive(t.Context(), holdfast.Message{ID: "n", Source: "plant-8", Endpoint: notify.Endpoint, Payload: payload}); err != nil || r.Duplicate {
		t.Errorf("another site's: %+v, %v", r, err)
	}
	if r := o.one(t, "n"); r.Notification.Origin.Site != "plant-7" || r.Notification.List != "ops" {
		t.Errorf("kept %+v", r.Notification)
	}
}

// OI-18: a notification that is new is told once, with its site and its copies; one that is sent
// again, that is refused or that is not on disk is not.
func TestEachNewNotificationIsTold(t *testing.T) {
	t.Parallel()
	o := open(t)
	for _, list := range []string{"ops", "ops", "other"} {
		_, _ = o.send(t, "n", list)
	}
	o.close(t)
	_, _ = o.send(t, "late", "ops")
	want := []string{"INFO notification stored message_id=n site=plant-7 copies=1"}
	if diff := cmp.Diff(o.log.of("notification stored"), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// SF-20: what cannot be decoded is refused for good, with the reason, and
// costs the rest of its batch nothing. A store that fails refuses for now.
func TestIngestRefusesForGoodOnlyWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	o := open(t)
	good, err := notify.Encode(notify.Notification{List: "ops", Subject: "s"})
	if err != nil {
		t.Fatal(err)
	}
	batch := func() []holdfast.Message {
		return []holdfast.Message{
			{ID: "a", Source: "plant-7", Endpoint: notify.Endpoint, Payload: good},
			{ID: "b", Source: "plant-7", Endpoint: notify.Endpoint, Payload: []byte(`{"list":`)},
			{ID: "c", Source: "plant-7", Endpoint: "something", Payload: good},
			{ID: "d", Source: "plant-7", Endpoint: notify.Endpoint, Payload: good},
		}
	}
	results := o.ingester.ReceiveBatch(t.Context(), batch())
	for i, reason := range []holdfast.Reason{"", holdfast.ReasonUndecodable, "", ""} {
		f := holdfast.AsFailure(results[i].Err)
		if bad := i == 1 || i == 2; bad != (results[i].Err != nil) || bad && (f.Outcome != holdfast.Permanent || f.Reason != reason) {
			t.Errorf("%d: %+v", i, results[i])
		}
	}
	o.close(t)
	for i, r := range o.ingester.ReceiveBatch(t.Context(), batch()) {
		if f := holdfast.AsFailure(r.Err); r.Err == nil || f.Outcome == holdfast.Permanent && i != 1 && i != 2 {
			t.Errorf("of a closed store, %d: %v", i, r.Err)
		}
	}
}

// broken is a store whose next writes of notifications fail.
type broken struct {
	notify.Store
	err error
}

func (b *broken) Bundle(ctx context.Context, list ...holdfast.Bundle) ([]holdfast.Result, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Store.Bundle(ctx, list...)
}

// NO-01: what could not be stored is not acked, so that the site keeps its row
// and sends again (F1-99).
func TestNoAckForWhatIsNotStored(t *testing.T) {
	t.Parallel()
	o := open(t)
	defer o.close(t)
	payload, err := notify.Encode(notify.Notification{List: "ops", Subject: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ms := []holdfast.Message{
		{ID: "a", Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload},
		{ID: "b", Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload},
	}
	for _, err := range []error{errors.New("input/output error"), holdfast.ErrDiskFull, holdfast.ErrUnavailable, context.DeadlineExceeded} {
		in := &notify.Ingester{Store: &broken{o.db, err}, Directory: notify.NewDirectoryCache(nodestore.New(o.db, nil).Directory)}
		for i, r := range in.ReceiveBatch(t.Context(), ms) {
			if f := holdfast.AsFailure(r.Err); r.Err == nil || f.Outcome == holdfast.Permanent || !errors.Is(r.Err, err) {
				t.Errorf("%v: message %d got %+v, %v; want a failure for now", err, i, r.Receipt, r.Err)
			}
		}
	}
	for i, r := range o.ingester.ReceiveBatch(t.Context(), ms) {
		if r.Err != nil || r.Receipt.Duplicate {
			t.Errorf("message %d once it can be stored: %+v, %v; want a first ack", i, r.Receipt, r.Err)
		}
	}
}
