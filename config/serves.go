package config

import "strings"

// Names of lanes that are not destinations of the file.
const (
	selfLane           = "self"          // of a node that has no configured destination
	centralLane        = "central"       // of a site
	channelPrefix      = "channel:"      // of the channels of a node that brings notifications to people
	subscriptionPrefix = "subscription:" // of the subscriptions of a node that brings events to subscribers
)

// SelfOnly reports whether the node was told neither where to send nor what to receive. Then it delivers to itself.
func (c *Config) SelfOnly() bool {
	return c.Role == Standalone && len(c.Destinations) == 0 && len(c.Receive.Endpoints) == 0
}

// Serves reports whether a node of this configuration knows who delivers to a destination. If so, its
// messages need no change of the configuration. This holds even while the lane is absent, because the node
// has just started, a channel is disabled or a subscription was deleted.
func (c *Config) Serves(destination string) bool {
	if _, named := c.Destinations[destination]; named {
		return true
	}
	switch destination {
	case selfLane:
		return c.SelfOnly()
	case centralLane:
		return c.Role == Site
	}
	return c.Role != Site && (strings.HasPrefix(destination, channelPrefix) || strings.HasPrefix(destination, subscriptionPrefix))
}
