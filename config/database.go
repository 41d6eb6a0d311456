package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

const addressFix = "write postgres://user@host:5432/database?sslmode=verify-full"

// Database is the address of a PostgreSQL database, which may hold a password. Printed, logged or marshalled,
// it leaves the password out. Only DSN returns all of it. The zero Database is no address.
type Database struct {
	dsn     func() string // a function, for the same reason as in Secret
	shown   string
	hosts   []string
	sslMode string
	env     string // the variable, or
	at      string // the file; where the address was read from
}

// NewDatabase parses an address that does not come from a configuration. The error does not hold the address.
func NewDatabase(dsn string) (Database, error) {
	d, p := parseDatabase(dsn)
	if p != nil {
		return d, fmt.Errorf("the database's address %s; %s", p.What, p.Fix)
	}
	return d, nil
}

// DSN returns the address with its password; empty for the zero Database.
func (d Database) DSN() string {
	if d.dsn == nil {
		return ""
	}
	return d.dsn()
}

// IsZero reports whether there is no address.
func (d Database) IsZero() bool { return d.dsn == nil }

// Equal compares the addresses, not where they come from.
func (d Database) Equal(other Database) bool {
	return d.IsZero() == other.IsZero() && d.DSN() == other.DSN()
}

// File returns the file that the address was read from; empty: no file.
func (d Database) File() string { return d.at }

// SSLMode returns the word of the address that says how the connection is protected; empty: the address does not say.
func (d Database) SSLMode() string { return d.sslMode }

// Remote reports whether the address names a host that may be another machine.
func (d Database) Remote() bool {
	return slices.ContainsFunc(d.hosts, func(h string) bool { return !strings.HasPrefix(h, "/") && !setting.IsLoopback(h) })
}

// Encrypted reports whether the connection always uses TLS.
func (d Database) Encrypted() bool {
	return slices.Contains([]string{"require", "verify-ca", "verify-full"}, d.sslMode)
}

// String returns the address without its password.
func (d Database) String() string { return d.shown }

// GoString returns the address without its password.
func (d Database) GoString() string { return d.shown }

// Format writes the address without its password for every verb.
func (d Database) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.shown)) }

// MarshalText returns the address without its password.
func (d Database) MarshalText() ([]byte, error) { return []byte(d.shown), nil }

// LogValue returns the address without its password.
func (d Database) LogValue() slog.Value { return slog.StringValue(d.shown) }

var (
	_ fmt.Formatter  = Database{}
	_ slog.LogValuer = Database{}
)

// HasPassword reports whether String leaves a part of the address out.
func (d Database) HasPassword() bool { return strings.Contains(d.shown, setting.Hidden) }

// parseDatabase reads an address. Its problem never holds a part of the address: any part may be the password.
func parseDatabase(text string) (Database, *setting.Problem) {
	const codes = "in user and password write %2F for /, %3A for :, %40 for @, %23 for #, %3F for ? and %25 for %"
	switch scheme := setting.SchemeOf(text); {
	case text == "":
		return Database{}, &setting.Problem{What: "is empty", Fix: addressFix}
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return Database{}, &setting.Problem{What: "holds a control character, or is not UTF-8", Fix: addressFix + "; " + codes}
	case strings.Contains(text, setting.Hidden):
		return Database{}, &setting.Problem{What: "has " + setting.Hidden + " in place of its password", Fix: "write {env: NAME} for a variable or {file: PATH} for a file that holds the whole address"}
	case scheme != "postgres" && scheme != "postgresql":
		return Database{}, &setting.Problem{What: "is not an address of a PostgreSQL database", Fix: addressFix + ", or remove the key: then a SQLite database is kept in the folder of data"}
	}
	u, err := url.Parse(text)
	if err != nil {
		return Database{}, &setting.Problem{What: "is no URL", Fix: addressFix + "; " + codes}
	}
	query, err := url.ParseQuery(u.RawQuery)
	// Some character has ended the password too early, and these hold the rest of it.
	if err != nil || u.Fragment != "" || u.Opaque != "" || strings.Contains(u.Path, "@") || slices.ContainsFunc(slices.Collect(maps.Keys(query)), notASetting) {
		return Database{}, &setting.Problem{What: "is not a URL of a database", Fix: addressFix + "; " + codes}
	}
	d := Database{dsn: func() string { return text }, sslMode: query.Get("sslmode"), hosts: hostsOf(u, query)}
	switch {
	case len(d.hosts) == 0:
		return Database{}, &setting.Problem{What: "names no host", Fix: addressFix + ", or /database?host=/var/run/postgresql for a socket"}
	case strings.Trim(u.Path, "/") == "" && query.Get("dbname") == "" && query.Get("database") == "":
		return Database{}, &setting.Problem{What: "names no database", Fix: addressFix}
	case d.sslMode != "" && !slices.Contains([]string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, d.sslMode):
		return Database{}, &setting.Problem{What: "has an sslmode that is not one of disable, allow, prefer, require, verify-ca and verify-full", Fix: "use verify-full"}
	}
	if d.shown = text; hasPassword(u, query) {
		d.shown = withoutPassword(u, query)
	}
	return d, nil
}

// notASetting reports whether a name cannot be a setting of an address or a server.
func notASetting(name string) bool {
	return name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '.' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

// hostsOf returns names, IP addresses and folders of sockets. Those of the query replace those of the authority.
func hostsOf(u *url.URL, query url.Values) (list []string) {
	list = strings.Split(query.Get("host"), ",")
	if query.Get("host") == "" {
		list = strings.Split(u.Host, ",")
		for i, h := range list {
			if host, _, err := net.SplitHostPort(h); err == nil {
				list[i] = host
			} else {
				list[i] = strings.Trim(h, "[]")
			}
		}
	}
	if slices.Contains(list, "") {
		return nil // the environment would choose the host
	}
	return list
}

func hasPassword(u *url.URL, query url.Values) bool {
	_, has := u.User.Password()
	return has || slices.ContainsFunc(slices.Collect(maps.Keys(query)), isPassword)
}

func isPassword(setting string) bool { return strings.Contains(strings.ToLower(setting), "password") }

func withoutPassword(u *url.URL, query url.Values) string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(url.User(u.User.Username()).String())
		if _, has := u.User.Password(); has {
			b.WriteString(":" + setting.Hidden)
		}
		b.WriteByte('@')
	}
	b.WriteString(u.Host + u.EscapedPath())
	before := byte('?')
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			if value = url.QueryEscape(value); isPassword(name) {
				value = setting.Hidden
			}
			b.WriteString(string(before) + name + "=" + value)
			before = '&'
		}
	}
	return b.String()
}
