package config

import "strings"

// Names of lanes that no destination of the file has.
const (
	selfLane      = "self"     // of a node that was told of no destination
	centralLane   = "central"  // of a site
	channelPrefix = "channel:" // of the channels of a node that brings notifications to people
)

// SelfOnly says whether the node was told neither where to send nor what to
// receive: then it delivers to itself.
func (c *Config) SelfOnly() bool {
	return c.Role == Standalone && len(c.Destinations) == 0 && len(c.Receive.Endpoints) == 0
}

// Serves says whether a node of this configuration knows who delivers to a
// destination: then its messages do not wait for a change of the configuration,
// also while the lane is not there, because the node has just started or a
// channel is disabled.
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
	return c.Role != Site && strings.HasPrefix(destination, channelPrefix)
}
