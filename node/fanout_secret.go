package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// subscriptionTable is the table of the secrets of subscriptions.
const subscriptionTable = "subscription"

// boundTo returns what a secret of a subscription is bound to. An authorization is bound to its kind and to
// where it is sent, so that whoever may write subscriptions cannot have it sent to a host of their own. What
// signs, and the key of a certificate, are sent to nobody.
func boundTo(s *fanout.Subscription, use fanout.Use) keyring.Context {
	at := keyring.Context{Table: subscriptionTable, Row: s.ID, Column: string(use)}
	if use == fanout.ForAuthorization {
		a := s.Authorization
		at.Column = strings.Join([]string{at.Column, string(a.Kind), origin(s.URL), origin(a.URL)}, " ")
	}
	return at
}

// origin returns scheme, host and port of a URL.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// opened returns a secret of a subscription. The error is a *holdfast.FieldError.
func (n *Node) opened(s *fanout.Subscription, secret fanout.Sealed) (string, error) {
	plain, err := n.secrets.ring.Load().Open(boundTo(s, secret.Use), *secret.Text)
	if err == nil {
		return string(plain), nil
	}
	problem := err.Error()
	if secret.Use == fanout.ForAuthorization && errors.Is(err, keyring.ErrBroken) {
		problem = "was given for another kind or host, to which alone it is sent: give it again"
	}
	return "", &holdfast.FieldError{Field: secret.Field, Value: keyring.Mark(*secret.Text), Problem: problem}
}

// newSecret makes a secret that signs, of the kind of the last one of a subscription.
func (n *Node) newSecret(s *fanout.Subscription) (secret, public string, err error) {
	last := ""
	for _, one := range s.Sealed() {
		if one.Use == fanout.ForSigning {
			if last, err = n.opened(s, one); err != nil {
				return "", "", err
			}
		}
	}
	secret = standardwebhooks.NewSecret(last)
	signer, err := standardwebhooks.NewSigner(secret)
	return secret, signer.Public(), err
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
			for _, secret := range list[i].Sealed() {
				values = append(values, keyring.Value{Place: after, At: boundTo(&list[i], secret.Use), Sealed: *secret.Text})
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
		for _, secret := range one.Sealed() {
			if sealed := by[*secret.Text]; sealed != "" {
				*secret.Text, found = sealed, true
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
