package nodestore

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// shortLife is how long a token may be valid that is made for one visit, so that there are many of them.
const shortLife = 24 * time.Hour

// endedVisits are some that ended that long ago, by the clock.
const endedVisits = `SELECT name, created, until FROM hf_token WHERE until - created <= $1 AND until < hf_now() - $1 ORDER BY until LIMIT 100`

// dropEnded deletes tokens of visits that ended a day ago. While the clock is in doubt they stay.
func dropEnded(tx side.Tx, clock side.Clock, actor string) error {
	var names []string
	if err := tx.Read(endedVisits, []any{rows.Micros(shortLife)}, func(scan side.Scan) error {
		var name string
		var created, until int64
		err := scan(&name, &created, &until)
		k := rows.Token{Created: rows.Instant(created), Until: rows.Instant(until)}
		if clock.Judge(k.Until+rows.Instant(rows.Micros(shortLife)), lasts(&k)+shortLife) == belief.Over {
			names = append(names, name)
		}
		return err
	}); err != nil {
		return err
	}
	return dropTokens(tx, names, actor)
}

func dropTokens(tx side.Tx, names []string, actor string) error {
	for _, name := range names {
		if _, err := tx.Exec(dropCaller, name); err != nil {
			return err
		}
		if err := tx.Note(&holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: name, Actor: actor}); err != nil {
			return err
		}
	}
	return nil
}

// Tokens are few, and subscriptions are rarely deleted: all are read.
const visits = `SELECT name, role FROM hf_token WHERE name > $1 ORDER BY name`

// dropVisits deletes the tokens of the subscriber behind a destination, also those whose time is over or may be:
// another subscription may get the id.
func dropVisits(tx side.Tx, destination, actor string) error {
	var names []string
	if err := tx.Read(visits, []any{""}, func(scan side.Scan) error {
		var name, role string
		err := scan(&name, &role)
		if slices.Contains(visited(role), destination) {
			names = append(names, name)
		}
		return err
	}); err != nil {
		return err
	}
	return dropTokens(tx, names, actor)
}

// visited returns the destinations of a subscriber's token; of any other, none.
func visited(role string) []string {
	var may struct {
		Rights       []string `json:"rights"`
		Destinations []string `json:"destinations"`
	}
	if json.Unmarshal([]byte(role), &may) != nil || !slices.Contains(may.Rights, "portal") {
		return nil
	}
	return may.Destinations
}

// stays makes the end of a subscription wait for this transaction.
const stays = `UPDATE hf_subscription SET until = 0 WHERE id = $1 AND until = 0`

// checkVisits returns ErrNotFound unless there are all subscriptions of a subscriber's token. One that is being
// deleted by another node drops the token, or has ended before.
func checkVisits(tx side.Tx, role string) error {
	for _, destination := range visited(role) {
		id, ok := fanout.SubscriptionOf(destination)
		if !ok {
			continue
		}
		n, err := tx.Exec(stays, id)
		if err == nil && n == 0 { // perhaps another node has replaced what stood there when the statement began
			n, err = tx.Exec(stays, id)
		}
		if err == nil && n == 0 {
			err = fmt.Errorf("there is no subscription %.128q: %w", id, holdfast.ErrNotFound)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
