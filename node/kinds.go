package node

import (
	"log/slog"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/notify"
)

// mail is the channel kind of a mail server.
const mail = "email"

// kinds returns the kinds of channels. mayUse says who may use which secret.
func (f *folder) kinds(mayUse func(notify.SecretUse) error, log *slog.Logger) map[string]notify.Kind {
	all := map[string]notify.Kind{mail: {
		New: func(c notify.Channel) (notify.Adapter, error) {
			return email.New(c.Settings, email.Options{Secret: f.secret, MayUse: mayUse, Addresses: f.conf.Addresses, Logger: log})
		},
		CheckAddress: func(address string) error {
			_, err := email.ParseAddress(address)
			return err
		},
	}}
	for _, kind := range chat.Kinds() {
		all[kind] = notify.Kind{
			New: func(c notify.Channel) (notify.Adapter, error) {
				return chat.New(c.Kind, c.Settings, chat.Options{Secret: f.secret, MayUse: mayUse, Addresses: f.conf.Addresses, Logger: log})
			},
			CheckAddress: func(address string) error { return chat.CheckAddress(kind, address) },
		}
	}
	return all
}
