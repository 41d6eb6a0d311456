package nodestore

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
)

// Tokens are few, and subscriptions are rarely deleted: all are read.
const visits = `SELECT name, role FROM hf_token WHERE name > $1 ORDER BY name`

// dropVisits deletes the tokens of the subscriber behind a destination, also those whose time is over or may be:
// another subscription may get the id.
func dropVisits(tx side.Tx, destination, actor string) error {
	var names []string
	if err := tx.Read(visits, []any{""}, func(scan side.Scan) error {
		var name, role string
		err := scan(&name, &role)
		var may struct {
			Rights       []string `json:"rights"`
			Destinations []string `json:"destinations"`
		}
		if json.Unmarshal([]byte(role), &may) == nil && slices.Contains(may.Rights, "portal") && slices.Contains(may.Destinations, destination) {
			names = append(names, name)
		}
		return err
	}); err != nil {
		return err
	}
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
