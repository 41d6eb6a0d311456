package call

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Settings are the settings of a foreign HTTP API.
type Settings struct {
	URL       string // {endpoint} and {id} in it are replaced by the message's
	Method    string
	Headers   map[string]string
	Auth      Auth
	CA        string // path of a further CA for https
	Cert, Key string // paths of our own certificate for https; both or none
	Success   []Statuses
	Permanent []Statuses
	Response  int64 // longest answer that is kept, in bytes
	Addresses []string
}

// Statuses is a range of HTTP status codes, both ends included.
type Statuses struct{ First, Last int }

func (s Statuses) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return strconv.Itoa(s.First) + "-" + strconv.Itoa(s.Last)
}

func keys() setting.Section[Settings] {
	return setting.Section[Settings]{
		setting.Address("url", func(c *Settings) *string { return &c.URL }, "https://erp.example/api/{endpoint}", "What is requested. `{endpoint}` and `{id}` behind the host stand for the message's, escaped."),
		setting.Key("method", func(c *Settings) *string { return &c.Method }, setting.Word("POST", "POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"), "POST",
			"Its method. `GET` and `HEAD` carry no payload."),
		headersKey(),
		setting.Group("auth", func(c *Settings) *Auth { return &c.Auth }, authKeys(), 0).UnlessEmpty(),
		setting.Addresses(func(c *Settings) *[]string { return &c.Addresses },
			"Where the call, and a fetch of its tokens, may lead. One forbidden address of a name refuses it. `public` stands for all that is not private, local or reserved.", "anywhere"),
		setting.Maybe("ca", func(c *Settings) *string { return &c.CA }, setting.Location("ca.pem"), "Certificates of a further CA, PEM, for `https`; also for the tokens.").Tells("", "the system's CAs only"),
		setting.Maybe("cert", func(c *Settings) *string { return &c.Cert }, setting.Location("client.pem"), "Our own certificate, PEM, for targets that ask for one. Read again for each connection."),
		setting.Maybe("key", func(c *Settings) *string { return &c.Key }, setting.Location("client-key.pem"), "Its private key, PEM."),
		statuses("success", func(c *Settings) *[]Statuses { return &c.Success }, "Statuses of a success.", "`[200-299]`"),
		statuses("permanent", func(c *Settings) *[]Statuses { return &c.Permanent }, "Statuses that park the message at once. All others are tried again.",
			"400 to 499 but 408, 425 and 429; 401 holds the destination where there is `auth`"),
		setting.Key("response", func(c *Settings) *int64 { return &c.Response }, setting.Size(setting.Kibibyte, 16*setting.Mebibyte, ""), setting.Mebibyte,
			"The longest answer that is kept; of a longer one only the success counts, and a note says so."),
	}
}

func headersKey() setting.Entry[Settings] {
	return setting.Entry[Settings]{
		Name: "headers",
		Read: func(l *setting.Loader, c *Settings) setting.Decode {
			return func(path string, n *yaml.Node) { c.Headers = setting.Headers(l, path, n) }
		},
		Show: func(p setting.Printer, c *Settings) *yaml.Node {
			if len(c.Headers) == 0 {
				return nil
			}
			headers := setting.Mapping()
			for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
				setting.Add(headers, name, setting.Str(p.Header(name, c.Headers[name])))
			}
			return headers
		},
		Check: func(r *setting.Report, path string, c *Settings) { checkHeaders(r, path, c.Headers) },
		Told: []setting.Row{{
			Path: "HEADER", Doc: "A header of each request; secrets belong into `auth`, and a name that tells of one is warned of.", Values: "text",
			Usual: "none; `Content-Type` is `application/json`",
		}},
		Schema: setting.Schema{"type": []string{"object", "null"}, "additionalProperties": setting.Schema{"type": "string"}},
	}
}

func statuses(name string, at func(c *Settings) *[]Statuses, doc, usual string) setting.Entry[Settings] {
	return setting.Entry[Settings]{
		Name: name,
		Read: func(l *setting.Loader, c *Settings) setting.Decode {
			return func(path string, n *yaml.Node) { *at(c) = readStatuses(l, path, n) }
		},
		Show: func(_ setting.Printer, c *Settings) *yaml.Node {
			if len(*at(c)) == 0 {
				return nil
			}
			return setting.ListOf(*at(c), Statuses.String)
		},
		Check:  func(r *setting.Report, path string, c *Settings) { checkStatuses(r, path, *at(c)) },
		Told:   []setting.Row{{Doc: doc, Values: "list of codes and ranges from 200 to 599", Usual: usual}},
		Schema: setting.Schema{"type": "array", "items": setting.Schema{"type": []string{"integer", "string"}}},
	}
}

func readStatuses(l *setting.Loader, path string, n *yaml.Node) []Statuses {
	items := l.List(path, n, statusFix)
	list := make([]Statuses, 0, len(items))
	for i, item := range items {
		at := setting.Element(path, i)
		s, ok := l.Scalar(at, item, "a status code or a range of them", "200-299", "!!str", "!!int")
		if !ok {
			continue
		}
		first, last, ranged := strings.Cut(s, "-")
		if !ranged {
			last = first
		}
		a, errA := strconv.Atoi(strings.TrimSpace(first))
		b, errB := strconv.Atoi(strings.TrimSpace(last))
		if errA != nil || errB != nil {
			l.Unreadable(at, s, setting.Problem{What: "is neither a status code nor a range of them", Fix: statusFix})
			continue
		}
		list = append(list, Statuses{a, b})
	}
	return list
}

const statusFix = "write codes and ranges of them, such as [200-299, 404]"
