package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/keyring"
)

// subscriptionTable is the table of the secrets of subscriptions.
const subscriptionTable = "subscription"

// signing returns what a secret that signs for a subscription is bound to. It is sent to nobody, so it is
// not bound to a host.
func signing(subscription string) keyring.Context {
	return keyring.Context{Table: subscriptionTable, Row: subscription, Column: "signing"}
}

// subscriptionSecrets are the sealed secrets of subscriptions. Former versions keep theirs, which nobody
// opens again.
type subscriptionSecrets struct{ store fanout.Store }

var _ keyring.Holder = subscriptionSecrets{}

// newest is above all versions.
const newest = 1 << 62

// Table implements keyring.Holder.
func (subscriptionSecrets) Table() string { return subscriptionTable }

// Values implements keyring.Holder.
func (s subscriptionSecrets) Values(ctx context.Context, after string, limit int) (values []keyring.Value, err error) {
	for {
		list, err := s.store.SubscriptionsAt(ctx, newest, after, limit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			after = list[i].ID
			for _, secret := range list[i].Secrets {
				values = append(values, keyring.Value{Place: after, At: signing(after), Sealed: secret.Sealed})
			}
		}
		if len(values) > 0 || len(list) < limit {
			return values, nil
		}
	}
}

// Replace implements keyring.Holder.
func (s subscriptionSecrets) Replace(ctx context.Context, changes []keyring.Change) error {
	by := map[string]map[string]string{}
	for _, c := range changes {
		if by[c.Place] == nil {
			by[c.Place] = map[string]string{}
		}
		by[c.Place][c.Sealed] = c.New
	}
	for id, sealed := range by {
		if err := s.replace(ctx, id, sealed); err != nil {
			return fmt.Errorf("subscription %s: %w", id, err)
		}
	}
	return nil
}

func (s subscriptionSecrets) replace(ctx context.Context, id string, by map[string]string) (err error) {
	for range replaceTries {
		var one fanout.Subscription
		if one, err = s.store.SubscriptionAt(ctx, id, newest); errors.Is(err, holdfast.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		found := false
		for i := range one.Secrets {
			if sealed := by[one.Secrets[i].Sealed]; sealed != "" {
				one.Secrets[i].Sealed, found = sealed, true
			}
		}
		if !found {
			return nil
		}
		if _, err = s.store.PutSubscription(ctx, one, "keys rotate"); !errors.Is(err, holdfast.ErrState) {
			return err
		}
	}
	return err
}
