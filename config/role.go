package config

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Role says which parts a node has.
type Role string

// The roles.
const (
	Standalone     Role = "standalone" // notifications go straight to their channels
	Site           Role = "site"       // notifications are forwarded to central
	CentralOfSites Role = "central"    // sites forward theirs to this node
)

// Central is how a site reaches central.
type Central struct {
	URL        string
	Credential string        // path of the file that enrolment made; empty: see CredentialFile
	CA         string        // path of an additional CA for https
	Cert, Key  string        // paths of this node's own certificate for https; both or none
	Timeout    time.Duration // of one batch
}

// CredentialFile returns the path of the site's credential: the named file, or one in the data folder.
func (c *Config) CredentialFile() string {
	if c.Central.Credential != "" {
		return c.Central.Credential
	}
	return filepath.Join(c.Data, "credential")
}

// EnrollCommand returns the command that makes a site known to central; a person runs it at the site.
func (c *Config) EnrollCommand() string {
	words := []string{"holdfast enroll", c.Central.URL, "--file", c.CredentialFile()}
	for _, f := range [][2]string{{"--ca", c.Central.CA}, {"--cert", c.Central.Cert}, {"--key", c.Central.Key}} {
		if f[1] != "" {
			words = append(words, f[:]...)
		}
	}
	return strings.Join(words, " ")
}

// Notifications says how a node brings notifications to people.
type Notifications struct {
	Secrets   string             // folder of the files that channels name as secrets; empty: no secrets
	Bindings  map[string]Binding // who may use which secret, by its name
	Seed      string             // file of channels and lists to make if they do not exist; empty: no file
	Poll      time.Duration      // the longest time between two looks of a channel for due messages (NO-15)
	Retention time.Duration      // of rows that have ended (NO-15)
	Sweep     time.Duration      // between two purges (NO-15)
	Stuck     time.Duration      // age from which a waiting notification is shown as stuck (NO-17)
	Window    time.Duration      // period over which deliveries are counted (NO-17)
	Addresses []string           // what channels may reach; empty: everything
}

// Binding says for which channels a secret may be used. A secret that is a URL itself leads to its host, and
// needs no hosts.
type Binding struct {
	Kinds []string // of channels
	Hosts []string // hosts that may get it; *.example.com stands for all names below example.com
}

// Allows reports whether a channel of a kind may use the secret for a host. An empty host is not known yet,
// and is allowed.
func (b *Binding) Allows(kind, host string) bool {
	return slices.Contains(b.Kinds, kind) && (host == "" || slices.ContainsFunc(b.Hosts, func(pattern string) bool { return covers(pattern, host) }))
}

func covers(pattern, host string) bool {
	pattern, host = strings.ToLower(strings.TrimSuffix(pattern, ".")), strings.ToLower(strings.TrimSuffix(host, "."))
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return pattern == host
}

func centralKeys() setting.Section[Central] {
	return setting.Section[Central]{
		setting.Key("url", func(t *Central) *string { return &t.URL }, setting.Words[string]("https://central.example:8420", nil), "",
			"Central's address. Without TLS it must be on this machine.").
			Tells("URL with `https`", "none; must be set at a site"),
		setting.Maybe("credential", func(t *Central) *string { return &t.Credential }, setting.Location("credential"),
			"The file that `holdfast enroll` made. It proves to central which site this is.").
			Tells("", "`credential` in the folder of `data`"),
		setting.Maybe("ca", func(t *Central) *string { return &t.CA }, setting.File("ca.pem"), "File with an additional CA, PEM, for central's certificate."),
		setting.Maybe("cert", func(t *Central) *string { return &t.Cert }, setting.File("client.pem"), "File with the site's own certificate, PEM, if central asks for one."),
		setting.Maybe("key", func(t *Central) *string { return &t.Key }, setting.File("client-key.pem"), "File with its private key, PEM."),
		setting.Key("timeout", func(t *Central) *time.Duration { return &t.Timeout }, setting.Period(time.Second, time.Hour), 30*time.Second,
			"How long one request with messages may take. A message that is too large for the line gets up to a second more for each KiB."),
	}
}

