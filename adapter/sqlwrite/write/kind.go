// Package write is the kind of destination for databases: its keys, their checks, and how to make a
// sqlwrite.Writer from them.
package write

import (
	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Kind returns the kind of destination.
func Kind() adapter.Kind {
	return adapter.Kind{
		Key: setting.Case[adapter.Settings]("write", keys()), Noun: "a database", Instead: "a database has dsn, and TLS in it",
		Category: holdfast.CategoryCachedDBWrite, Blamed: "dsn",
		Reached: "accepts the login; statements are not tried, since they would take effect",
		Held:    "see whether dsn names the right database and user, and whether that user may write there",
	}
}

// Kind returns the kind of these settings.
func (*Settings) Kind() adapter.Kind { return Kind() }

// Safety names the file of the DSN, and a connection without TLS.
func (w *Settings) Safety() adapter.Safety {
	s := adapter.Safety{Private: map[string]string{"the dsn of": w.DSN.File()}}
	if w.Unencrypted {
		s.GivenUp = []adapter.GivenUp{{Key: "unencrypted", Value: "true", Problem: setting.Problem{
			What: "allows a dsn to name another machine without TLS, so that everybody on the way can read and change what is written",
			Fix:  "remove it, and write TLS into dsn, unless you trust everybody on that network",
		}}}
	}
	return s
}
