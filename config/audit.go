package config

import (
	"path/filepath"
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Audit says how the audit log is signed.
type Audit struct {
	Off     bool   // nothing is recorded
	Key     string // path of the key that signs checkpoints; empty: see AuditKey
	Witness string // path of a file that gets each checkpoint; empty: only the database keeps them
	// Retention is how long records are kept; zero: see AuditRetention.
	Retention time.Duration
}

// AuditKey returns the path of the key that signs the audit log: the named file, or one in the data
// folder. It is empty if the node has neither: then nothing is signed.
func (c *Config) AuditKey() string {
	if c.Audit.Key != "" || !c.Store.IsZero() {
		return c.Audit.Key
	}
	return filepath.Join(c.Data, "audit.key")
}

// AuditRetention returns how long the node keeps audit records.
func (c *Config) AuditRetention() time.Duration {
	switch {
	case c.Audit.Retention != 0:
		return c.Audit.Retention
	case c.Role == Site:
		return 7 * setting.Day
	}
	return 365 * setting.Day
}

func auditKeys() setting.Section[Audit] {
	return setting.Section[Audit]{
		setting.Key("off", func(a *Audit) *bool { return &a.Off }, setting.Truth(), false,
			"Records nothing in the [audit log](audit.md). What happens meanwhile is never in it."),
		setting.Maybe("key", func(a *Audit) *string { return &a.Key }, setting.Location("/etc/holdfast/audit.key"),
			"File with the key that signs the audit log. It is made if it is missing; only the node's user may read it. Nodes that share a database need copies of one key.").
			Tells("", "`audit.key` in the folder of `data`; with `store`: none, and nothing is signed"),
		setting.Maybe("witness", func(a *Audit) *string { return &a.Witness }, setting.Location("/mnt/witness/shop-12"),
			"File to which each signed checkpoint is appended. Put it where whoever can change the database cannot change it, such as on another machine's disk.").
			Tells("", "none: only the database keeps checkpoints"),
		setting.Maybe("retention", func(a *Audit) *time.Duration { return &a.Retention }, setting.Period(setting.Day, setting.MaxTime),
			"How long [records of the audit log](audit.md#what-goes-and-when) are kept. A site also keeps what central lacks.").
			Tells("", "`365d`; at a site `7d`"),
	}
}
