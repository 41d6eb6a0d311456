package nodestore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// The number of a version is above all that were given before, also in a store that was copied or
// salvaged, which has no number in hf_meta.
const (
	fanoutVersions = `SELECT coalesce((SELECT max(version) FROM hf_subscription), 0), coalesce((SELECT max(version) FROM hf_topic), 0), coalesce((SELECT version FROM hf_schedule WHERE name = '` + usualName + `'), 0)`
	bumpFanout     = `INSERT INTO hf_meta (key, value) VALUES ('fanout', 1 + coalesce((SELECT max(version) FROM hf_subscription), 0) + coalesce((SELECT max(version) FROM hf_topic), 0)
			+ coalesce((SELECT version FROM hf_schedule WHERE name = '` + usualName + `'), 0))
		ON CONFLICT (key) DO UPDATE SET value = CAST(hf_meta.value AS bigint) + 1`
	fanoutNumber = `SELECT CAST(value AS bigint) FROM hf_meta WHERE key = 'fanout'`

	topicNow    = `SELECT version, 0, 0, 0 FROM hf_topic WHERE name = $1 AND NOT gone`
	topicsSince = `SELECT name, description, documentation, attributes, version, gone, changed FROM hf_topic WHERE version > $1 AND version <= $2 ORDER BY version`

	subscriptionColumns = ` id, version, until, gone, state, why, actor, since, topics, filter, settings, created, changed FROM hf_subscription `
	subscriptionNow     = `SELECT version, state, since, created FROM hf_subscription WHERE id = $1 AND until = 0 ORDER BY version DESC LIMIT 1`
	endSubscription     = `UPDATE hf_subscription SET until = $3, ended = hf_now() WHERE id = $1 AND version = $2`
	subscriptionsSince  = `SELECT` + subscriptionColumns + `WHERE version > $1 AND version <= $2 AND (until = 0 OR until > $2 OR until = version) ORDER BY version LIMIT $3`
	subscriptionAt      = `SELECT` + subscriptionColumns + `WHERE id = $1 AND version <= $2 ORDER BY version DESC LIMIT 1`
	subscriptionsAt     = `SELECT` + subscriptionColumns + `WHERE id > $2 AND version <= $1 AND (until = 0 OR until > $1) ORDER BY id LIMIT $3`

	// An event that refers to a former version came before that ended, or a moment later: from a node that
	// did not know it yet.
	purgeVersions = `DELETE FROM hf_subscription WHERE version IN (SELECT version FROM hf_subscription
		WHERE ended < coalesce((SELECT received FROM hf_event WHERE seq = (SELECT min(seq) FROM hf_event)), hf_now()) - 3600000000
			AND version < (SELECT max(version) FROM hf_subscription) ORDER BY ended LIMIT 500)`
)

// Fanout keeps topics, subscriptions and events.
type Fanout struct{ db side.Store }

var _ fanout.Store = (*Fanout)(nil)

// Version implements fanout.Store.
func (f *Fanout) Version(ctx context.Context) (int64, error) {
	var subscriptions, topics, schedule int64
	if err := f.db.Read(ctx, fanoutVersions, nil, func(scan side.Scan) error { return scan(&subscriptions, &topics, &schedule) }); err != nil {
		return 0, fmt.Errorf("read version of subscriptions: %w", err)
	}
	return max(subscriptions, topics, schedule), nil
}

