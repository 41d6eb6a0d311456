package node

import (
	"encoding/json"
	"log/slog"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/notify"
)

// mail is the channel kind of a mail server.
const mail = "email"

// kind makes the adapters of one kind of channel. secret reads a secret, and mayUse says who may use which.
type kind struct {
	create       func(settings json.RawMessage, secret func(notify.SecretUse) ([]byte, error), mayUse func(notify.SecretUse) error) (notify.Adapter, error)
	checkAddress func(address string) error
}

// adapters returns the kinds of channels by name.
func (f *folder) adapters(log *slog.Logger) map[string]kind {
	all := map[string]kind{mail: {
		create: func(settings json.RawMessage, secret func(notify.SecretUse) ([]byte, error), mayUse func(notify.SecretUse) error) (notify.Adapter, error) {
			return email.New(settings, email.Options{Secret: secret, MayUse: mayUse, Addresses: f.conf.Addresses, Logger: log})
		},
		checkAddress: func(address string) error {
			_, err := email.ParseAddress(address)
			return err
		},
	}}
	for _, name := range chat.Kinds() {
		all[name] = kind{
			create: func(settings json.RawMessage, secret func(notify.SecretUse) ([]byte, error), mayUse func(notify.SecretUse) error) (notify.Adapter, error) {
				return chat.New(name, settings, chat.Options{Secret: secret, MayUse: mayUse, Addresses: f.conf.Addresses, Logger: log})
			},
			checkAddress: func(address string) error { return chat.CheckAddress(name, address) },
		}
	}
	return all
}

// kinds returns the kinds of channels. mayUse says who may use which secret of the folder.
func (f *folder) kinds(mayUse func(notify.SecretUse) error, log *slog.Logger) map[string]notify.Kind {
	all := map[string]notify.Kind{}
	for name, k := range f.adapters(log) {
		all[name] = notify.Kind{
			New: func(c notify.Channel) (notify.Adapter, error) {
				g, err := f.givenOf(c)
				if err != nil {
					return nil, err
				}
				return g.adapter(k, mayUse)
			},
			CheckAddress: k.checkAddress,
		}
	}
	return all
}