func notificationKeys() setting.Section[Notifications] {
	return setting.Section[Notifications]{
		setting.Maybe("secrets", func(n *Notifications) *string { return &n.Secrets }, setting.Location("secrets"),
			"Folder of the secrets that channels name: the secret `smtp` is the content of the file `smtp`. It is read at each use, so that a new password needs no restart."),
		setting.Named("bindings", func(n *Notifications) *map[string]Binding { return &n.Bindings }, binding()).UnlessEmpty(),
		setting.Maybe("seed", func(n *Notifications) *string { return &n.Seed }, setting.File("notifications.yaml"),
			"File with channels and lists that are made at the start if they do not exist. Existing ones are left as they are, and not checked."),
		setting.Key("poll", func(n *Notifications) *time.Duration { return &n.Poll }, setting.Period(leastPoll, mostPoll), time.Second,
			"The longest time between two looks of a channel for due messages, as `poll` for destinations."),
		setting.Key("retention", func(n *Notifications) *time.Duration { return &n.Retention }, setting.Period(time.Hour, setting.MaxTime), 365*setting.Day,
			"How long a notification is kept after it ended. Parked ones stay until `retention.parked` ends."),
		setting.Key("sweep", func(n *Notifications) *time.Duration { return &n.Sweep }, setting.Period(time.Second, setting.Day), time.Hour, "Time between two looks for notifications to purge."),
		setting.Key("stuck", func(n *Notifications) *time.Duration { return &n.Stuck }, setting.Period(time.Second, setting.MaxTime), 10*time.Minute, "A notification that waits longer counts as stuck."),
		setting.Key("window", func(n *Notifications) *time.Duration { return &n.Window }, setting.Period(time.Second, setting.Day), time.Minute, "The period over which deliveries are counted."),
		setting.Addresses(func(n *Notifications) *[]string { return &n.Addresses },
			"Where channels, and fetches of their tokens, may lead: whoever may make a channel chooses its server. One forbidden address of a name refuses it. `public` stands for all that is not private, local or reserved.", "anywhere"),
	}
}

func binding() setting.Many[Binding] {
	keys := setting.Section[Binding]{
		setting.List("kinds", func(b *Binding) *[]string { return &b.Kinds }, "email", func(r *setting.Report, path, kind string) {
			setting.OneOf(r, path, kind, "email", "teams", "slack", "ntfy", "gotify", "webhook")
		}, "Kinds of channels that may use this secret: `email`, `teams`, `slack`, `ntfy`, `gotify`, `webhook`.").Tells("list", "must be set"),
		setting.List("hosts", func(b *Binding) *[]string { return &b.Hosts }, "mail.example", checkHost,
			"Hosts that may get it: names or IP addresses, without port; `*.example.com` is all names below it. A secret that is itself a URL needs no hosts.").Tells("list", ""),
	}
	m := setting.Each("SECRET", keys)
	m.Show = func(p setting.Printer, b Binding) *yaml.Node {
		n := keys.Node(p, &b)
		n.Style = yaml.FlowStyle
		return n
	}
	m.Check = func(r *setting.Report, path string, b Binding) {
		if len(b.Kinds) == 0 {
			r.Fault(setting.Join(path, "kinds"), "", setting.Problem{What: "is missing, so that no channel may use the secret", Fix: "write a list, such as [email]"})
		}
		keys.Check(r, path, &b)
	}
	return m
}

func checkHost(r *setting.Report, path, host string) {
	rest := strings.TrimPrefix(host, "*.")
	if rest == "" || strings.ContainsAny(rest, "*/@[] \t") || strings.Contains(rest, ":") && net.ParseIP(rest) == nil {
		r.Fault(path, host, setting.Problem{What: "is not a host", Fix: "write its name or IP address, without port, or *.example.com for all names below it"})
	}
}

// Bounds of a poll. A shorter one only makes load; with a longer one, due messages wait longer than SF-06 allows.
const (
	leastPoll = 100 * time.Millisecond
	mostPoll  = 10 * time.Second
)
