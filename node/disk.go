package node

import (
	"fmt"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/config"
)

// longLog is what the log never reaches as long as it can be written into the
// database now and then.
const longLog = 256 << 20

// diskCheck is what health says of the disk: how much is free, and what to do
// when that is too little.
func (n *Node) diskCheck() (status, detail string) {
	d := n.store.Disk()
	free := "free space unknown"
	if d.Free >= 0 {
		free = size(d.Free) + " free"
	}
	reserve := "nothing is set aside"
	if d.Reserve > 0 {
		reserve = fmt.Sprintf("%s of %s are set aside", size(d.Held), size(d.Reserve))
	}
	switch {
	case d.Full:
		return admin.Degraded, fmt.Sprintf("full (%s at %s): nothing new is accepted, outcomes are recorded with what is left; %s; "+
			"free some space there, or purge messages, and it goes on by itself", free, n.cfg.Data, reserve)
	case d.Held < d.Reserve:
		return admin.Degraded, fmt.Sprintf("nearly full (%s at %s): %s for the time when it is full; free some space there", free, n.cfg.Data, reserve)
	}
	if d.Log > longLog {
		return admin.Degraded, fmt.Sprintf("the log %s-wal has %s and cannot be emptied: another program reads the file for long, or its disk does not take writes; "+
			"end that program, or look at the system's log", n.store.Path(), size(d.Log))
	}
	return admin.OK, free
}

// size rounds bytes to what a person reads.
func size(n int64) string {
	for _, unit := range []int64{1 << 30, 1 << 20, 1 << 10} {
		if n >= unit {
			return config.FormatSize(n / unit * unit)
		}
	}
	return config.FormatSize(n)
}

func (n *Node) diskBytes() (free, reserved int64) {
	d := n.store.Disk()
	return d.Free, d.Held
}
