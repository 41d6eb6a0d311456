package node

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/notify"
)

// folder holds the secrets of channels: one file per name. The configuration binds them, or else the channels
// of the seed do by what they use. Those that came by the API stand sealed in the settings of their channel.
type folder struct {
	conf     *config.Notifications
	seedUses atomic.Pointer[[]notify.SecretUse]
	ring     atomic.Pointer[keyring.Ring] // seals those that come by the API; nil: no keys
}

// longestSecret is far longer than any real secret, in bytes.
const longestSecret = 64 << 10

// secret reads the file that a channel names as a secret. It reads the file at each use, so that a new secret
// needs no restart. It gives a secret only to uses that the configuration allows.
func (f *folder) secret(use notify.SecretUse) ([]byte, error) {
	path := f.conf.Secrets
	if path == "" {
		return nil, fmt.Errorf("secret %q: this node has no folder of secrets: set notifications.secrets", use.Secret)
	}
	if err := notify.CheckName("secret", use.Secret); err != nil {
		return nil, err
	}
	if err := f.mayUse(use); err != nil {
		return nil, err
	}
	text, err := namedfile.ReadLine(filepath.Join(path, use.Secret), longestSecret)
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", use.Secret, err)
	}
	return text, nil
}

// mayUse says why a secret must not be used in this way. Somebody who may write channels can name any secrets
// and hosts. Only the configuration says which of them belong together: by a binding, or else by what the
// seed's channels use. A URL that is itself a secret leads where its author wanted.
func (f *folder) mayUse(use notify.SecretUse) error {
	b, bound := f.conf.Bindings[use.Secret]
	itself := use.URL == use.Secret
	switch {
	case bound && b.Allows(use.Kind, use.Host):
		return nil
	case bound && itself && len(b.Hosts) == 0 && b.Allows(use.Kind, ""):
		return nil
	case !bound && (itself || f.seedUsesIt(seedUse(use))):
		return nil
	}
	host := use.Host
	if host == "" {
		host = "HOST"
	}
	return fmt.Errorf("secret %q is not bound to channels of kind %s and to %s; in the node's configuration, set notifications: {bindings: {%s: {kinds: [%s], hosts: [%s]}}}",
		use.Secret, use.Kind, host, use.Secret, use.Kind, host)
}

// seedUse is a use as the settings tell it. If a URL is a secret, the settings do not show its host.
func seedUse(use notify.SecretUse) notify.SecretUse {
	if use.URL != "" {
		use.Host = ""
	}
	return use
}

func (f *folder) seedUsesIt(use notify.SecretUse) bool {
	uses := f.seedUses.Load()
	return uses != nil && slices.Contains(*uses, use)
}

// bindSeed records what the channels of the seed use.
func (f *folder) bindSeed(channels []notify.Channel) {
	var uses []notify.SecretUse
	note := func(use notify.SecretUse) error {
		uses = append(uses, seedUse(use))
		return nil
	}
	kinds := f.kinds(note, slog.New(slog.DiscardHandler))
	for _, c := range channels {
		if k, ok := kinds[c.Kind]; ok {
			if a, err := k.New(c); err == nil { // the check reports an error
				a.Close()
			}
		}
	}
	f.seedUses.Store(&uses)
}
