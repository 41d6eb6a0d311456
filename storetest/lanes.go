package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// Lanes tests what is kept of a destination.
func Lanes(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"faults are kept until they are cleared": func(k *kit) {
			faults := func(want ...holdfast.LaneFaultInfo) {
				k.t.Helper()
				got, err := k.LaneFaults(k.ctx())
				if err != nil {
					k.t.Fatal(err)
				}
				slices.SortFunc(got, func(a, b holdfast.LaneFaultInfo) int { return strings.Compare(a.Destination, b.Destination) })
				for _, f := range got {
					if ago := k.now().Sub(f.Since); ago < -time.Second || ago > 5*time.Second {
						k.t.Errorf("fault of %s since %s ago", f.Destination, ago)
					}
				}
				equal(k, "faults", got, want, cmpopts.IgnoreFields(holdfast.LaneFaultInfo{}, "Since"), cmpopts.EquateEmpty())
			}
			set := func(lane, problem string) {
				k.t.Helper()
				if err := k.SetLaneFault(k.ctx(), lane, problem); err != nil {
					k.t.Fatal(err)
				}
			}
			faults()
			set("a", "")
			faults()
			set("b", "refused")
			set("a", "no such host")
			set("a", "certificate")
			faults(holdfast.LaneFaultInfo{Destination: "a", Problem: "certificate"}, holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
			k.put(holdfast.Message{ID: "m"}) // a fault holds nothing by itself
			k.wins(k.one("m"), delivered())
			k.reopen()
			faults(holdfast.LaneFaultInfo{Destination: "a", Problem: "certificate"}, holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
			set("a", "")
			faults(holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
		},
		"settings are kept": func(k *kit) {
			k.strict(true)
			k.reopen()
			k.put(keyedAll("1", "2")...)
			k.wins(k.next("1"), parked())
			k.nothing()
		},
	})
}