// TopicsSince implements fanout.Store.
func (f *Fanout) TopicsSince(ctx context.Context, after, upTo int64) (list []fanout.Topic, err error) {
	err = f.db.Read(ctx, topicsSince, []any{after, upTo}, func(scan side.Scan) error {
		var t fanout.Topic
		var changed int64
		var attributes string
		err := scan(&t.Name, &t.Description, &t.Documentation, &attributes, &t.Version, &t.Gone, &changed)
		t.Read(attributes)
		t.Changed = f.db.Time(rows.Instant(changed))
		list = append(list, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read topics: %w", err)
	}
	return list, nil
}

func (f *Fanout) subscriptions(ctx context.Context, sql string, args ...any) (list []fanout.Subscription, err error) {
	err = f.db.Read(ctx, sql, args, func(scan side.Scan) error {
		var s fanout.Subscription
		var until, state, since, created, changed int64
		var topics, filter, settings string
		err := scan(&s.ID, &s.Version, &until, &s.Gone, &state, &s.Why, &s.Actor, &since, &topics, &filter, &settings, &created, &changed)
		s.State, s.Since, s.Created, s.Changed = fanout.State(state), f.db.Time(rows.Instant(since)), f.db.Time(rows.Instant(created)), f.db.Time(rows.Instant(changed))
		s.Read(topics, filter, settings)
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	return list, nil
}

// SubscriptionsSince implements fanout.Store.
func (f *Fanout) SubscriptionsSince(ctx context.Context, after, upTo int64, limit int) ([]fanout.Subscription, error) {
	return f.subscriptions(ctx, subscriptionsSince, after, upTo, int64(limit))
}

// SubscriptionsAt implements fanout.Store.
func (f *Fanout) SubscriptionsAt(ctx context.Context, version int64, after string, limit int) ([]fanout.Subscription, error) {
	return f.subscriptions(ctx, subscriptionsAt, version, after, int64(limit))
}

// SubscriptionAt implements fanout.Store.
func (f *Fanout) SubscriptionAt(ctx context.Context, id string, version int64) (s fanout.Subscription, err error) {
	list, err := f.subscriptions(ctx, subscriptionAt, id, version)
	if err == nil && (len(list) == 0 || list[0].Gone) {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return s, fmt.Errorf("read subscription %.128q: %w", id, err)
	}
	return list[0], nil
}

// fanoutRow is what a change finds of the row that it replaces.
type fanoutRow struct {
	found                          bool
	version, state, since, created int64
}

// change runs f with the next version, if the row still is what the author has seen. It looks before it
// writes, because a refusal after a write undoes the work of the calls that share the transaction. The
// number locks its row, so that only one node at a time makes a version; then it looks again.
func (f *Fanout) change(ctx context.Context, present, name string, seen int64, end bool, e *holdfast.Entry, write func(tx side.Tx, old *fanoutRow, version int64) error) (version int64, err error) {
	look := func(tx side.Tx) (old fanoutRow, err error) {
		err = tx.Read(present, []any{name}, func(scan side.Scan) error {
			old.found = true
			return scan(&old.version, &old.state, &old.since, &old.created)
		})
		return old, cmp.Or(err, notify.Seen(old.found, old.version, seen, end))
	}
	err = f.db.Change(ctx, side.Cost{Bytes: 1 << 10, LastRoom: end, Complete: true}, func(tx side.Tx) error {
		old, err := look(tx)
		if err == nil {
			_, err = tx.Exec(bumpFanout)
		}
		if err == nil {
			err = tx.Read(fanoutNumber, nil, func(scan side.Scan) error { return scan(&version) })
		}
		if err == nil {
			old, err = look(tx) // another node may have been faster
		}
		if err == nil {
			err = write(tx, &old, version)
		}
		if err != nil {
			return err
		}
		return tx.Note(e)
	})
	return version, err
}

// PutTopic implements fanout.Store.
func (f *Fanout) PutTopic(ctx context.Context, t fanout.Topic, actor string) (version int64, err error) {
	err = t.Validate()
	var row *rows.Topic
	if err == nil {
		row, err = fanout.TopicRow(&t)
	}
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.TopicPut, Subject: t.Name, Actor: actor}
		version, err = f.change(ctx, topicNow, t.Name, t.Version, false, e, func(tx side.Tx, _ *fanoutRow, version int64) error {
			next := *row
			next.Version = version
			return tx.Put(&next)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("put topic %.128q: %w", t.Name, err)
	}
	return version, nil
}

// DeleteTopic implements fanout.Store.
func (f *Fanout) DeleteTopic(ctx context.Context, name string, version int64, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.TopicRemoved, Subject: name, Actor: actor}
	if _, err := f.change(ctx, topicNow, name, version, true, e, func(tx side.Tx, _ *fanoutRow, version int64) error {
		return tx.Put(&rows.Topic{Name: name, Attributes: "[]", Version: version, Gone: true, Changed: rows.Now})
	}); err != nil {
		return fmt.Errorf("delete topic %.128q: %w", name, err)
	}
	return nil
}

// PutSubscription implements fanout.Store.
func (f *Fanout) PutSubscription(ctx context.Context, s fanout.Subscription, actor string) (version int64, err error) {
	err = s.Validate()
	var row *rows.Subscription
	if err == nil {
		row, err = fanout.SubscriptionRow(&s)
	}
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.SubscriptionPut, Subject: s.ID, Code: s.State.String(), Error: s.Why, Actor: actor}
		version, err = f.change(ctx, subscriptionNow, s.ID, s.Version, false, e, func(tx side.Tx, old *fanoutRow, version int64) error {
			next := *row
			if next.Version = version; old.found {
				next.Created = rows.Instant(old.created)
				if old.state == next.State {
					next.Since = rows.Instant(old.since)
				}
				if _, err := tx.Exec(endSubscription, s.ID, old.version, version); err != nil {
					return err
				}
			}
			return tx.Put(&next)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("put subscription %.128q: %w", s.ID, err)
	}
	return version, nil
}

// DeleteSubscription implements fanout.Store.
func (f *Fanout) DeleteSubscription(ctx context.Context, id string, version int64, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.SubscriptionRemoved, Subject: id, Actor: actor}
	if _, err := f.change(ctx, subscriptionNow, id, version, true, e, func(tx side.Tx, old *fanoutRow, version int64) error {
		if _, err := tx.Exec(endSubscription, id, old.version, version); err != nil {
			return err
		}
		if err := dropVisits(tx, fanout.Lane(id), actor); err != nil {
			return err
		}
		return tx.Put(&rows.Subscription{
			ID: id, Version: version, Until: version, Ended: rows.Now, Gone: true, Actor: actor, Topics: "[]", Filter: "{}", Settings: "{}",
			Since: rows.Now, Created: rows.Instant(old.created), Changed: rows.Now,
		})
	}); err != nil {
		return fmt.Errorf("delete subscription %.128q: %w", id, err)
	}
	return nil
}

// PurgeVersions implements fanout.Store.
func (f *Fanout) PurgeVersions(ctx context.Context) (more bool, err error) {
	var n int64
	if err := f.db.Change(ctx, side.Cost{}, func(tx side.Tx) (err error) {
		n, err = tx.Exec(purgeVersions)
		return err
	}); err != nil {
		return false, fmt.Errorf("purge former versions of subscriptions: %w", err)
	}
	return n == versionsAtOnce, nil
}

// versionsAtOnce is how many rows purgeVersions deletes.
const versionsAtOnce = 500
