package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Limits of lists and channels.
const (
	MostRecipients = 10_000 // of a list
	MostSettings   = 64 << 10
	mostWorkers    = 64
	mostWaits      = 100
	mostAddress    = 512  // bytes; part of a key in the store
	mostText       = 256  // bytes of a name for people, or of a filter
	mostLongText   = 1024 // bytes of a description
)

func noNotify() *api.Problem {
	return api.Unsupported.Problem("this node delivers no notifications, and keeps no lists and channels; ask central")
}

func (s *Service) stuckAfter() time.Duration {
	if s.StuckAfter == 0 {
		return 10 * time.Minute
	}
	return s.StuckAfter
}

func (s *Service) kpiWindow() time.Duration {
	if s.KPIWindow == 0 {
		return time.Minute
	}
	return s.KPIWindow
}

// checkLine reports what a line of text must not hold: it is shown in tables and written into headers.
func checkLine(field, text string, most int) []api.Fault {
	switch {
	case len(text) > most:
		return []api.Fault{{Field: field, Value: api.Clip(text), Problem: fmt.Sprintf("has %d bytes; at most %d fit", len(text), most)}}
	case !utf8.ValidString(text):
		return []api.Fault{{Field: field, Value: api.Clip(strings.ToValidUTF8(text, "�")), Problem: "is not UTF-8"}}
	case strings.ContainsFunc(text, unicode.IsControl):
		return []api.Fault{{Field: field, Value: api.Clip(text), Problem: "has a line break or another control character; keep it on one line"}}
	}
	return nil
}

// Conditions keep two people from overwriting each other.
type Conditions struct {
	IfMatch     string `header:"If-Match" doc:"The version that you have seen, from the header ETag. If it is not the present version, nothing is changed."`
	IfNoneMatch string `header:"If-None-Match" doc:"A star (*). If the name exists already, nothing is changed."`
	// DryRun returns what would be stored, and stores nothing. It has no version, unless it is stored
	// already. Only topics and subscriptions can do this.
	DryRun bool
}

// state is what conditions are compared with.
type state struct {
	what, name string
	exists     bool
	version    string // the present version
	seen       string // in the request's body
	wanted     string // the version that the request leads to
}

// check compares the conditions with the present state. If the wanted state is there already, that is no
// fault: this request may have made it, and its answer was lost.
func (c Conditions) check(s state) *api.Problem {
	changed := func(field, value, problem string) *api.Problem {
		return api.Changed.Problem(fmt.Sprintf("%s %s %s; look at it again, then repeat the change", s.what, s.name, problem),
			api.Fault{Field: field, Value: api.Clip(value), Problem: problem})
	}
	now := "was changed meanwhile"
	if !s.exists {
		now = "does not exist any more"
	}
	switch {
	case c.IfNoneMatch != "" && c.IfNoneMatch != "*":
		return api.Faulty(api.Fault{Field: "If-None-Match", Value: api.Clip(c.IfNoneMatch), Problem: "must be *, for a new one; use If-Match with a version"})
	case c.IfNoneMatch != "" && s.exists:
		return changed("If-None-Match", c.IfNoneMatch, "exists already")
	case s.same():
		return nil
	case c.IfMatch == "*" && !s.exists:
		return changed("If-Match", c.IfMatch, "does not exist")
	case c.IfMatch != "" && c.IfMatch != "*" && (!s.exists || !tagged(c.IfMatch, s.version)):
		return changed("If-Match", c.IfMatch, now)
	case s.seen != "" && (!s.exists || s.seen != s.version):
		return changed("version", s.seen, now)
	}
	return nil
}

// same reports whether the request changes nothing.
func (s *state) same() bool { return s.exists && s.version == s.wanted }

// tagged finds a version in a list of entity tags.
func tagged(list, version string) bool {
	for tag := range strings.SplitSeq(list, ",") {
		if strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`) == version {
			return true
		}
	}
	return false
}

// versionOf returns the version of a list or channel. Equal content has the same version.
func versionOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		data = fmt.Append(nil, v) // settings that are not JSON: not stored by us
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
