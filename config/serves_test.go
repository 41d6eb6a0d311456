package config_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/config"
)

// F1-36: one rule says which destinations a configuration knows, whether or
// not their lanes stand: central, channels, subscriptions, a node's own inbox.
func TestWhomAConfigurationServes(t *testing.T) {
	t.Parallel()
	named := map[string]config.Destination{"erp": config.DefaultDestination()}
	for name, c := range map[string]struct {
		conf config.Config
		yes  []string
		no   []string
	}{
		"standalone": {config.Config{Role: config.Standalone, Destinations: named}, []string{"erp", "channel:mail", "channel:", "subscription:shop"}, []string{"central", "self", "old"}},
		"site":       {config.Config{Role: config.Site, Destinations: named}, []string{"erp", "central"}, []string{"channel:mail", "subscription:shop", "self", "old"}},
		"central":    {config.Config{Role: config.CentralOfSites}, []string{"channel:mail", "subscription:shop"}, []string{"central", "self", "erp"}},
		"bare":       {config.Config{Role: config.Standalone}, []string{"self", "channel:mail"}, []string{"central", "erp"}},
	} {
		for _, to := range c.yes {
			if !c.conf.Serves(to) {
				t.Errorf("%s: %s is not known", name, to)
			}
		}
		for _, to := range c.no {
			if c.conf.Serves(to) {
				t.Errorf("%s: %s is known", name, to)
			}
		}
	}
}
