package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/bulk"
)

const bulkID, laterBulk = "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162", "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405163"

// bulks tests that each row of a bulk action is recorded once, whoever runs it.
func bulks(t *testing.T, m Maker) {
	t.Helper()
	const lease = time.Minute
	m.run(t, map[string]func(k *kit){
		"rows are recorded in their order, and the last one ends the action": func(k *kit) {
			k.bulk(bulkID, 5)
			a := k.claimed("one", lease)
			k.ok(k.Bulks.RecordBulk(k.ctx(), &a, "one", lease, k.rowsOf(&a, 2)))
			k.reopen()
			a = k.claimed("one", lease)
			if a.Next != 3 || a.Done != 1 || a.Refused != 1 || a.Total != 5 {
				k.t.Errorf("after two rows: %+v", a)
			}
			k.ok(k.Bulks.RecordBulk(k.ctx(), &a, "one", lease, k.rowsOf(&a, 3)))
			k.isBulk(bulkID, bulk.Done, 6)
			k.unclaimed("one", lease)
			list, err := k.Bulks.BulkRows(k.ctx(), bulkID, 1, 2)
			k.ok(err)
			if d := cmp.Diff(list, []bulk.Row{{Seq: 2, Item: "item 2", Outcome: bulk.Refused, Detail: "no"}, {Seq: 3, Item: "item 3", Outcome: bulk.DoneRow}}); d != "" {
				k.t.Errorf("rows (-got +want):\n%s", d)
			}
		},
		"another holder goes on when the first does not": func(k *kit) {
			k.bulk(bulkID, 5)
			lost := k.claimed("one", lease)
			k.unclaimed("two", lease)
			k.pass(lease + time.Second)
			a := k.claimed("two", lease)
			k.ok(k.Bulks.RecordBulk(k.ctx(), &a, "two", lease, k.rowsOf(&a, 1)))
			k.fails(k.Bulks.RecordBulk(k.ctx(), &lost, "one", lease, k.rowsOf(&lost, 2)), holdfast.ErrState)
			k.isBulk(bulkID, bulk.Running, 2)
		},
		"what is not running is not claimed": func(k *kit) {
			k.ok(k.Bulks.AddBulk(k.ctx(), &bulk.Action{ID: bulkID}))
			k.fails(k.Bulks.AddBulk(k.ctx(), &bulk.Action{ID: bulkID}), holdfast.ErrConflict)
			k.unclaimed("one", lease)
			k.ok(k.Bulks.MoveBulk(k.ctx(), bulkID, bulk.Paused, bulk.Gathering))
			k.fails(k.Bulks.GatherBulk(k.ctx(), bulkID, 0, []string{"late"}), holdfast.ErrState)
			k.unclaimed("one", lease)
			k.fails(k.Bulks.MoveBulk(k.ctx(), bulkID, bulk.Paused, bulk.Running), holdfast.ErrState)
			k.fails(k.Bulks.MoveBulk(k.ctx(), laterBulk, bulk.Paused, bulk.Running), holdfast.ErrNotFound)
			k.ok(k.Bulks.MoveBulk(k.ctx(), bulkID, bulk.Running, bulk.Paused))
			k.claimed("one", lease)
		},
		"a row that was done when its action was cancelled is recorded": func(k *kit) {
			k.bulk(bulkID, 2)
			a := k.claimed("one", lease)
			k.ok(k.Bulks.MoveBulk(k.ctx(), bulkID, bulk.Cancelled, bulk.Running, bulk.Paused))
			k.ok(k.Bulks.RecordBulk(k.ctx(), &a, "one", lease, k.rowsOf(&a, 2)))
			k.isBulk(bulkID, bulk.Cancelled, 3)
			k.unclaimed("one", lease)
		},
		"what has ended is purged, and what lives is not": func(k *kit) {
			k.bulk(bulkID, 1200)
			k.bulk(laterBulk, 1)
			k.ok(k.Bulks.MoveBulk(k.ctx(), bulkID, bulk.Cancelled, bulk.Running))
			k.pass(time.Hour + time.Minute)
			k.purgedBulks(2*time.Hour, 0)
			k.purgedBulks(time.Hour, 1)
			list, err := k.Bulks.Bulks(k.ctx(), "", 10)
			k.ok(err)
			if len(list) != 1 || list[0].ID != laterBulk {
				k.t.Errorf("left: %+v", list)
			}
			left, err := k.Bulks.BulkRows(k.ctx(), bulkID, 0, 10)
			k.ok(err)
			if len(left) > 0 {
				k.t.Errorf("rows are left: %+v", left)
			}
		},
	})
}

// bulk adds an action that runs.
func (k *kit) bulk(id string, total int) {
	k.t.Helper()
	k.ok(k.Bulks.AddBulk(k.ctx(), &bulk.Action{ID: id, List: "messages", Verb: "retry", Request: "{}", Actor: "ann"}))
	var items []string
	for i := range total {
		items = append(items, fmt.Sprint("item ", i+1))
	}
	k.ok(k.Bulks.GatherBulk(k.ctx(), id, 0, items[:total/2]))
	k.fails(k.Bulks.GatherBulk(k.ctx(), id, int64(total/2)+1, items[total/2:]), holdfast.ErrState)
	k.ok(k.Bulks.GatherBulk(k.ctx(), id, int64(total/2), items[total/2:]))
	k.ok(k.Bulks.MoveBulk(k.ctx(), id, bulk.Running, bulk.Gathering))
}

// rowsOf returns the next rows of an action, of which each second one is refused.
func (k *kit) rowsOf(a *bulk.Action, n int) []bulk.Row {
	k.t.Helper()
	list, err := k.Bulks.BulkRows(k.ctx(), a.ID, a.Next-1, n)
	k.ok(err)
	for i := range list {
		if list[i].Outcome = bulk.DoneRow; list[i].Seq%2 == 0 {
			list[i].Outcome, list[i].Detail = bulk.Refused, "no"
		}
	}
	return list
}

func (k *kit) claimed(holder string, lease time.Duration) bulk.Action {
	k.t.Helper()
	a, some, err := k.Bulks.ClaimBulk(k.ctx(), holder, lease, "")
	if err != nil || !some {
		k.t.Fatalf("claim: %t, %v", some, err)
	}
	return a
}

func (k *kit) unclaimed(holder string, lease time.Duration) {
	k.t.Helper()
	if a, some, err := k.Bulks.ClaimBulk(k.ctx(), holder, lease, ""); err != nil || some {
		k.t.Errorf("claimed %+v, %v, want none", a, err)
	}
}

func (k *kit) isBulk(id string, state bulk.State, next int64) {
	k.t.Helper()
	a, err := k.Bulks.Bulk(k.ctx(), id)
	k.ok(err)
	if ended := state == bulk.Done || state == bulk.Cancelled; a.State != state || a.Next != next || a.Ended.IsZero() == ended || a.Created.IsZero() {
		k.t.Errorf("got %+v, want %s at %d", a, state, next)
	}
}

func (k *kit) purgedBulks(keep time.Duration, want int64) {
	k.t.Helper()
	if got, err := k.Bulks.PurgeBulks(context.WithoutCancel(k.ctx()), keep); got != want || errors.Is(err, holdfast.ErrState) || err != nil {
		k.t.Errorf("purged %d, %v, want %d", got, err, want)
	}
}
