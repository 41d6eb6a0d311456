package api

import (
	"fmt"
	"slices"
	"strings"
)

// subscriptionLane begins the names of the destinations that are subscriptions.
const subscriptionLane = "subscription:"

// checkPortal returns what is wrong with the grant of a subscriber: it names its subscriptions, and has no
// right of an operator.
func (g *Grant) checkPortal() (faults []Fault) {
	isPortal := func(r Right) bool { return r == Portal || r == PortalPause }
	if !slices.ContainsFunc(g.Rights, isPortal) {
		return nil
	}
	for i, name := range g.Destinations {
		if id, is := strings.CutPrefix(name, subscriptionLane); !is || id == "" {
			faults = append(faults, Fault{Field: fmt.Sprintf("destinations[%d]", i), Value: Clip(name), Problem: "is no subscription, and portal is about nothing else: write subscription:ID"})
		}
	}
	if len(g.Destinations) == 0 {
		faults = append(faults, Fault{Field: "destinations", Problem: "are missing: portal is about the subscriptions that they name, each as subscription:ID"})
	}
	if !g.Can(Portal) {
		faults = append(faults, Fault{Field: "rights", Value: string(PortalPause), Problem: "needs portal too"})
	}
	if at := slices.IndexFunc(g.Rights, func(r Right) bool { return !isPortal(r) }); at >= 0 {
		faults = append(faults, Fault{Field: "rights", Value: string(g.Rights[at]), Problem: "does not go with portal: a subscriber has no right of an operator"})
	}
	if len(g.Sites)+len(g.Topics) > 0 {
		faults = append(faults, Fault{Field: "rights", Value: string(Portal), Problem: "is for subscriptions, whatever their topics and sites are: leave sites and topics out"})
	}
	return faults
}
