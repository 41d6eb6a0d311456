package nodestore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	findCaller = `SELECT name, role, hf_now() - coalesce(used, 0), created, coalesce(until, 0) FROM hf_token WHERE hash = $1`
	endCaller  = `UPDATE hf_token SET until = created + $2 WHERE name = $1`
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

// CreateToken keeps an API token as the hash of its secret. rights is what it may do, as a text that
// the API reads. The token ends after lasts; zero: it does not end. ErrConflict means that the name
// is taken, ErrNotFound that there is no subscription for which it is to be. Tokens of a day at most that ended a day ago are deleted.
func (t *Tokens) CreateToken(ctx context.Context, name, rights string, lasts time.Duration, hash [32]byte, actor string) error {
	about := map[string]string{"role": rights}
	if lasts > 0 {
		about["for"] = lasts.String()
	}
	detail, err := json.Marshal(about)
	var clock side.Clock
	if err == nil {
		clock, err = t.db.Clock(ctx)
	}
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.TokenAdded, Subject: name, Actor: actor, Detail: detail}
		err = named(ctx, t.db, side.Cost{LastRoom: true}, e, holdfast.ErrConflict, func(tx side.Tx) (int64, error) {
			if err := checkVisits(tx, rights); err != nil {
				return 0, err
			}
			added, err := tx.Add(&rows.Token{Name: name, Role: rights, Hash: hash[:], Created: rows.Now, Used: rows.None, Until: rows.None})
			if err == nil && added > 0 && lasts > 0 {
				_, err = tx.Exec(endCaller, name, rows.Micros(lasts))
			}
			if err == nil && added > 0 {
				err = dropEnded(tx, clock, actor)
			}
			return added, err
		})
	}
	if err != nil {
		return fmt.Errorf("create token %q: %w", name, err)
	}
	return nil
}

// DeleteToken deletes a token. ErrNotFound means that no token has the name. Without force, people.ErrNoAdmin means
// that nobody would be left who can operate the node.
func (t *Tokens) DeleteToken(ctx context.Context, name string, force bool, actor string) error {
	e := &holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: name, Actor: actor}
	if err := named(ctx, t.db, side.Cost{LastRoom: true}, e, holdfast.ErrNotFound, func(tx side.Tx) (int64, error) {
		if err := keepAdmin(tx, admin{token: name}, force); err != nil {
			return 0, err
		}
		return tx.Exec(dropCaller, name)
	}); err != nil {
		return fmt.Errorf("delete token %q: %w", name, err)
	}
	return nil
}

// FindToken returns the token whose secret has this hash. ErrNotFound means that there is none, or
// that its time is over or may be: the store doubts its clock.
func (t *Tokens) FindToken(ctx context.Context, hash [32]byte) (name, rights string, err error) {
	var k rows.Token
	var unused, created, until int64
	found := false
	err = t.db.Read(ctx, findCaller, []any{hash[:]}, func(scan side.Scan) error {
		found = true
		return scan(&k.Name, &k.Role, &unused, &created, &until)
	})
	if err == nil && until != 0 {
		var clock side.Clock
		if clock, err = t.db.Clock(ctx); err == nil {
			k.Created, k.Until = rows.Instant(created), rows.Instant(until)
			found = found && ended(clock, &k) == belief.Lives
		}
	}
	if err == nil && !found {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return "", "", fmt.Errorf("find token: %w", err)
	}
	if unused > rows.Micros(tokenNoted) && !t.db.Full() {
		if err := t.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
			_, err := tx.Exec(noteCaller, k.Name)
			return err
		}); err != nil { // no reason to refuse the request
			t.log.WarnContext(ctx, "use of a token not noted", slog.String("token", k.Name), slog.Any("error", err))
		}
	}
	return k.Name, k.Role, nil
}

// lasts returns how long a token was given for.
func lasts(k *rows.Token) time.Duration {
	return time.Duration(k.Until-k.Created) * time.Microsecond
}

// ended judges the end of a token that has one.
func ended(clock side.Clock, k *rows.Token) belief.Verdict { return clock.Judge(k.Until, lasts(k)) }

// EachToken calls yield for each token, in the order of their names. A token that has ended stays
// until it is deleted, or CreateToken deletes it.
func (t *Tokens) EachToken(ctx context.Context, yield func(name, rights string, created, lastUsed, until time.Time, ended bool)) error {
	clock, err := t.db.Clock(ctx)
	if err == nil {
		err = t.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.Token)(nil))}, func(r rows.Row) error {
			k := r.(*rows.Token) //nolint:forcetypeassert // asked for
			until, over := time.Time{}, false
			if k.Until != rows.None {
				until, over = clock.End(k.Until, lasts(k)), ended(clock, k) != belief.Lives
			}
			yield(k.Name, k.Role, t.db.Time(k.Created), t.db.Time(k.Used), until, over)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	return nil
}
