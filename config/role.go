package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
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
	Credential string        // path of the file that enrolment made; empty: CredentialFile says
	CA         string        // path of a further CA for https
	Cert, Key  string        // paths of our own certificate for https; both or none
	Timeout    time.Duration // of one batch
}

// CredentialFile is where the site's credential is: unless it was named, in the
// data folder.
func (c *Config) CredentialFile() string {
	if c.Central.Credential != "" {
		return c.Central.Credential
	}
	return filepath.Join(c.Data, "credential")
}

// EnrollCommand is what a person runs at a site so that central knows it.
func (c *Config) EnrollCommand() string {
	words := []string{"holdfast enroll", c.Central.URL, "--file", c.CredentialFile()}
	for _, f := range [][2]string{{"--ca", c.Central.CA}, {"--cert", c.Central.Cert}, {"--key", c.Central.Key}} {
		if f[1] != "" {
			words = append(words, f[:]...)
		}
	}
	return strings.Join(words, " ")
}

// Notifications is how a node that brings them to people does it.
type Notifications struct {
	Secrets   string             // folder whose files hold what channels name as secrets; empty: there are none
	Bindings  map[string]Binding // who may use which of them, by name
	Seed      string             // file of channels and lists to make where they do not exist; empty: none
	Poll      time.Duration      // the longest time between two looks of a channel for what is due (NO-15)
	Retention time.Duration      // of rows that have ended (NO-15)
	Sweep     time.Duration      // between two looks for rows to purge (NO-15)
	Stuck     time.Duration      // an age at which one that waits is shown as stuck (NO-17)
	Window    time.Duration      // over which deliveries are counted (NO-17)
}

// Binding says for which channels a secret may be used. A URL that is a secret
// itself says where it leads, and needs no hosts.
type Binding struct {
	Kinds []string // of channels
	Hosts []string // that may get it; *.example.com stands for all below example.com
}

// Allows says whether a channel of a kind may use the secret towards a host.
// Without one it is not known yet.
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
