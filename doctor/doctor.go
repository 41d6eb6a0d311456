package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/config"
)

// Options of Examine.
type Options struct {
	// ConfigFile is the file that was read, empty for none; Config what it
	// gave, nil if ConfigError says why not.
	ConfigFile  string
	Config      *config.Config
	ConfigError error
	Warnings    []config.Warning
	// Data is the data folder where there is no Config.
	Data string
	// URL names the node that runs; empty: the one of the configuration. Token
	// may be empty.
	URL, Token string
	TLS        *tls.Config   // for URL; nil: the system's authorities
	Timeout    time.Duration // of each thing that is asked; zero: 5 s
	Full       bool          // check all of the database, whatever time it takes
	Version    string
	Commit     string
}

// Examine measures and judges. It returns when everything has answered, or
// has been given up.
func Examine(ctx context.Context, o Options) Report {
	f := Measure(ctx, o)
	return Judge(&f)
}

// Measure finds out. What is asked over the network is asked side by side,
// and apart from what is measured on the disk.
func Measure(ctx context.Context, o Options) Findings {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	f := Findings{
		Now: time.Now(), Data: o.Data,
		Config:  configFound(o),
		Program: Program{Version: o.Version, Commit: o.Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH},
	}
	if o.Config != nil {
		f.Data = o.Config.Data
	}
	var asking sync.WaitGroup
	asking.Go(func() { f.Listen, f.Running = askNode(ctx, o) })
	if o.Config != nil {
		f.Peers = make([]PeerFound, 0, len(o.Config.Destinations))
		f.Cert = certFound(o.Config.TLS)
		askPeers(ctx, o, &asking, &f)
		askLocal(ctx, o, &asking, &f)
		askCentral(ctx, o, &asking, &f)
	}
	f.Files = secretFiles(o.Config)
	if o.Config != nil && !o.Config.Store.IsZero() {
		lookAtServer(ctx, o.Config.Store, o, &f)
	} else if f.Data != "" {
		lookAtData(ctx, o, &f)
	}
	asking.Wait()
	return f
}

func configFound(o Options) ConfigFound {
	c := ConfigFound{File: o.ConfigFile, Config: o.Config}
	if e, ok := errors.AsType[*config.Error](o.ConfigError); ok {
		for _, f := range e.Faults {
			c.Faults = append(c.Faults, f.String())
		}
	} else if o.ConfigError != nil {
		c.Faults = append(c.Faults, o.ConfigError.Error())
	}
	for _, w := range o.Warnings {
		c.Warnings = append(c.Warnings, w.String())
	}
	return c
}

// database is where a node keeps everything.
func database(data string) string { return filepath.Join(data, "holdfast.db") }
