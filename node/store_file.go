package node

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// database is the file of a node in its data folder.
func database(data string) string { return filepath.Join(data, "holdfast.db") }

// file is a node's own SQLite database, and what a node does for it.
type file struct {
	db      *sqlite.DB
	data    string // its folder
	backups *backups
}

func openFile(ctx context.Context, c *config.Config, o holdfast.Observer, log *slog.Logger) (store, special, error) {
	db, err := sqlite.Open(ctx, database(c.Data), fileOptions(c, o, log))
	if err != nil {
		return nil, special{}, err
	}
	f := &file{db: db, data: c.Data, backups: newBackups(db, c.BackupFolder(), c.Backup, log)}
	return db, special{
		place:   c.Data,
		parts:   []run.Part{{Name: "backup", Run: f.backups.run}, {Name: "integrity", Run: f.checkIntegrity}},
		present: db.Present, checks: f.checks, busy: f.busy, full: db.Full, measured: []metrics.Source{f.measured(), f.backups.measured()}, backUp: backUpTo(db.Backup),
		away:      func(error) bool { return false }, // what is wrong with a file may be mended by opening it again
		elsewhere: func(string, int) bool { return false },
	}, nil
}

func fileOptions(c *config.Config, o holdfast.Observer, log *slog.Logger) sqlite.Options {
	opts := sqlite.Options{Source: c.Source(), Normal: c.Durability == config.Normal, Reserve: c.Limits.Reserve, ClockHold: c.ClockHold, Observer: o, Logger: log}
	if opts.Reserve == 0 {
		opts.Reserve = -1 // the configuration says none
	}
	return opts
}

func (f *file) checks(add addCheck) {
	status, detail := f.diskCheck()
	add("disk", status, detail)
	if name, status, detail := f.backups.health(); name != "" {
		add(name, status, detail)
	}
	for _, d := range f.db.Damage() {
		detail := d.String()
		if d.Done {
			detail += "; to acknowledge it, move that file away"
		}
		add("damaged file", api.Degraded, detail)
	}
	if c, ok := f.db.Integrity(); ok {
		addIntegrity(add, c)
	}
}

func (f *file) busy() string {
	switch {
	case f.db.Full():
		return "disk full"
	case f.db.Recovering():
		return "salvaging a damaged file"
	}
	return ""
}

// measured are the numbers of a store in a file.
func (f *file) measured() metrics.Source {
	const wal, free, reserve = "holdfast_wal_bytes", "holdfast_disk_free_bytes", "holdfast_disk_reserve_bytes"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: wal, Help: "Size of the store's write-ahead log. It grows while somebody reads one snapshot of the file for long."},
			{Name: free, Help: "Bytes that are free on the disk of the database."},
			{Name: reserve, Help: "Bytes that are set aside on it, to record outcomes when it is full."},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			see(wal, f.db.WALBytes())
			d := f.db.Disk()
			if d.Free >= 0 {
				see(free, d.Free)
			}
			see(reserve, d.Held)
		},
	}
}

// longLog is what the log never reaches as long as it can be written into the
// database now and then.
const longLog = 256 << 20

// diskCheck is what health says of the disk: how much is free, and what to do
// when that is too little.
func (f *file) diskCheck() (status, detail string) {
	d := f.db.Disk()
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
		return api.Degraded, fmt.Sprintf("full (%s at %s): nothing new is accepted, outcomes are recorded with what is left; %s; "+
			"free some space there, or purge messages, and it goes on by itself", free, f.data, reserve)
	case d.Held < d.Reserve:
		return api.Degraded, fmt.Sprintf("nearly full (%s at %s): %s for the time when it is full; free some space there", free, f.data, reserve)
	}
	if d.Log > longLog {
		return api.Degraded, fmt.Sprintf("the log %s-wal has %s and cannot be emptied: another program reads the file for long, or its disk does not take writes; "+
			"end that program, or look at the system's log", f.db.Path(), size(d.Log))
	}
	return api.OK, free
}

// size rounds bytes to what a person reads.
func size(n int64) string {
	for _, unit := range []int64{1 << 30, 1 << 20, 1 << 10} {
		if n >= unit {
			return setting.FormatSize(n / unit * unit)
		}
	}
	return setting.FormatSize(n)
}
