package notificaties

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// marshal writes JSON as it is sent.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// echoed writes an instant as answers have it: to the microsecond, if there is more than seconds.
func echoed(t time.Time) string { return utc(t, "2006-01-02T15:04:05.000000Z") }

// delivered writes an instant as subscribers get it: to the millisecond, which is cut off.
func delivered(t time.Time) string { return utc(t, "2006-01-02T15:04:05.000Z") }

func utc(t time.Time, layout string) string {
	if t = t.UTC(); t.Nanosecond() == 0 {
		layout = "2006-01-02T15:04:05Z"
	}
	return t.Format(layout)
}

// instant reads a date and time of ISO 8601, to the microsecond. Without an offset it is in UTC.
func instant(text string) (time.Time, bool) {
	if len(text) > 10 && (text[10] == ' ' || text[10] == 't') {
		text = text[:10] + "T" + text[11:]
	}
	if before, ok := strings.CutSuffix(text, "z"); ok {
		text = before + "Z"
	}
	for _, day := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		for _, zone := range []string{"Z07:00", "Z0700", "Z07", ""} {
			if t, err := time.Parse(day+zone, text); err == nil {
				t = t.UTC().Truncate(time.Microsecond)
				return t, t.Year() >= 1 && t.Year() <= 9999
			}
		}
	}
	return time.Time{}, false
}

// memberURL reads the URL of an object. Strict refuses a host without a dot that is not localhost.
func (f *fields) memberURL(name string, strict bool) string {
	s, ok := f.text(name, textRules{required: true, most: maxMemberURL})
	if !ok {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "ftp", "ftps"}, u.Scheme) || strings.ContainsAny(s, " \t\r\n") {
		f.fault(name, "invalid", "Voer een geldige URL in.")
		return ""
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); strict && err != nil && host != "localhost" && !strings.Contains(host, ".") {
		f.fault(name, "invalid", "Voer een geldige URL in: de host heeft geen punt.")
		return ""
	}
	return s
}

// sourceOf returns the source of an event: what the publisher says, or else the client.
func sourceOf(said string, c *Client) string {
	for _, s := range []string{said, c.ID} {
		if s != "" {
			return short(s)
		}
	}
	return ""
}

// short returns a name as events can have it: as it is, or a digest of one that is too long or has other than
// printable ASCII.
func short(s string) string {
	if id, err := holdfast.ParseID(s); err == nil {
		return string(id)
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// plain returns the faults of a request as the upstream tells those of a notification: texts by member.
func (p *Problem) plain() map[string]any {
	all := map[string]any{}
	for _, f := range p.InvalidParams {
		at, name := all, f.Name
		if object, member, nested := strings.Cut(name, "."); nested {
			below, ok := all[object].(map[string]any)
			if !ok {
				below = map[string]any{}
				all[object] = below
			}
			at, name = below, member
		}
		list, _ := at[name].([]string)
		at[name] = append(list, f.Reason)
	}
	return all
}
