package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// closed tests what every call says that a store cannot carry out: it is refused, and no
// empty answer passes for a true one.
func closed[T any](t *testing.T, m Maker, with Transaction[T]) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"a store that was closed says so to each call": func(k *kit) {
			k.inUse()
			k.ok(k.Close())
			for name, err := range calls(k.ctx(), k, with) {
				if !errors.Is(err, holdfast.ErrClosed) {
					k.t.Errorf("%s: got %v, want ErrClosed", name, err)
				}
			}
			k.reopen()
			equal(k, "claimed afterwards", len(k.claim(10)), 1)
		},
		"a call whose context has ended fails": func(k *kit) {
			ctx, cancel := context.WithCancel(k.ctx())
			cancel()
			k.inUse()
			for name, err := range calls(ctx, k, with) {
				if err == nil && name != "Project" { // which follows until then
					k.t.Errorf("%s: got no error", name)
				}
			}
			equal(k, "claimed afterwards", len(k.claim(10)), 1)
		},
	})
}

// inUse leaves a message that is due, one that is kept, and a follower.
func (k *kit) inUse() {
	k.t.Helper()
	k.put(holdfast.Message{ID: "m"})
	k.keep(arrived("kept"))
	(&ledger{k: k, name: "f"}).read()
}

// calls makes each call that can fail, and returns what it says.
func calls[T any](ctx context.Context, k *kit, with Transaction[T]) map[string]error {
	said := map[string]error{}
	_, said["Enqueue"] = k.Enqueue(ctx, fill([]holdfast.Message{{ID: "late"}})...)
	_, said["Claim"] = k.Claim(ctx, map[string]int{"a": 1})
	_, said["Settle"] = k.Settle(ctx, holdfast.Settlement{Seq: 1, Token: 1, State: holdfast.Delivered})
	_, said["Hasten"] = k.Hasten(ctx, "a", time.Hour)
	_, said["NotifyEnded"] = k.NotifyEnded(ctx, true, true)

	_, said["Get"] = k.Get(ctx, "m")
	_, said["List"] = k.List(ctx, holdfast.Query{})
	_, said["Requeue"] = k.Requeue(ctx, "m", holdfast.Requeue{})
	_, said["Discard"] = k.Discard(ctx, "m", "")
	_, said["Reschedule"] = k.Reschedule(ctx, "m", holdfast.Reschedule{In: time.Hour})
	said["ConfigureLane"] = k.ConfigureLane(ctx, "a", holdfast.LaneSettings{LiveFirst: true})
	said["SetLaneFault"] = k.SetLaneFault(ctx, "a", "down")
	_, said["LaneFaults"] = k.LaneFaults(ctx)
	said["PauseLane"] = k.PauseLane(ctx, "a", "")
	said["ResumeLane"] = k.ResumeLane(ctx, "a", "")
	_, said["LaneDecisions"] = k.LaneDecisions(ctx)
	_, _, said["Expire"] = k.Expire(ctx)
	_, _, said["Purge"] = k.Purge(ctx, holdfast.Retention{Delivered: 1})

	m := arrived("in")
	_, _, said["Known"] = k.Known(ctx, time.Hour, m)
	_, said["Record"] = k.Record(ctx, time.Hour, holdfast.Processed{Message: m})
	_, said["Keep"] = k.Keep(ctx, time.Hour, m)
	_, said["Kept"] = k.Kept(ctx, holdfast.KeptQuery{})
	_, said["Sources"] = k.Sources(ctx, "kept")
	said["Done"] = k.Done(ctx, arrived("kept").Source, "kept", nil)
	_, _, said["SweepInbox"] = k.SweepInbox(ctx, time.Hour)
	inbox := with.Of(k.Full)
	_, said["Process"] = inbox.Process(ctx, m, time.Hour, nil)
	said["ProcessBatch"] = inbox.ProcessBatch(ctx, []holdfast.Message{m}, time.Hour, nil)[0].Err

	said["Project"] = k.Project(ctx, holdfast.Follower{Name: "f"}, nil)
	said["Forget"] = k.Forget(ctx, "f")
	_, said["Followers"] = k.Followers(ctx)
	said["Append"] = k.Append(ctx, holdfast.Entry{Kind: holdfast.Called, Subject: "s"})

	in := note("n", "s", "c")
	_, said["Ingest"] = k.Ingest(ctx, in)
	_, said["Targets"] = k.Targets(ctx, "m")
	said["RecordTargets"] = k.RecordTargets(ctx, "m", notify.Target{Channel: "c", Address: "a@x.test", Result: notify.Accepted})
	_, said["Directory"] = k.Directory(ctx)
	_, said["DirectoryVersion"] = k.DirectoryVersion(ctx)
	said["PutChannel"] = k.PutChannel(ctx, notify.Channel{Name: "c", Kind: "email", Settings: []byte(`{}`)}, "")
	said["DeleteChannel"] = k.DeleteChannel(ctx, "c", 1, "")
	said["PutList"] = k.PutList(ctx, notify.List{Name: "l"}, "")
	said["DeleteList"] = k.DeleteList(ctx, "l", 1, "")
	_, said["Incarnation"] = k.Incarnation(ctx)
	_, said["Sites"] = k.Sites(ctx)
	_, said["TokenSite"] = k.TokenSite(ctx, [32]byte{1})
	_, said["EnrollSite"] = k.EnrollSite(ctx, [32]byte{1}, [32]byte{2})
	said["RevokeSite"] = k.RevokeSite(ctx, "s", "")
	_, _, said["FindToken"] = k.FindToken(ctx, [32]byte{1})
	said["DeleteToken"] = k.DeleteToken(ctx, "t", false, "")
	_, said["Notification"] = k.Notification(ctx, "s", "n")
	_, said["NotificationSites"] = k.NotificationSites(ctx, "n")
	_, said["Notifications"] = k.Notifications(ctx, notify.Query{})
	_, _, said["KPIs"] = k.KPIs(ctx, time.Hour, time.Hour)
	_, _, said["PurgeNotifications"] = k.PurgeNotifications(ctx, time.Hour)
	return said
}
