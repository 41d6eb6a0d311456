package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/notify"
)

// given is one channel with the secrets that came by the API. Its adapter knows them by names, as it
// knows the files of the folder. A secret is sealed for its channel, kind and hosts: whoever may write
// channels cannot send it elsewhere, or give it to another channel.
type given struct {
	folder   *folder
	channel  notify.Channel
	settings json.RawMessage   // with names in the place of given secrets
	sealed   map[string]string // by name
	plain    map[string]string // by name: not sealed yet
	uses     []notify.SecretUse
	made     bool // the adapter is made: uses has all
}

// givenOf finds the given secrets of a channel.
func (f *folder) givenOf(c notify.Channel) (*given, error) {
	g := &given{folder: f, channel: c, sealed: map[string]string{}, plain: map[string]string{}}
	var err error
	g.settings, err = notify.EachSecret(c.Settings, func(_ string, s notify.GivenSecret) (any, error) { return g.name(s), nil })
	return g, err
}

// name returns the name of a given secret: the mark of a sealed one, and a number of a new one.
func (g *given) name(s notify.GivenSecret) string {
	if s.Sealed != "" {
		name := keyring.Mark(s.Sealed)
		g.sealed[name] = s.Sealed
		return name
	}
	name := fmt.Sprintf("new.%d", len(g.plain))
	g.plain[name] = s.Value
	return name
}

// mayUse notes what the adapter uses. A sealed secret says by itself where it may go.
func (g *given) mayUse(others func(notify.SecretUse) error) func(notify.SecretUse) error {
	return func(use notify.SecretUse) error {
		if !g.made {
			g.uses = append(g.uses, use)
		}
		if g.sealed[use.Secret] != "" || g.plain[use.Secret] != "" {
			return nil
		}
		return others(use)
	}
}

// secret returns a secret for a use.
func (g *given) secret(use notify.SecretUse) ([]byte, error) {
	if plain := g.plain[use.Secret]; plain != "" {
		return []byte(plain), nil
	}
	sealed := g.sealed[use.Secret]
	if sealed == "" {
		return g.folder.secret(use)
	}
	at, err := g.place(use.Secret)
	if err != nil {
		return nil, err
	}
	return g.folder.ring.Load().Open(at, sealed)
}

// channelTable is the table of the secrets of channels.
const channelTable = "channel"

// place returns what a secret is bound to: the kind of the channel, and each host that its settings
// let have it. The host of a URL that is a secret itself is read out of that; such a URL is not bound to a host.
func (g *given) place(name string) (keyring.Context, error) {
	hosts := map[string]bool{}
	for _, use := range g.uses {
		switch {
		case use.Secret != name || use.URL == name:
		case use.URL == "":
			hosts[strings.ToLower(use.Host)] = true
		default:
			text, err := g.secret(notify.SecretUse{Secret: use.URL, Kind: g.channel.Kind, URL: use.URL})
			if err != nil {
				return keyring.Context{}, fmt.Errorf("read the URL that says where the secret goes: %w", err)
			}
			u, err := url.Parse(strings.TrimSpace(string(text)))
			if err != nil {
				return keyring.Context{}, errors.New("the secret that says where another one goes is no URL")
			}
			hosts[strings.ToLower(u.Hostname())] = true
		}
	}
	column := strings.Join(append([]string{g.channel.Kind}, slices.Sorted(maps.Keys(hosts))...), " ")
	return keyring.Context{Table: channelTable, Row: g.channel.Name, Column: column}, nil
}

// look makes the adapter of the channel and closes it, so that the uses are known.
func (g *given) look() error {
	k, ok := g.folder.adapters(slog.New(slog.DiscardHandler))[g.channel.Kind]
	if !ok {
		return nil // the check of the channel reports it
	}
	a, err := g.adapter(k, func(notify.SecretUse) error { return nil })
	if err == nil {
		a.Close()
	}
	return err
}

// adapter makes the adapter of the channel.
func (g *given) adapter(k kind, mayUse func(notify.SecretUse) error) (notify.Adapter, error) {
	a, err := k.create(g.settings, g.secret, g.mayUse(mayUse))
	g.made = true
	return a, err
}

// Seal returns a channel as it is stored. New secrets are sealed, and those of the stored channel are
// told by their marks. An error is a *holdfast.FieldError, or several.
func (f *folder) Seal(c, stored notify.Channel) (notify.Channel, error) {
	kept := map[string]string{}
	if old, err := f.givenOf(stored); err == nil {
		kept = old.sealed
	}
	found := false
	named, err := notify.EachSecret(c.Settings, func(_ string, s notify.GivenSecret) (any, error) {
		found = true
		switch {
		case s.Sealed == "":
			return s, checkGiven(s.Value)
		case kept[s.Sealed] == "":
			return nil, errors.New(`names a sealed secret that this channel does not hold: give the secret, as {"secret": {"value": "…"}}`)
		}
		return notify.GivenSecret{Sealed: kept[s.Sealed]}, nil
	})
	if err != nil || !found {
		return c, err
	}
	c.Settings = named
	g, err := f.givenOf(c)
	if err == nil {
		err = g.look()
	}
	if err != nil {
		return c, err
	}
	c.Settings, err = g.seal()
	return c, err
}

// seal returns the settings with all secrets sealed.
func (g *given) seal() (json.RawMessage, error) {
	ring, again := g.folder.ring.Load(), &given{plain: map[string]string{}, sealed: map[string]string{}}
	return notify.EachSecret(g.channel.Settings, func(_ string, s notify.GivenSecret) (any, error) {
		at, err := g.place(again.name(s))
		if err != nil {
			return nil, err
		}
		if s.Sealed == "" {
			s.Sealed, err = ring.Seal(at, []byte(s.Value))
			return notify.GivenSecret{Sealed: s.Sealed}, err
		}
		if _, err := ring.Open(at, s.Sealed); errors.Is(err, keyring.ErrBroken) {
			return nil, errors.New(`was sealed for other hosts or another kind than the settings name now: give it again, as {"secret": {"value": "…"}}`)
		}
		return s, nil // if its key is away, the channel is held until it is there
	})
}

// longestGiven is the longest given secret, in bytes.
const longestGiven = 8 << 10

func checkGiven(secret string) error {
	switch text := strings.TrimSpace(secret); {
	case text == "":
		return errors.New("is empty")
	case len(text) > longestGiven:
		return fmt.Errorf("has %d bytes; at most %d fit", len(text), longestGiven)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has more than one line, or a control character")
	}
	return nil
}
