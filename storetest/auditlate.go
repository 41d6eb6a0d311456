package storetest

import (
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// asleep is the journal of a process that falls asleep with a page in hand, and wakes up when it is told to.
type asleep struct {
	Full

	sleeps chan struct{} // a value: it has fallen asleep
	wake   chan struct{} // closed: it wakes up
}

func (j *asleep) Project(ctx context.Context, f holdfast.Follower, project func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error)) error {
	return j.Full.Project(ctx, f, func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
		list, err := project(ctx, page)
		select {
		case j.sleeps <- struct{}{}:
		default:
		}
		<-j.wake
		return list, err
	})
}

// lateAppender lets an appender sleep with records that are ready to be written, while another one writes them.
func lateAppender(k *kit) {
	k.register(audit.FollowerName)
	late := &asleep{Full: k.Full, sleeps: make(chan struct{}, 1), wake: make(chan struct{})}
	k.call(k.Full, "before", 3)
	first := k.begin(&audit.Log{Store: nodestore.New(k.Full, nil).Audit, Journal: late})
	<-late.sleeps
	second := k.appends(k.Full, false)
	k.audited()
	k.call(k.Full, "meanwhile", 300)
	k.audited()
	want := k.chained(1 + 303)
	close(late.wake)
	k.call(k.Full, "after", 5)
	k.audited()
	first.stop()
	second.stop()
	got := k.chained(1 + 308)
	slicesUnique(k, got, 308)
	for i := range want {
		if got[i] != want[i] {
			k.t.Fatalf("record %d was about %s, and is about %s", i+2, want[i], got[i])
		}
	}
}

// register makes a follower, so that the journal keeps entries for it from now on.
func (k *kit) register(name string) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.ctx())
	ended := make(chan error, 1)
	go func() {
		ended <- k.Project(ctx, holdfast.Follower{Name: name, FromStart: true}, func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) { return nil, nil })
	}()
	waittest.Until(k.t, "it is followed", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 })
	cancel()
	k.ok(<-ended)
}

// forgedPurge verifies a log whose records were marked as purged by somebody who can write the database.
func forgedPurge(k *kit) {
	a := k.purger()
	defer a.stop()
	k.call(k.Full, "old", 300)
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	a.verified(k)
	k.ok(k.Side().Change(k.ctx(), side.Cost{}, func(tx side.Tx) error {
		for _, sql := range []string{
			`UPDATE hf_audit_log SET cut = 100, cut_hash = (SELECT hash FROM hf_audit WHERE log = 1 AND seq = 100) WHERE log = 1`,
			`DELETE FROM hf_audit_value WHERE log = 1 AND seq <= 100`, `DELETE FROM hf_audit WHERE log = 1 AND seq <= 100`,
		} {
			if _, err := tx.Exec(sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	}))
	r, err := audit.Verify(k.ctx(), a.Store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	if err != nil || r.Status != audit.Broken || r.Logs[0].Fault != audit.PurgeForged {
		k.t.Errorf("%+v, %v, want %s", r, err, audit.PurgeForged)
	}
}
