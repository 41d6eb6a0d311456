package config

import (
	"net/url"
	"path/filepath"
	"time"

	"github.com/holdfast-mq/holdfast/internal/secrets"
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
	Witness string   // path of a file that gets each checkpoint; empty: none does
	Remote  RemoteWitness
	// Retention is how long records are kept; zero: see AuditRetention.
	Retention time.Duration
	Verify    time.Duration // how often the node verifies what is new; Never: it does not
}

// RemoteWitness is a witness that is reached by HTTP, instead of a file. The zero value is none.
type RemoteWitness struct {
	URL   string // where checkpoints are put
	Read  string // from where they are read; empty: URL
	Token string // path of a file with a bearer token; empty: none is sent
	CA    string // path of additional CAs
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
		setting.Group("remote", func(a *Audit) *RemoteWitness { return &a.Remote }, remoteKeys(), 0).UnlessEmpty(),
		setting.Maybe("retention", func(a *Audit) *time.Duration { return &a.Retention }, setting.Period(setting.Day, setting.MaxTime),
			"How long [records of the audit log](audit.md#what-goes-and-when) are kept. A site also keeps what central lacks.").
			Tells("", "`365d`; at a site `7d`"),
		setting.Key("verify", func(a *Audit) *time.Duration { return &a.Verify }, setting.PeriodOr("never", time.Minute, setting.Day), time.Hour,
			"How often the node [verifies](audit.md#verify) the records that are new. Once a day it verifies all of them."),
	}
}

func remoteKeys() setting.Section[RemoteWitness] {
	return setting.Section[RemoteWitness]{
		setting.Maybe("url", func(w *RemoteWitness) *string { return &w.URL }, setting.Words("https://witness.example/shop-12", checkWitnessURL),
			"[Witness](audit.md#a-witness-by-url) that is reached by HTTP, instead of a file: what it keeps is read by `GET` and replaced by `PUT`.").
			Tells("", "none"),
		setting.Maybe("read", func(w *RemoteWitness) *string { return &w.Read }, setting.Words("https://witness.example/shop-12?read", checkWitnessURL),
			"URL of the `GET`, if that is another one, as with URLs that are signed for one method.").
			Tells("", "that of `url`"),
		setting.Maybe("token", func(w *RemoteWitness) *string { return &w.Token }, setting.Location("/etc/holdfast/witness.token"),
			"File with a token, which is sent as `Authorization: Bearer`. It is read for each request.").
			Tells("", "none: no token is sent"),
		setting.Maybe("ca", func(w *RemoteWitness) *string { return &w.CA }, setting.File("ca.pem"), "Certificates of an additional CA, PEM, for `https`.").
			Tells("", "none"),
	}
}

// checkWitnessURL accepts http on this machine only: who is on the way could keep checkpoints from the witness, and read the token.
func checkWitnessURL(r *setting.Report, path, text string) {
	r.CheckURL(path, text, true)
	if u, err := url.Parse(text); err == nil && u.Scheme == "http" && !setting.IsLoopback(u.Hostname()) {
		r.Fault(path, secrets.URL(text), setting.Problem{What: "leaves this machine without TLS", Fix: "write https"})
	}
}

func checkAudit(r *setting.Report, c *Config) {
	w := c.Audit.Remote
	switch {
	case w.URL != "" && c.Audit.Witness != "":
		r.Fault("audit.remote.url", "", setting.Problem{What: "is there beside audit.witness", Fix: "keep one of them"})
	case w.URL == "" && w != (RemoteWitness{}) && !r.Bad["audit.remote.url"]:
		r.Fault("audit.remote.url", "", setting.Problem{What: "is not set, but other keys of audit.remote are", Fix: "write where checkpoints are put, or remove them"})
	}
}
