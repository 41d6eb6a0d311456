package config

import (
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Retention says how long final rows are kept. Meanwhile their ids are refused or recognised as duplicates.
type Retention struct {
	Activity  time.Duration // lines of the activity log
	Delivered time.Duration
	Discarded time.Duration
	Expired   time.Duration
	Inbox     time.Duration // how long a repeat of a received message is recognised
	Parked    time.Duration // Never: until a person decides
	Sweep     time.Duration // between two purges
	Tracking  time.Duration // how long it is known what became of a call
}

// Backup says how often the database is copied, and how many copies stay
// (OI-14). The newest copy always stays.
type Backup struct {
	Folder string        // empty: see BackupFolder
	Every  time.Duration // Never: no copies are made
	Hourly int           // how many hours keep their last copy
	Daily  int           // how many days keep their last copy
}

// BackupFolder returns where copies go: the named folder, or one in the data folder.
func (c *Config) BackupFolder() string {
	if c.Backup.Folder != "" {
		return c.Backup.Folder
	}
	return filepath.Join(c.Data, "backups")
}

func retentionKeys() setting.Section[Retention] {
	kept := setting.Period(time.Second, setting.MaxTime)
	return setting.Section[Retention]{
		setting.Key("activity", func(t *Retention) *time.Duration { return &t.Activity }, kept, 30*setting.Day, "Lines of the activity log."),
		setting.Key("delivered", func(t *Retention) *time.Duration { return &t.Delivered }, kept, 7*setting.Day,
			"Messages that arrived. At a site at least `1d`, and forwarded messages [may stay longer](sites.md#what-is-promised)."),
		setting.Key("discarded", func(t *Retention) *time.Duration { return &t.Discarded }, kept, 7*setting.Day, "Messages that a person gave up."),
		setting.Key("expired", func(t *Retention) *time.Duration { return &t.Expired }, kept, 7*setting.Day, "Messages whose `ttl` passed. They can be requeued as long as they are kept."),
		setting.Key("inbox", func(t *Retention) *time.Duration { return &t.Inbox }, kept, 7*setting.Day, "Ids of received messages."),
		setting.Key("parked", func(t *Retention) *time.Duration { return &t.Parked }, setting.PeriodOr("forever", time.Second, setting.MaxTime), Never, "Messages that wait for a person."),
		setting.Key("sweep", func(t *Retention) *time.Duration { return &t.Sweep }, setting.Period(time.Second, setting.Day), 5*time.Minute, "Time between two purges."),
		setting.Key("tracking", func(t *Retention) *time.Duration { return &t.Tracking }, kept, 7*setting.Day,
			"[What became of a call](delivery.md#what-became-of-a-call) or a write. Longer than its message is kept, a record of it stays when the message goes."),
	}
}

// backupKey returns the key, which is a mapping or the word off.
func backupKey() setting.Entry[Config] {
	const most = 10_000
	keys := setting.Section[Backup]{
		setting.Key("folder", func(b *Backup) *string { return &b.Folder }, setting.Location("/mnt/backups"), "",
			"Where the copies go. Give each node its own folder, best on another disk. It is made if it is missing.").
			Tells("", "`backups` in the folder of `data`"),
		setting.Key("every", func(b *Backup) *time.Duration { return &b.Every }, setting.Period(time.Minute, 30*setting.Day), time.Hour,
			"Time between two copies. No copy is made when nothing has changed since the last one."),
		setting.Key("hourly", func(b *Backup) *int { return &b.Hourly }, setting.Count(0, most, "", "24"), 24, "How many hours keep their last copy. `168` keeps a week of hourly copies."),
		setting.Key("daily", func(b *Backup) *int { return &b.Daily }, setting.Count(0, most, "", "7"), 7, "How many days keep their last copy.").
			Tells("`0` to `10000`; not `0` together with `hourly`", ""),
	}
	e := setting.Group("backup", func(c *Config) *Backup { return &c.Backup }, keys, 0)
	e.Schema = setting.Schema{"anyOf": []setting.Schema{e.Schema, {"const": "off"}}}
	read, check := e.Read, e.Check
	e.Read = func(l *setting.Loader, c *Config) setting.Decode {
		return func(path string, n *yaml.Node) {
			value, ok := l.Value(path, n)
			switch {
			case !ok:
			case value.Kind != yaml.ScalarNode || setting.IsNull(value):
				read(l, c)(path, value)
			case value.Value != "off":
				l.Unreadable(path, value.Value, setting.Problem{What: "is neither off nor a mapping", Fix: "write off, or keys such as every: 1h"})
			default:
				c.Backup.Every = Never
			}
		}
	}
	e.Show = func(p setting.Printer, c *Config) *yaml.Node {
		if c.Backup.Every == Never {
			return setting.Str("off")
		}
		b := c.Backup
		b.Folder = c.BackupFolder()
		return keys.Node(p, &b)
	}
	e.Check = func(r *setting.Report, path string, c *Config) {
		if c.Backup.Every == Never {
			return
		}
		check(r, path, c)
		if c.Backup.Hourly == 0 && c.Backup.Daily == 0 {
			r.Fault(path, "", setting.Problem{What: "keeps no copy: hourly and daily are both 0", Fix: "keep some, or write backup: off"})
		}
	}
	return e
}
