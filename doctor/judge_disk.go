package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/config"
)

// Bounds of what a disk is expected to do and to have.
const (
	tooFast   = 20 * time.Microsecond // no disk writes a block faster
	tooSlow   = 30 * time.Millisecond
	fewFree   = 1 << 30
	noneFree  = 64 << 20
	manyFree  = 50 << 30 // above this, even less than a tenth of a huge disk is plenty
	fewInodes = 1000
)

func judgeDurability(f *Findings) []Check {
	const g = in("Durability")
	var checks []Check
	if c := f.File; c.Err == nil && c.Schema > 0 {
		if c.WAL {
			checks = append(checks, g.ok("journal", "write-ahead log"))
		} else {
			checks = append(checks, g.warning("journal", "the file is not in the mode of a write-ahead log: another program has changed it",
				"the next start sets it; find out which program opens the database, and stop it"))
		}
	}
	checks = append(checks, judgeLevel(g, f))
	if f.Data == "" || f.Folder.Err != nil || !f.Folder.IsDir {
		return checks
	}
	return append(checks, judgeSync(g, f.Sync), judgeKind(g, f.Disk))
}

// judgeLevel judges the durability of the running node, or else of the configuration.
func judgeLevel(g in, f *Findings) Check {
	const name = "commits"
	const hint = "set durability: full, unless the last seconds may be lost at a power cut"
	if h := f.Running.Health; h != nil {
		for _, c := range h.Checks {
			if level, ok := strings.CutPrefix(c.Detail, "durability "); ok && c.Name == "store" {
				if strings.Contains(level, "synchronous=NORMAL") {
					return g.warning(name, "the running node says: "+level, hint)
				}
				return g.ok(name, "synced before a message is accepted; the running node says: "+level)
			}
		}
	}
	switch c := f.Config.Config; {
	case c == nil:
		return g.skipped(name, "the configuration has faults")
	case c.Durability == config.Normal:
		return g.warning(name, "durability: normal", hint)
	}
	return g.ok(name, "durability: full: synced before a message is accepted")
}

func judgeSync(g in, s SyncFound) Check {
	const name = "sync speed"
	switch {
	case s.Skipped != "":
		return g.skipped(name, s.Skipped)
	case s.Err != nil:
		return g.failing(name, s.Err.Error(), "a node could not write either; look at the disk and the kernel's log")
	}
	detail := fmt.Sprintf("%d synced writes of 4 KiB: median %s, 99%% within %s", s.Count, span(s.Median), span(s.P99))
	c := g.ok(name, detail)
	switch {
	case s.Median < tooFast:
		c = g.warning(name, detail+": the disk acknowledges without writing",
			"that is a write cache without a battery, a virtual disk, or memory: accepted messages may be lost at a power cut; move the data, or switch the cache off")
	case s.Median > tooSlow:
		c = g.warning(name, detail+": slow", "each group of commits waits for one; move the data to a faster disk, or find what else writes to this one")
	}
	return c.with("medianSeconds", s.Median.Seconds()).with("p99Seconds", s.P99.Seconds())
}

func judgeKind(g in, d DiskFound) Check {
	const name = "file system"
	if d.Err != nil || d.Kind == "" {
		return g.skipped(name, "its kind is unknown")
	}
	why, hint := "", "keep the data on a disk of this machine"
	switch d.Kind {
	case "tmpfs", "ramfs":
		why = "it is memory: everything is lost with the power"
	case "overlay", "aufs":
		why, hint = "it is the container's own layer, and disappears with the container", "mount a volume for the data"
	case "nfs", "cifs", "smb", "9p", "fuse":
		why = "over a network or through another program, locks and syncs may not keep their promises"
	}
	if why != "" {
		return g.warning(name, d.Kind+": "+why, hint)
	}
	return g.ok(name, d.Kind)
}

func judgeDisk(f *Findings) []Check {
	const g = in("Disk")
	d := f.Disk
	switch {
	case f.Data == "" || f.Folder.Err != nil:
		return nil // already reported
	case d.Err != nil:
		return []Check{g.skipped("space", d.Err.Error())}
	}
	used := f.File.Size + f.File.Log
	detail := fmt.Sprintf("%s free of %s; the database and its log take %s", size(d.Free), size(d.Total), size(used))
	c := g.ok("space", detail)
	switch {
	case d.Free < noneFree:
		c = g.failing("space", detail, "make room now: without it no message is accepted")
	case d.Free < fewFree, d.Free < d.Total/10 && d.Free < manyFree:
		c = g.warning("space", detail, "make room, or shorten retention")
	case d.Free < used:
		c = g.warning("space", detail+": a copy of it does not fit", "make room for backups and for growth")
	}
	checks := []Check{c.with("freeBytes", float64(d.Free)).with("totalBytes", float64(d.Total)).with("usedBytes", float64(used))}
	if d.Inodes == 0 {
		return checks
	}
	detail = fmt.Sprintf("%d free of %d", d.Files, d.Inodes)
	c = g.ok("inodes", detail)
	switch {
	case d.Files == 0:
		c = g.failing("inodes", detail, "no file can be made any more: remove some of the small files on this disk")
	case d.Files < fewInodes:
		c = g.warning("inodes", detail, "remove some of the small files on this disk")
	}
	return append(checks, c.with("freeInodes", float64(d.Files)))
}
