package config

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// configKeys are the keys of the file.
func configKeys() section[Config] {
	ofFile := func(c, _ *Config) bool { return c.Store.IsZero() }
	ofStore := func(c, _ *Config) bool { return !c.Store.IsZero() }
	return section[Config]{
		group("node", func(c *Config) *Node { return &c.Node }, nodeKeys(), yaml.FlowStyle),
		key("role", func(c *Config) *Role { return &c.Role }, word(Site, Standalone, Site, CentralOfSites), Standalone,
			"What the node is: `standalone` brings notifications to people by itself; a `site` forwards them to central; `central` takes those of its sites."),
		key("listen", func(c *Config) *string { return &c.Listen }, words[string]("127.0.0.1:8420", nil), "127.0.0.1:8420",
			"Address of the API and of the receiver. An empty host means all addresses.").
			tells("host:port, port 0 to 65535, 0 takes any free one; or `unix:///path/of/socket`", ""),
		key("data", func(c *Config) *string { return &c.Data }, location("./holdfast-data"), "./holdfast-data",
			"Folder of the database. It is made when it is missing.").only(ofFile),
		storeKey(),
		key("lease", func(c *Config) *time.Duration { return &c.Lease }, period(time.Second, 10*time.Minute), 15*time.Second,
			"With `store`: a node that the database has not heard of for so long is taken for dead, and others take over what it had in hand.").only(ofStore),
		key("tokens", func(c *Config) *Tokens { return &c.Tokens }, word(TokensAlways, TokensRemote, TokensAlways, TokensNever), TokensRemote,
			"Who needs a token to ask the node. `remote`: who comes from another machine. `always`: everybody, on the loopback and a socket as well; take it where people or programs share the machine. `never`: nobody, so that everybody who reaches the port can send, read, retry and discard, and make tokens; not beside `tls`."),
		key("listenUnencrypted", func(c *Config) *bool { return &c.ListenUnencrypted }, truth(), false,
			"Lets other machines reach `listen` without TLS. Everybody on the way can then read and change what is sent, tokens as well."),
		key("storeUnencrypted", func(c *Config) *bool { return &c.StoreUnencrypted }, truth(), false,
			"Lets `store` be on another machine without TLS. Everybody on the way can then read and change what is stored."),
		{name: "insecure", read: func(l *loader, _ *Config) decode {
			return func(path string, n *yaml.Node) { l.unreadable(path, n.Value, noInsecure) }
		}},
		group("tls", func(c *Config) *TLS { return &c.TLS }, tlsKeys(), 0).unlessEmpty(),
		group("log", func(c *Config) *Log { return &c.Log }, logKeys(), yaml.FlowStyle),
		key("durability", func(c *Config) *Durability { return &c.Durability }, word(Full, Full, Normal), Full,
			"When something counts as accepted. `full`: after it reached the disk. `normal`: faster, and a power cut may take the last seconds with it; the health report says so."),
		group("limits", func(c *Config) *Limits { return &c.Limits }, limitKeys(), yaml.FlowStyle),
		group("retention", func(c *Config) *Retention { return &c.Retention }, retentionKeys(), 0),
		key("stop", func(c *Config) *time.Duration { return &c.Stop }, period(0, time.Hour), 10*time.Second,
			"How long a node that is told to stop may go on with what it has in hand, the drain included. Two seconds later it has ended, whatever hangs."),
		key("drain", func(c *Config) *time.Duration { return &c.Drain }, period(0, time.Hour), time.Second,
			"How long of that it still serves requests as before, while `/readyz` says 503, so that a load balancer sends them elsewhere before the node stops taking them. Make it longer than the balancer's probes take to notice.").
			tells("`0s` to the value of `stop`", "`1s`, or a tenth of `stop` if that is less"),
		key("poll", func(c *Config) *time.Duration { return &c.Poll }, period(leastPoll, mostPoll), time.Second,
			"How often it looks at least for messages that are due. What comes in, or falls due, wakes it at once; this is the backstop."),
		key("clockHold", func(c *Config) *time.Duration { return &c.ClockHold }, period(time.Minute, 30*day), day,
			"How long messages, rows and ids are held, neither delivered nor ended, that would end because of time that [only the clock knows of](operations.md#a-clock-that-is-wrong)."),
		backupKey().only(ofFile),
		group("central", func(c *Config) *Central { return &c.Central }, centralKeys(), 0).
			only(func(c, _ *Config) bool { return c.Role == Site }),
		group("notifications", func(c *Config) *Notifications { return &c.Notifications }, notificationKeys(), 0).
			only(func(c, _ *Config) bool { return c.Role != Site }),
		named("sites", func(c *Config) *map[string]SiteLimits { return &c.Sites }, each("SITE", siteKeys())).
			unlessEmpty().only(func(c, _ *Config) bool { return c.Role == CentralOfSites }),
		destinationsKey(),
		group("receive", func(c *Config) *Receive { return &c.Receive }, receiveKeys(), 0),
	}
}
