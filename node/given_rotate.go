package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/notify"
)

// channelSecrets are the sealed secrets of channels.
type channelSecrets struct {
	folder *folder
	store  notify.DirectoryStore
}

var _ keyring.Holder = channelSecrets{}

// Table implements keyring.Holder.
func (channelSecrets) Table() string { return channelTable }

// Values implements keyring.Holder.
func (s channelSecrets) Values(ctx context.Context, after string, limit int) (values []keyring.Value, err error) {
	book, err := s.store.Directory(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(book.Channels)) {
		if name > after && limit > 0 {
			if of := s.folder.valuesOf(book.Channels[name]); len(of) > 0 {
				values = append(values, of...)
				limit--
			}
		}
	}
	return values, nil
}

func (f *folder) valuesOf(c notify.Channel) (values []keyring.Value) {
	g, err := f.givenOf(c)
	if err != nil || len(g.sealed) == 0 {
		return nil
	}
	fault := g.look()
	for _, name := range slices.Sorted(maps.Keys(g.sealed)) {
		v := keyring.Value{Place: c.Name, Sealed: g.sealed[name]}
		if v.At, v.Err = g.place(name); fault != nil {
			v.Err = fmt.Errorf("the settings of the channel do not work: %w", fault)
		}
		v.At.Table = channelTable
		values = append(values, v)
	}
	return values
}

// Replace implements keyring.Holder.
func (s channelSecrets) Replace(ctx context.Context, changes []keyring.Change) error {
	by := map[string]map[string]string{}
	for _, c := range changes {
		if by[c.Place] == nil {
			by[c.Place] = map[string]string{}
		}
		by[c.Place][c.Sealed] = c.New
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if err := s.replace(ctx, name, by[name]); err != nil {
			return fmt.Errorf("channel %s: %w", name, err)
		}
	}
	return nil
}

// replaceTries bounds how often a channel is read again because somebody else has changed it.
const replaceTries = 20

func (s channelSecrets) replace(ctx context.Context, name string, by map[string]string) (err error) {
	for range replaceTries {
		var book notify.Directory
		if book, err = s.store.Directory(ctx); err != nil {
			return err
		}
		c := book.Channels[name]
		var settings json.RawMessage
		settings, err = notify.EachSecret(c.Settings, func(_ string, g notify.GivenSecret) (any, error) {
			if sealed := by[g.Sealed]; sealed != "" {
				g.Sealed = sealed
			}
			return g, nil
		})
		if err != nil || bytes.Equal(settings, c.Settings) { // nothing of it is left
			return err
		}
		c.Settings = settings
		if err = s.store.PutChannel(ctx, c, "keys rotate"); !errors.Is(err, holdfast.ErrState) {
			return err
		}
	}
	return err
}
