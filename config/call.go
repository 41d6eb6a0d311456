package config

import (
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Call is a foreign HTTP API that messages are delivered to, where a
// destination is no peer.
type Call struct {
	URL       string // {endpoint} and {id} in it stand for the message's
	Method    string
	Headers   map[string]string
	Auth      Auth
	CA        string // path of a further CA for https
	Cert, Key string // paths of our own certificate for https; both or none
	Success   []Statuses
	Permanent []Statuses
	Response  int64 // the longest answer that is taken, in bytes
}

// Statuses is a range of HTTP status codes, both ends included.
type Statuses struct{ First, Last int }

func (s Statuses) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return strconv.Itoa(s.First) + "-" + strconv.Itoa(s.Last)
}

// DefaultCall returns a call that lacks its URL. Without Success and Permanent,
// 2xx is a success, and 4xx is permanent but for 408, 425 and 429.
func DefaultCall() Call { return Call{Method: "POST", Response: mebibyte} }

func callKey() entry[Destination] {
	keys := callKeys()
	return entry[Destination]{
		name: "call",
		read: func(l *loader, d *Destination) decode {
			return func(path string, n *yaml.Node) {
				c := DefaultCall()
				d.Call = &c
				l.object(path, n, keys.decoders(l, d.Call))
			}
		},
		show:   func(p printer, d *Destination) *yaml.Node { return keys.node(p, d.Call) },
		check:  func(r *report, path string, d *Destination) { keys.check(r, path, d.Call) },
		meets:  func(_ *Config, d *Destination) bool { return d.Call != nil },
		told:   keys.rows(),
		schema: keys.schema(),
	}
}

func callKeys() section[Call] {
	usual := DefaultCall()
	return section[Call]{
		address("url", func(c *Call) *string { return &c.URL }, "https://erp.example/api/{endpoint}", "What is requested. `{endpoint}` and `{id}` behind the host stand for the message's, escaped."),
		key("method", func(c *Call) *string { return &c.Method }, word("POST", "POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"), usual.Method,
			"Its method. `GET` and `HEAD` carry no payload."),
		headersKey(),
		group("auth", func(c *Call) *Auth { return &c.Auth }, authKeys(), 0).unlessEmpty(),
		maybe("ca", func(c *Call) *string { return &c.CA }, location("ca.pem"), "Certificates of a further CA, PEM, for `https`; also for the tokens.").tells("", "the system's CAs only"),
		maybe("cert", func(c *Call) *string { return &c.Cert }, location("client.pem"), "Our own certificate, PEM, for targets that ask for one. Read again for each connection."),
		maybe("key", func(c *Call) *string { return &c.Key }, location("client-key.pem"), "Its private key, PEM."),
		statuses("success", func(c *Call) *[]Statuses { return &c.Success }, "Statuses of a success.", "`[200-299]`"),
		statuses("permanent", func(c *Call) *[]Statuses { return &c.Permanent }, "Statuses that park the message at once. All others are tried again.",
			"400 to 499 but 408, 425 and 429; 401 holds the destination where there is `auth`"),
		key("response", func(c *Call) *int64 { return &c.Response }, size(kibibyte, 16*mebibyte, ""), usual.Response,
			"The longest answer that is kept; of a longer one only the success counts, and a note says so."),
	}
}

// address is a key that holds a URL, of which is not printed what may be a
// secret.
func address[S any](name string, at func(s *S) *string, example, doc string) entry[S] {
	e := key(name, at, words[string](example, nil), "", doc)
	e.show = func(p printer, s *S) *yaml.Node { return str(p.url(*at(s))) }
	return e.tells("`http://…`, `https://…`", "must be set")
}

func headersKey() entry[Call] {
	return entry[Call]{
		name: "headers",
		read: func(l *loader, c *Call) decode {
			return func(path string, n *yaml.Node) { c.Headers = l.headers(path, n) }
		},
		show: func(p printer, c *Call) *yaml.Node {
			if len(c.Headers) == 0 {
				return nil
			}
			headers := mapping()
			for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
				add(headers, name, str(p.header(name, c.Headers[name])))
			}
			return headers
		},
		check: func(r *report, path string, c *Call) { r.checkHeaders(path, c.Headers) },
		told: []row{{
			"HEADER", "A header of each request; secrets belong into `auth`, and a name that tells of one is warned of.", "text",
			"none; `Content-Type` is `application/json`",
		}},
		schema: schema{"type": []string{"object", "null"}, "additionalProperties": schema{"type": "string"}},
	}
}

func statuses(name string, at func(c *Call) *[]Statuses, doc, usual string) entry[Call] {
	return entry[Call]{
		name: name,
		read: func(l *loader, c *Call) decode {
			return func(path string, n *yaml.Node) { *at(c) = l.statuses(path, n) }
		},
		show: func(_ printer, c *Call) *yaml.Node {
			if len(*at(c)) == 0 {
				return nil
			}
			return listOf(*at(c), Statuses.String)
		},
		check:  func(r *report, path string, c *Call) { r.checkStatuses(path, *at(c)) },
		told:   []row{{"", doc, "list of codes and ranges from 200 to 599", usual}},
		schema: schema{"type": "array", "items": schema{"type": []string{"integer", "string"}}},
	}
}
