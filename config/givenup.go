package config

import (
	"maps"
	"net"
	"slices"

	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

// GivenUp is a safeguard that the configuration gives up.
type GivenUp struct {
	Key  string // of the file: the setting concerned
	What string // what others can do then
}

// GivenUp lists the safeguards against other machines that listenUnencrypted, storeUnencrypted, tokens and
// the switches of destinations give up. Check warns about the same ones.
func (c *Config) GivenUp() (list []GivenUp) {
	for _, g := range c.givenUp() {
		list = append(list, GivenUp{g.path, g.problem.What})
	}
	return list
}

type givenUp struct {
	path, value string
	problem     setting.Problem
}

func (c *Config) givenUp() (list []givenUp) {
	if c.remote() && c.TLS == (TLS{}) {
		if c.Tokens == TokensNever {
			list = append(list, givenUp{"tokens", string(c.Tokens), setting.Problem{
				What: "lets everybody who reaches " + c.Listen + " send, read, retry and discard, and make tokens", Fix: "write remote unless you trust everybody on that network",
			}})
		}
		if c.ListenUnencrypted {
			list = append(list, givenUp{"listen", c.Listen, setting.Problem{
				What: "can be reached from other machines without TLS, so that everybody on the way can read and change what is sent, tokens as well",
				Fix:  "set tls.cert and tls.key unless you trust everybody on that network",
			}})
		}
	}
	if what := c.plainStore(); what != "" && c.StoreUnencrypted {
		list = append(list, givenUp{"store", c.Store.String(), setting.Problem{What: what, Fix: "add sslmode=verify-full unless you trust everybody on that network"}})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		if d.Foreign == nil {
			continue
		}
		for _, g := range d.Foreign.Safety().GivenUp {
			list = append(list, givenUp{setting.Join("destinations", name) + "." + d.Foreign.Kind().Key.Name + "." + g.Key, g.Value, g.Problem})
		}
	}
	return list
}

// remote reports whether other machines reach the listener.
func (c *Config) remote() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && setting.SchemeOf(c.Listen) != socket.Scheme && !setting.IsLoopback(host)
}
