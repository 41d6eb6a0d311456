package config

import (
	"path/filepath"
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Content says what the audit log keeps of the content of messages.
type Content string

// The values of Content.
const (
	ContentNone    Content = "none"
	ContentSummary Content = "summary" // the beginning, without secrets
)

// Audit says what the audit log has, and how it is signed.
type Audit struct {
	Off     bool     // nothing is recorded
	Content Content  // empty: ContentNone
	Redact  []string // members of JSON contents that summaries leave out, besides the usual ones
	Key     string   // path of the key that signs checkpoints; empty: see AuditKey
	Witness string   // path of a file that gets each checkpoint; empty: only the database keeps them
	// Retention is how long records are kept; zero: see AuditRetention.
	Retention time.Duration
	Verify    time.Duration // how often the node verifies what is new; Never: it does not
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
		setting.Key("content", func(a *Audit) *Content { return &a.Content }, setting.Word(ContentSummary, ContentNone, ContentSummary), ContentNone,
			"What is recorded of the content of a message and of the answers to it. `summary`: the first 8 KiB when it is accepted and for each attempt, and 64 KiB when it ends with an error, if it is JSON, without secrets; of other content the size."),
		setting.List("redact", func(a *Audit) *[]string { return &a.Redact }, "iban", func(r *setting.Report, path, name string) {
			if name == "" {
				r.Fault(path, "", setting.Problem{What: "is empty", Fix: "name a member of a JSON object, or remove it"})
			}
		}, "Members of JSON objects whose values are left out of summaries, in upper or lower case. Names that have password, secret, token, authorization, API key, credential, cookie or private key in them always are.").Tells("list of names", "none"),
		setting.Maybe("key", func(a *Audit) *string { return &a.Key }, setting.Location("/etc/holdfast/audit.key"),
			"File with the key that signs the audit log. It is made if it is missing; only the node's user may read it. Nodes that share a database need copies of one key.").
			Tells("", "`audit.key` in the folder of `data`; with `store`: none, and nothing is signed"),
		setting.Maybe("witness", func(a *Audit) *string { return &a.Witness }, setting.Location("/mnt/witness/shop-12"),
			"File to which each signed checkpoint is appended. Put it where whoever can change the database cannot change it, such as on another machine's disk.").
			Tells("", "none: only the database keeps checkpoints"),
		setting.Maybe("retention", func(a *Audit) *time.Duration { return &a.Retention }, setting.Period(setting.Day, setting.MaxTime),
			"How long [records of the audit log](audit.md#what-goes-and-when) are kept. A site also keeps what central lacks.").
			Tells("", "`365d`; at a site `7d`"),
		setting.Key("verify", func(a *Audit) *time.Duration { return &a.Verify }, setting.PeriodOr("never", time.Minute, setting.Day), time.Hour,
			"How often the node [verifies](audit.md#verify) the records that are new. Once a day it verifies all of them."),
	}
}
