package config_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

func made() *config.Config {
	c := config.Default()
	c.Node.ID = "shop-12"
	d := config.DefaultDestination()
	d.URL, d.Secret = "http://127.0.0.1:8421", config.NewSecret([]byte(key))
	c.Destinations["inventory"] = d
	return c
}

func TestAConfigurationMadeByHandIsChecked(t *testing.T) {
	t.Parallel()
	if warnings, err := made().Check(); err != nil || len(warnings) > 0 {
		t.Fatalf("got warnings %v, error %v", warnings, err)
	}
	cases := map[string]struct {
		spoil func(c *config.Config, d *config.Destination)
		want  []string // paths
	}{
		"zero": {
			func(c *config.Config, d *config.Destination) {
				*c, *d = config.Config{Destinations: c.Destinations}, config.Destination{}
			},
			[]string{
				"node.id", "role", "notifications.poll", "notifications.retention", "notifications.sweep", "notifications.stuck", "notifications.window", "poll", "listen", "data", "log.level", "log.format", "durability", "tokens", "limits.payload", "limits.strangers", "limits.bodies", "notificaties.callbacks", "notificaties.hosts", "notificaties.faults", "pages.colour", "sessions.life", "sessions.idle", "receive.window", "retention.activity", "retention.delivered",
				"retention.discarded", "retention.expired", "retention.inbox", "retention.sweep", "retention.tracking", "retention.parked", "webhooks.retention", "webhooks.backoff", "webhooks.factor", "webhooks.base", "webhooks.cap", "webhooks.disableAfter", "backup", "backup.every", "audit.content", "audit.verify", "clockHold",
				"destinations.inventory.url", "destinations.inventory.secret", "destinations.inventory.hmac",
				"destinations.inventory.retry.policy", "destinations.inventory.ttl", "destinations.inventory.timeout",
				"destinations.inventory.concurrency", "destinations.inventory.charge", "destinations.inventory.order", "destinations.inventory.schedule",
			},
		},
		"secret": {
			func(c *config.Config, d *config.Destination) {
				d.Secret = config.NewSecret([]byte("short"))
				c.Receive.Sources["a"] = config.Source{HMAC: config.HMACv1, Secrets: []config.Secret{{}, d.Secret}}
				c.Receive.Sources["b"] = config.Source{HMAC: config.HMACv1}
			},
			[]string{"destinations.inventory.secret", "receive.secrets.a[0]", "receive.secrets.a[1]", "receive.secrets.b"},
		},
		"a retry of two policies": {
			func(_ *config.Config, d *config.Destination) {
				d.Retry.Interval, d.Retry.Waits, d.Retry.Retries = time.Second, []time.Duration{1}, 0
			},
			[]string{"destinations.inventory.retry.interval", "destinations.inventory.retry.waits", "destinations.inventory.retry.retries"},
		},
		"names": {
			func(c *config.Config, _ *config.Destination) {
				c.Node.ID = "a/b"
				c.Destinations["."] = c.Destinations["inventory"]
				c.Receive.Endpoints[""] = config.Endpoint{Keep: true}
				c.Receive.Sources["ü"] = config.Source{HMAC: config.HMACv2, Secrets: []config.Secret{c.Destinations["inventory"].Secret}}
			},
			[]string{"node.id", "destinations", "receive.secrets", "receive.endpoints"},
		},
		"site": {
			func(c *config.Config, d *config.Destination) {
				c.Role, c.Notifications.Seed = config.Site, "seed.yaml"
				c.Central = config.Central{URL: "http://central.example", Cert: "a", Timeout: time.Minute}
				c.Retention.Delivered = time.Hour
				c.Destinations["central"] = *d
			},
			[]string{"central", "central.url", "notifications", "destinations.central", "retention.delivered"},
		},
		"no site": {
			func(c *config.Config, d *config.Destination) {
				c.Role, c.Central.URL, c.TLS = config.CentralOfSites, "https://central.example", config.TLS{Clients: "ca.pem"}
			},
			[]string{"central", "tls"},
		},
		"paths": {
			func(c *config.Config, d *config.Destination) {
				c.Data, c.TLS = "a\x00b", config.TLS{Cert: "a\n", Key: "\xff"}
				d.CA, d.URL = "\x1b", "https://h"
			},
			[]string{"data", "tls.cert", "tls.key", "destinations.inventory.ca"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := made()
			d := c.Destinations["inventory"]
			tc.spoil(c, &d)
			c.Destinations["inventory"] = d
			_, err := c.Check()
			var got []string
			seen := map[string]bool{}
			for _, f := range faults(t, err) {
				if !seen[f.Path] {
					got = append(got, f.Path)
				}
				seen[f.Path] = true
				if f.File != "" || f.Line != 0 || f.Origin != "" {
					t.Errorf("%s: got the place %q, line %d, want none", f.Path, f.File+f.Origin, f.Line)
				}
			}
			slices.Sort(tc.want)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyLoopbackMayBePlain(t *testing.T) {
	t.Parallel()
	for listen, plain := range map[string]bool{
		"127.0.0.1:8420": true, "127.9.9.9:0": true, "localhost:1": true, "LocalHost:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		":8420": false, "0.0.0.0:8420": false, "[::]:8420": false, "192.168.1.5:8420": false, "localhost.example:1": false, "[::ffff:10.0.0.1]:1": false,
	} {
		c := made()
		c.Listen = listen
		if _, err := c.Check(); (err == nil) != plain {
			t.Errorf("%s: got error %v, want plain allowed: %t", listen, err, plain)
		}
		c.ListenUnencrypted = true
		if warnings, err := c.Check(); err != nil || (len(warnings) == 0) != plain {
			t.Errorf("%s, unencrypted: got warnings %v, error %v", listen, warnings, err)
		}
		c.ListenUnencrypted, c.TLS = false, config.TLS{Cert: "c", Key: "k"}
		if warnings, err := c.Check(); err != nil || len(warnings) > 0 {
			t.Errorf("%s, TLS: got warnings %v, error %v", listen, warnings, err)
		}
	}
}

func TestRetryWindowIsTheTTLAndOneAttempt(t *testing.T) {
	t.Parallel()
	d := config.DefaultDestination()
	if got, bounded := d.RetryWindow(); !bounded || got != 24*time.Hour+30*time.Second {
		t.Errorf("got %v, bounded %t", got, bounded)
	}
	d.TTL = config.Never
	if got, bounded := d.RetryWindow(); bounded {
		t.Errorf("got %v, want no bound", got)
	}
}

func TestRetriesAndWaits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Retry{
		"{retries: 0}":                                 with(config.DefaultRetry(config.Exponential), func(r *config.Retry) { r.Retries = config.Unlimited }),
		"{base: 1s}":                                   with(config.DefaultRetry(config.Exponential), func(r *config.Retry) { r.Base = time.Second }),
		"{interval: 1m, policy: fixed}":                with(config.DefaultRetry(config.Fixed), func(r *config.Retry) { r.Interval = time.Minute }),
		"{policy: list, waits: [0s, 5s]}":              {Policy: config.List, Waits: []time.Duration{0, 5 * time.Second}, Retries: 2},
		"{policy: list, waits: [5s], retries: 9}":      {Policy: config.List, Waits: []time.Duration{5 * time.Second}, Retries: 9},
		"{policy: list, waits: [5s, 9s], retries: 0}":  {Policy: config.List, Waits: []time.Duration{5 * time.Second, 9 * time.Second}, Retries: config.Unlimited},
		"{factor: 1.5, jitter: 0s, cap: 2d, base: 1w}": {},
	} {
		c, _, err := config.Parse("f", []byte("destinations: {a: {url: \"http://h\", secret: {env: GOOD}, retry: "+text+"}}"), world(nil), config.Overrides{})
		if want.Policy == "" {
			if err == nil {
				t.Errorf("%s: got no error", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, c.Destinations["a"].Retry); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func with(r config.Retry, change func(*config.Retry)) config.Retry {
	change(&r)
	return r
}

// OI-11: a socket is local, and needs neither TLS nor tokens.
func TestASocketIsALocalAddress(t *testing.T) {
	t.Parallel()
	text := `
listen: unix:///run/holdfast/api.sock
destinations: {peer: {url: "unix:///run/holdfast/peer.sock", secret: {env: GOOD}}}
`
	c, warnings, err := config.Parse("holdfast.yaml", []byte(text), world(nil), config.Overrides{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("got warnings %v, error %v", warnings, err)
	}
	again, _, err := config.Parse("again.yaml", c.YAML(), world(nil), config.Overrides{})
	if err != nil || again.Listen != "unix:///run/holdfast/api.sock" || again.Destinations["peer"].URL != "unix:///run/holdfast/peer.sock" {
		t.Errorf("printed and read again: got %+v, %v", again, err)
	}
}
