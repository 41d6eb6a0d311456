package config

import (
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// Retention says how long final rows are kept. Their ids are refused or
// recognised as duplicates meanwhile.
type Retention struct {
	Delivered time.Duration
	Discarded time.Duration
	Expired   time.Duration
	Inbox     time.Duration // how long a repeat of a received message is recognised
	Parked    time.Duration // Never: until a person decides
	Sweep     time.Duration // between two looks for rows to purge
}

// Backup says how often the database is copied, and how many copies stay
// (OI-14). The newest copy always stays.
type Backup struct {
	Folder string        // empty: BackupFolder says
	Every  time.Duration // Never: no copies are made
	Hourly int           // so many hours keep their last copy
	Daily  int           // so many days keep their last copy
}

// BackupFolder is where copies go: unless it was named, in the data folder.
func (c *Config) BackupFolder() string {
	if c.Backup.Folder != "" {
		return c.Backup.Folder
	}
	return filepath.Join(c.Data, "backups")
}

func retentionKeys() section[Retention] {
	kept := period(time.Second, maxTime)
	return section[Retention]{
		key("delivered", func(t *Retention) *time.Duration { return &t.Delivered }, kept, 7*day,
			"Messages that arrived. A site: `1d` at least, and what it has forwarded [may stay longer](sites.md#what-is-promised)."),
		key("discarded", func(t *Retention) *time.Duration { return &t.Discarded }, kept, 7*day, "Messages that a person gave up."),
		key("expired", func(t *Retention) *time.Duration { return &t.Expired }, kept, 7*day, "Messages whose `ttl` passed. Until then they can be requeued."),
		key("inbox", func(t *Retention) *time.Duration { return &t.Inbox }, kept, 7*day, "Ids of received messages."),
		key("parked", func(t *Retention) *time.Duration { return &t.Parked }, periodOr("forever", time.Second, maxTime), Never, "Messages that wait for a person."),
		key("sweep", func(t *Retention) *time.Duration { return &t.Sweep }, period(time.Second, day), 5*time.Minute, "Time between two purges."),
	}
}

// backupKey is a mapping, or the word off.
func backupKey() entry[Config] {
	const most = 10_000
	keys := section[Backup]{
		key("folder", func(b *Backup) *string { return &b.Folder }, location("/mnt/backups"), "",
			"Where the copies go. Give each node a folder of its own, best on another disk. It is made when it is missing.").
			tells("", "`backups` in the folder of `data`"),
		key("every", func(b *Backup) *time.Duration { return &b.Every }, period(time.Minute, 30*day), time.Hour,
			"Time between two copies. No copy is made when nothing has changed since the last one."),
		key("hourly", func(b *Backup) *int { return &b.Hourly }, count(0, most, "", "24"), 24, "So many hours keep their last copy. `168` keeps a week of hourly copies."),
		key("daily", func(b *Backup) *int { return &b.Daily }, count(0, most, "", "7"), 7, "So many days keep their last copy.").
			tells("`0` to `10000`; not `0` together with `hourly`", ""),
	}
	e := group("backup", func(c *Config) *Backup { return &c.Backup }, keys, 0)
	e.schema = schema{"anyOf": []schema{e.schema, {"const": "off"}}}
	read, check := e.read, e.check
	e.read = func(l *loader, c *Config) decode {
		return func(path string, n *yaml.Node) {
			value, ok := l.value(path, n)
			switch {
			case !ok:
			case value.Kind != yaml.ScalarNode || isNull(value):
				read(l, c)(path, value)
			case value.Value != "off":
				l.unreadable(path, value.Value, problem{"is neither off nor a mapping", "write off, or keys such as every: 1h"})
			default:
				c.Backup.Every = Never
			}
		}
	}
	e.show = func(p printer, c *Config) *yaml.Node {
		if c.Backup.Every == Never {
			return str("off")
		}
		b := c.Backup
		b.Folder = c.BackupFolder()
		return keys.node(p, &b)
	}
	e.check = func(r *report, path string, c *Config) {
		if c.Backup.Every == Never {
			return
		}
		check(r, path, c)
		if c.Backup.Hourly == 0 && c.Backup.Daily == 0 {
			r.fault(path, "", problem{"keeps no copy: hourly and daily are both 0", "keep some, or write backup: off"})
		}
	}
	return e
}
