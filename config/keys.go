package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// configKeys returns the keys of the file.
func configKeys(kinds []adapter.Kind) setting.Section[Config] {
	ofFile := func(_ any, c *Config) bool { return c.Store.IsZero() }
	ofStore := func(_ any, c *Config) bool { return !c.Store.IsZero() }
	return setting.Section[Config]{
		setting.Group("node", func(c *Config) *Node { return &c.Node }, nodeKeys(), yaml.FlowStyle),
		setting.Key("role", func(c *Config) *Role { return &c.Role }, setting.Word(Site, Standalone, Site, CentralOfSites), Standalone,
			"What the node is: `standalone` brings notifications to people by itself; a `site` forwards them to central; `central` takes those of its sites."),
		setting.Key("listen", func(c *Config) *string { return &c.Listen }, setting.Words[string]("127.0.0.1:8420", nil), "127.0.0.1:8420",
			"Address of the API and of the receiver. An empty host means all addresses.").
			Tells("host:port, port 0 to 65535, 0 takes any free one; or `unix:///path/of/socket`", ""),
		setting.Key("data", func(c *Config) *string { return &c.Data }, setting.Location("./holdfast-data"), "./holdfast-data",
			"Folder of the database. It is made if it is missing.").Only(ofFile),
		storeKey(),
		setting.Key("lease", func(c *Config) *time.Duration { return &c.Lease }, setting.Period(time.Second, 10*time.Minute), 15*time.Second,
			"With `store`: if the database has not heard of a node for this long, the node counts as dead, and others take over what it had in hand.").Only(ofStore),
		setting.Key("tokens", func(c *Config) *Tokens { return &c.Tokens }, setting.Word(TokensAlways, TokensRemote, TokensAlways, TokensNever), TokensRemote,
			"Who needs a token to call the node. `remote`: callers from other machines. `always`: everybody, even on the loopback and a socket; use it if people or programs share the machine. `never`: nobody, so that everybody who reaches the port can send, read, retry and discard, and make tokens; not allowed with `tls`."),
		setting.Key("listenUnencrypted", func(c *Config) *bool { return &c.ListenUnencrypted }, setting.Truth(), false,
			"Lets other machines reach `listen` without TLS. Everybody on the way can then read and change what is sent, including tokens."),
		setting.Key("storeUnencrypted", func(c *Config) *bool { return &c.StoreUnencrypted }, setting.Truth(), false,
			"Lets `store` be on another machine without TLS. Everybody on the way can then read and change what is stored."),
		{Name: "insecure", Read: func(l *setting.Loader, _ *Config) setting.Decode {
			return func(path string, n *yaml.Node) { l.Unreadable(path, n.Value, noInsecure) }
		}},
		setting.Group("tls", func(c *Config) *TLS { return &c.TLS }, tlsKeys(), 0).UnlessEmpty(),
		setting.Group("log", func(c *Config) *Log { return &c.Log }, logKeys(), yaml.FlowStyle),
		setting.Key("durability", func(c *Config) *Durability { return &c.Durability }, setting.Word(Full, Full, Normal), Full,
			"When a message counts as accepted. `full`: after it reached the disk. `normal`: faster, but a power cut may lose the last seconds; the health report says so."),
		setting.Group("limits", func(c *Config) *Limits { return &c.Limits }, limitKeys(), yaml.FlowStyle),
		setting.Group("retention", func(c *Config) *Retention { return &c.Retention }, retentionKeys(), 0),
		setting.Key("activity", func(c *Config) *bool { return &c.Activity }, setting.Truth(), true,
			"Whether the node writes [what happens to messages](operations.md#activity) into a log. It costs writes for each message; all nodes of one `store` must say the same."),
		setting.Key("stop", func(c *Config) *time.Duration { return &c.Stop }, setting.Period(0, time.Hour), 10*time.Second,
			"How long a node that is told to stop may go on with its work in hand, including the drain. Two seconds later it ends, whatever hangs."),
		setting.Key("drain", func(c *Config) *time.Duration { return &c.Drain }, setting.Period(0, time.Hour), time.Second,
			"The part of `stop` in which it still serves requests while `/readyz` says 503. A load balancer then sends requests elsewhere before the node stops taking them. Make it longer than the balancer needs to notice.").
			Tells("`0s` to the value of `stop`", "`1s`, or a tenth of `stop` if that is less"),
		setting.Key("poll", func(c *Config) *time.Duration { return &c.Poll }, setting.Period(leastPoll, mostPoll), time.Second,
			"The longest time between two looks for due messages. A message that comes in or falls due wakes the node at once; this is the backstop."),
		setting.Key("clockHold", func(c *Config) *time.Duration { return &c.ClockHold }, setting.Period(time.Minute, 30*setting.Day), setting.Day,
			"How long messages, rows and ids are held, neither delivered nor ended, if they would end because of time that [only the clock says has passed](operations.md#a-clock-that-is-wrong)."),
		backupKey().Only(ofFile),
		setting.Group("audit", func(c *Config) *Audit { return &c.Audit }, auditKeys(), 0),
		setting.Group("pages", func(c *Config) *Pages { return &c.Pages }, pageKeys(), yaml.FlowStyle),
		setting.Group("sessions", func(c *Config) *Sessions { return &c.Sessions }, sessionKeys(), yaml.FlowStyle),
		setting.Group("central", func(c *Config) *Central { return &c.Central }, centralKeys(), 0).
			Only(func(_ any, c *Config) bool { return c.Role == Site }),
		setting.Group("notifications", func(c *Config) *Notifications { return &c.Notifications }, notificationKeys(), 0).
			Only(func(_ any, c *Config) bool { return c.Role != Site }),
		setting.Group("webhooks", func(c *Config) *Webhooks { return &c.Webhooks }, webhookKeys(), 0).
			Only(func(_ any, c *Config) bool { return c.Role != Site }),
		setting.Group("notificaties", func(c *Config) *Notificaties { return &c.Notificaties }, notificatiesKeys(), 0).
			Only(func(_ any, c *Config) bool { return c.Role != Site }),
		setting.Group("secrets", func(c *Config) *Keyring { return &c.Secrets }, keyringKeys(), 0).UnlessEmpty().
			Only(func(_ any, c *Config) bool { return c.Role != Site }),
		setting.Named("sites", func(c *Config) *map[string]SiteLimits { return &c.Sites }, setting.Each("SITE", siteKeys())).
			UnlessEmpty().Only(func(_ any, c *Config) bool { return c.Role == CentralOfSites }),
		destinationsKey(kinds),
		setting.Group("receive", func(c *Config) *Receive { return &c.Receive }, receiveKeys(), 0),
	}
}
