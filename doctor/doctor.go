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

// Options are the options of Examine.
type Options struct {
	// ConfigFile is the file that was read; empty: none. Config is its content; nil if ConfigError says why not.
	ConfigFile  string
	Config      *config.Config
	ConfigError error
	Warnings    []config.Warning
	// Data is the data folder if there is no Config.
	Data string
	// URL names the running node; empty: the one of the configuration. Token may be empty.
	URL, Token string
	TLS        *tls.Config   // for URL; nil: the system's CAs
	Timeout    time.Duration // for each question; zero: 5 s
	Full       bool          // check the whole database, however long it takes
	Version    string
	Commit     string
}

// Examine measures and judges. It returns when everything has answered or was given up.
func Examine(ctx context.Context, o Options) Report {
	f := Measure(ctx, o)
	return Judge(&f)
}

// Measure finds the facts. It asks over the network side by side, and separately from what it measures on the disk.
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

// database returns the path of a node's database.
func database(data string) string { return filepath.Join(data, "holdfast.db") }
