package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// finish completes the claims, oldest first. It looks up names outside the transaction.
func (k *taking) finish(ctx context.Context) ([]holdfast.Claim, error) {
	if len(k.expired) > 0 && k.db.opts.Observer != nil {
		k.db.opts.Observer.ObserveExpired(len(k.expired))
	}
	slices.SortFunc(k.rows, func(a, b taken) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.claim.Seq, b.claim.Seq)) })
	list := make([]holdfast.Claim, 0, len(k.rows))
	var lost []taken
	for i := range k.rows {
		t := &k.rows[i]
		if t.lost {
			lost = append(lost, *t)
			continue
		}
		names, err := k.db.routeNames(ctx, t.route)
		if errors.Is(err, holdfast.ErrNotFound) {
			// It stays in hand: if it were given back, it would come again at once.
			k.db.log.ErrorContext(ctx, "a message names a route that the database does not have, which a failover may have lost: it stays claimed until the next start",
				slog.String("message_id", string(idFrom(t.id))), slog.Int("route", int(t.route)))
			k.db.claim.setAside(t.claim.Seq)
			continue
		}
		if err != nil {
			k.db.settleUntried(k.rows, holdfast.Settlement{Outcome: holdfast.NotStarted}) // without names, they cannot be delivered
			return nil, fmt.Errorf("claim: %w", err)
		}
		m := &t.claim.Message
		m.ID, m.Source, m.Destination, m.Endpoint, m.Kind = idFrom(t.id), names.source, names.destination, names.endpoint, names.kind
		k.db.readExtras(m, t.headers, t.retry)
		list = append(list, t.claim)
	}
	if len(lost) > 0 {
		k.db.settleUntried(lost, holdfast.Settlement{
			State: holdfast.Parked, Reason: holdfast.ReasonUndecodable, Outcome: holdfast.Permanent, Code: "undecodable",
			Error: "the payload is lost: the bundle that had it is not there",
		})
	}
	return list, nil
}

// readBundles fills in the payloads that messages share. Messages of one bundle share one slice.
func (k *taking) readBundles(tx *ownTx) error {
	payloads := map[int64][]byte{}
	for i := range k.rows {
		if b := k.rows[i].bundle; b != 0 {
			payloads[b] = nil
		}
	}
	if len(payloads) == 0 {
		return nil
	}
	bundles := slices.Collect(maps.Keys(payloads))
	clear(payloads)
	if err := tx.query(claimBundles, []any{bundles}, func(rows pgx.Rows) error {
		var seq int64
		var payload []byte
		err := rows.Scan(&seq, &payload)
		payloads[seq] = payload
		return err
	}); err != nil {
		return err
	}
	for i := range k.rows {
		if t := &k.rows[i]; t.bundle != 0 {
			payload, found := payloads[t.bundle]
			t.claim.Message.Payload, t.lost = payload, !found
		}
	}
	return nil
}

// readExtras decodes the fields that were encoded when the message was accepted.
func (db *DB) readExtras(m *holdfast.Message, headers, retry *string) {
	if headers != nil {
		if err := json.Unmarshal([]byte(*headers), &m.Headers); err != nil {
			db.log.Error("headers of a message cannot be read", slog.String("message_id", string(m.ID)), slog.Any("error", err))
		}
	}
	if retry != nil {
		m.Retry = &holdfast.RetryPolicy{}
		if err := json.Unmarshal([]byte(*retry), m.Retry); err != nil {
			m.Retry = nil
			db.log.Error("retry policy of a message cannot be read", slog.String("message_id", string(m.ID)), slog.Any("error", err))
		}
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
