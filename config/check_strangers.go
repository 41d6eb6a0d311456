package config

import (
	"fmt"
	"strconv"
)

// Bounds of what is in hand at one time.
const (
	leastConnections = 16
	mostConnections  = 100_000
	leastInHand      = mebibyte
	mostInHand       = 16 << 30
)

// checkStrangers checks what those cost who connect.
func (r *report) checkStrangers(l Limits) {
	if n := l.Connections; n != 0 && (n < leastConnections || n > mostConnections) {
		r.fault("limits.connections", strconv.Itoa(n), problem{
			"is out of bounds", fmt.Sprintf("write a number from %d to %d, or 0 for half of the files that the process may have open", leastConnections, mostConnections),
		})
	}
	for key, n := range map[string]int64{"limits.strangers": l.Strangers, "limits.bodies": l.Bodies} {
		if n < leastInHand || n > mostInHand {
			r.fault(key, FormatSize(n), problem{
				"is out of bounds", fmt.Sprintf("write a size from %s to %s", FormatSize(leastInHand), FormatSize(mostInHand)),
			})
		}
	}
}
