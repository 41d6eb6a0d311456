package node_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
)

// The lanes that a configuration knows without naming them are those that a
// node makes.
func TestTheConfigurationKnowsTheLanesOfANode(t *testing.T) {
	t.Parallel()
	if c := (config.Config{Role: config.Site}); !c.Serves(link.Lane) {
		t.Errorf("a site does not know %s", link.Lane)
	}
	if c := (config.Config{Role: config.CentralOfSites}); !c.Serves(notify.Lane("mail")) {
		t.Errorf("a central does not know %s", notify.Lane("mail"))
	}
	if c := (config.Config{Role: config.Standalone}); !c.Serves(fanout.Lane("shop")) {
		t.Errorf("a standalone node does not know %s", fanout.Lane("shop"))
	}
}
