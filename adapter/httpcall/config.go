package httpcall

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxResponse is the default of Config.MaxResponse, in bytes.
const MaxResponse = 1 << 20

// Config says how a foreign API is called. It must not be changed after New.
type Config struct {
	// URL is absolute, http or https. {endpoint} and {id} in its path or query are replaced by the
	// message's, escaped.
	URL    string
	Method string      // empty: POST. GET and HEAD carry no payload
	Header http.Header // added to each call; may replace Content-Type
	Auth   Auth        // nil: none
	TLS    TLS

	// Success and Permanent are ranges of statuses. Empty Success: 2xx. Empty Permanent: 4xx except
	// 408, 425 and 429, which mean "not now". Any other status is transient. A status in both is a
	// success.
	Success, Permanent []Statuses

	MaxResponse int64 // bytes of an answer; a longer answer is not kept, and the receipt notes that. Zero: MaxResponse
	Excerpt     int   // bytes of a refusal's body that people see; zero: none
	Answer      int   // bytes of a refusal's body that its Failure.Answer has; zero: none, and no Receipt.Answer either
	Connections int   // idle connections kept for later calls; zero: 32

	// Addresses are what the call may reach: networks such as 10.0.0.0/8, addresses, and the word
	// "public". Empty: everything.
	Addresses []string
}

// Statuses is a range of status codes, both ends included.
type Statuses struct{ First, Last int }

func (c *Config) check() error {
	u, err := url.Parse(c.URL)
	if err != nil { // the error quotes the URL, perhaps with a password
		return errors.New("URL: it cannot be read as a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("URL: must begin with http:// or https:// and name a host")
	}
	if strings.ContainsAny(u.Host, "{}") {
		return fmt.Errorf("URL with the host %q: a placeholder must not stand for the host", u.Host)
	}
	return nil
}

// target returns the URL for one message. It refuses a name that would lead to another place in the
// path: servers take %2F for a slash, and resolve dots.
func (c *Config) target(endpoint, id string) (string, error) {
	for placeholder, name := range map[string]string{"{endpoint}": endpoint, "{id}": id} {
		steps := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
		if strings.Contains(c.URL, placeholder) && (slices.Contains(steps, ".") || slices.Contains(steps, "..")) {
			return "", fmt.Errorf("the name %q cannot stand in a URL: it leads to another place", name)
		}
	}
	if !strings.Contains(c.URL, "{") {
		return c.URL, nil
	}
	path, query, found := strings.Cut(c.URL, "?")
	path = strings.NewReplacer("{endpoint}", url.PathEscape(endpoint), "{id}", url.PathEscape(id)).Replace(path)
	if !found {
		return path, nil
	}
	return path + "?" + strings.NewReplacer("{endpoint}", url.QueryEscape(endpoint), "{id}", url.QueryEscape(id)).Replace(query), nil
}

func (c *Config) succeeds(status int) bool {
	if len(c.Success) == 0 {
		return status/100 == 2
	}
	return holds(c.Success, status)
}

func (c *Config) permanent(status int) bool {
	if len(c.Permanent) > 0 {
		return holds(c.Permanent, status)
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status/100 == 4
}

func holds(list []Statuses, status int) bool {
	return slices.ContainsFunc(list, func(s Statuses) bool { return s.First <= status && status <= s.Last })
}
