package admin

import (
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/notify"
)

// Vault seals the secrets that come by the API. Its methods may be called concurrently.
type Vault interface {
	// Seal returns a channel as it is stored, with its secrets sealed. Secrets of the stored channel are
	// told by their marks. The error has FieldErrors.
	Seal(c, stored notify.Channel) (notify.Channel, error)
	// Keys opens each sealed secret, and counts them.
	Keys(ctx context.Context) (api.KeyList, error)
	// Rotate seals the secrets of a page of about limit rows with the newest key, and those that have it
	// not anew. It may be repeated.
	Rotate(ctx context.Context, after string, limit int) (api.KeyRotation, error)
}

// Keys offers the keys that secrets in the database are sealed with.
type Keys struct{ *Service }

func noVault() *api.Problem {
	return api.Unsupported.Problem("this node seals no secrets in its database")
}

// List returns the keys, with what is sealed with each.
func (k Keys) List(ctx context.Context) (api.KeyList, error) {
	if k.Vault == nil {
		return api.KeyList{}, noVault()
	}
	list, err := k.Vault.Keys(ctx)
	if err != nil {
		return list, k.refuse(ctx, "list keys", err)
	}
	return list, nil
}

// Rotate seals one page of secrets with the newest key.
func (k Keys) Rotate(ctx context.Context, after string, limit int) (api.KeyRotation, error) {
	if k.Vault == nil {
		return api.KeyRotation{}, noVault()
	}
	page, err := k.Vault.Rotate(ctx, after, limit)
	switch {
	case errors.Is(err, keyring.ErrNoKey):
		return page, api.WrongState.Problem(err.Error())
	case errors.Is(err, keyring.ErrPlace):
		return page, api.Faulty(api.Fault{Field: "after", Value: api.Clip(after), Problem: "is not the next of a page"})
	case err != nil:
		return page, k.refuse(ctx, "rotate keys", err)
	case page.Resealed > 0:
		k.noted(ctx, "secrets sealed with the newest key", slog.Int("count", page.Resealed))
	}
	return page, nil
}

// shownSettings returns settings as people see them: with the marks of sealed secrets.
func shownSettings(c *notify.Channel) []byte {
	shown, err := notify.EachSecret(c.Settings, func(_ string, s notify.GivenSecret) (any, error) {
		return notify.GivenSecret{Sealed: keyring.Mark(s.Sealed)}, nil
	})
	if err != nil { // only a program that bypasses all checks can store this
		return nil
	}
	return shown
}
