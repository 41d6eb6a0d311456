package nodestore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	findCaller = `SELECT name, role, hf_now() - coalesce(used, 0) FROM hf_token WHERE hash = $1`
	noteCaller = `UPDATE hf_token SET used = hf_now() WHERE name = $1`
	dropCaller = `DELETE FROM hf_token WHERE name = $1`
)

// tokenNoted is the precision of a token's last use. A write per request would cost more than the
// precision is worth.
const tokenNoted = time.Hour

// Tokens keeps the tokens of a node's API.
type Tokens struct {
	db  side.Store
	log *slog.Logger
}

// CreateToken keeps an API token as the hash of its secret. ErrConflict means that the name is
// taken.
func (t *Tokens) CreateToken(ctx context.Context, name, role string, hash [32]byte, actor string) error {
	detail, err := json.Marshal(map[string]string{"role": role})
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.TokenAdded, Subject: name, Actor: actor, Detail: detail}
		err = named(ctx, t.db, side.Cost{LastRoom: true}, e, holdfast.ErrConflict, func(tx side.Tx) (int64, error) {
			return tx.Add(&rows.Token{Name: name, Role: role, Hash: hash[:], Created: rows.Now, Used: rows.None})
		})
	}
	if err != nil {
		return fmt.Errorf("create token %q: %w", name, err)
	}
	return nil
}

// DeleteToken deletes a token. ErrNotFound means that no token has the name.
func (t *Tokens) DeleteToken(ctx context.Context, name, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: name, Actor: actor}
	if err := named(ctx, t.db, side.Cost{LastRoom: true}, e, holdfast.ErrNotFound, func(tx side.Tx) (int64, error) {
		return tx.Exec(dropCaller, name)
	}); err != nil {
		return fmt.Errorf("delete token %q: %w", name, err)
	}
	return nil
}

// FindToken returns the token whose secret has this hash, or ErrNotFound.
func (t *Tokens) FindToken(ctx context.Context, hash [32]byte) (name, role string, err error) {
	found, unused := false, int64(0)
	err = t.db.Read(ctx, findCaller, []any{hash[:]}, func(scan side.Scan) error {
		found = true
		return scan(&name, &role, &unused)
	})
	if err == nil && !found {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", "", fmt.Errorf("find token: %w", err)
	}
	if unused > rows.Micros(tokenNoted) && !t.db.Full() {
		if err := t.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
			_, err := tx.Exec(noteCaller, name)
			return err
		}); err != nil { // no reason to refuse the request
			t.log.WarnContext(ctx, "use of a token not noted", slog.String("token", name), slog.Any("error", err))
		}
	}
	return name, role, nil
}

// EachToken calls yield for each token, in the order of their names.
func (t *Tokens) EachToken(ctx context.Context, yield func(name, role string, created, lastUsed time.Time)) error {
	if err := t.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.Token)(nil))}, func(r rows.Row) error {
		k := r.(*rows.Token) //nolint:forcetypeassert // asked for
		yield(k.Name, k.Role, t.db.Time(k.Created), t.db.Time(k.Used))
		return nil
	}); err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	return nil
}
