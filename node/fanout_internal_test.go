package node

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/fanout"
)

// A subscription whose settings a damaged file has lost has nowhere to go: its messages wait until somebody puts the
// settings back, and are not parked for an empty URL.
func TestASubscriptionWithoutItsSettingsIsNotCalled(t *testing.T) {
	t.Parallel()
	var s fanout.Subscription
	s.ID = "shop"
	s.Read(`["orders"]`, "{}", "")
	if _, err := new(Node).targetOf(&s); err == nil || !strings.Contains(err.Error(), s.Fault) || s.Fault == "" {
		t.Errorf("got %v, fault %q", err, s.Fault)
	}
}
