// Package call is the kind of destination for foreign HTTP APIs: its keys, their checks, and how to
// make an httpcall.Caller from them.
package call

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Kind returns the kind of destination.
func Kind() adapter.Kind {
	return adapter.Kind{
		Key: setting.Case[adapter.Settings]("call", keys()), Noun: "a call", Instead: "a call has its own url and ca",
		Category: holdfast.CategoryExternalSystem, Renewed: true,
		Reached: "accepts connections; a call is not tried, since it would take effect",
	}
}

// Kind returns the kind of these settings.
func (*Settings) Kind() adapter.Kind { return Kind() }

// Safety names the file of the key and the secrets.
func (c *Settings) Safety() adapter.Safety {
	private := map[string]string{"the key of the certificate for": c.Key}
	for key, secret := range c.Auth.secrets() {
		private["the secret "+key+" of"] = secret.File()
	}
	return adapter.Safety{Private: private}
}

// Probe opens a connection and sends nothing: a request could have an effect.
func (c *Settings) Probe(ctx context.Context, timeout time.Duration) (address string, err error) {
	address = exchange.Address(c.URL)
	guard, err := addressguard.New(c.Addresses)
	if err != nil {
		return address, err
	}
	if err := exchange.TakesConnections(ctx, guard, address, timeout); err != nil {
		return address, exchange.Unconnected(ctx, err)
	}
	return address, nil
}
