package doctor

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/link"
)

// askCentral checks the credential, and opens a connection. It asks central nothing: only a running node has
// something to ask.
func askCentral(ctx context.Context, o Options, asking *sync.WaitGroup, f *Findings) {
	if o.Config.Central.URL == "" {
		return
	}
	c := &CentralFound{URL: o.Config.Central.URL, File: o.Config.CredentialFile(), Enroll: o.Config.EnrollCommand()}
	f.Central = c
	var id link.Identity
	id, c.Identity = link.ReadIdentity(c.File)
	c.Site = id.Site
	asking.Go(func() { c.Err = exchange.TakesConnections(ctx, nil, exchange.Address(c.URL), o.Timeout) })
}

// judgeCentral judges the link of a site. If central is away, that is a warning: notifications wait.
func judgeCentral(f *Findings) []Check {
	c := f.Central
	if c == nil {
		return nil
	}
	const g = in("Central")
	var checks []Check
	switch {
	case errors.Is(c.Identity, fs.ErrNotExist):
		checks = append(checks, g.failing("credential", c.File+" does not exist: this site is not enrolled",
			"run holdfast sites add NAME at central, and here: "+c.Enroll))
	case c.Identity != nil:
		checks = append(checks, g.failing("credential", c.Identity.Error(), "fix that, or enroll again with --force"))
	default:
		checks = append(checks, g.ok("credential", "enrolled as site "+c.Site))
	}
	if c.Err != nil {
		return append(checks, g.warning("central", c.URL+": "+c.Err.Error(), "check whether central runs, and what is between; notifications wait here meanwhile"))
	}
	return append(checks, g.ok("central", c.URL+" takes connections"))
}
