package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// preferences are what a browser remembers of its person, in cookies. They are no secret, and change only how
// pages look.
type preferences struct {
	Theme string // auto, light or dark
	Zone  string // name of a time zone
	Every int    // seconds between two looks at what is new; zero: never

	location *time.Location
}

// The cookies, and the bounds of Every in seconds: nobody can make a browser ask all the time.
const (
	themeCookie, zoneCookie, everyCookie = "holdfast_theme", "holdfast_zone", "holdfast_every"
	least, most, usual                   = 5, 300, 10
)

// Zones are time zones to choose from. Any other name may be typed.
func (preferences) Zones() []string {
	return []string{"UTC", "Europe/Amsterdam", "Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "America/Los_Angeles", "Asia/Kolkata", "Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney"}
}

// Themes are the themes to choose from, by value.
func (preferences) Themes() map[string]string {
	return map[string]string{"auto": "as the system", "light": "light", "dark": "dark"}
}

// Paces are the values of Every to choose from.
func (preferences) Paces() map[int]string {
	return map[int]string{0: "never", 5: "every 5 s", usual: "every 10 s", 30: "every 30 s", 60: "every minute"}
}

func preferencesOf(r *http.Request) preferences {
	get := func(name string) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
	p := preferences{Theme: themeOf(get(themeCookie)), Every: everyOf(get(everyCookie))}
	p.Zone, p.location = zoneOf(get(zoneCookie))
	return p
}

func themeOf(text string) string {
	if slices.Contains([]string{"light", "dark"}, text) {
		return text
	}
	return "auto"
}

// zoneOf returns a time zone; UTC, unless the text names another one.
func zoneOf(text string) (string, *time.Location) {
	at, err := time.LoadLocation(text)
	if err != nil || text == "" || text == "Local" {
		return "UTC", time.UTC
	}
	return text, at
}

func everyOf(text string) int {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return usual
	case text == "0":
		return 0
	}
	return min(max(n, least), most)
}

func (p *Pages) setPreferences(r *http.Request) (answer, error) {
	zone, _ := zoneOf(r.PostFormValue("zone"))
	return &remembered{map[string]string{
		themeCookie: themeOf(r.PostFormValue("theme")), zoneCookie: zone, everyCookie: strconv.Itoa(everyOf(r.PostFormValue("every"))),
	}, p.local(r.PostFormValue("next"))}, nil
}

// remembered sets cookies and leads back.
type remembered struct {
	cookies map[string]string
	to      string
}

func (a *remembered) send(p *Pages, w http.ResponseWriter, r *http.Request) {
	for name, value := range a.cookies {
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // over plain HTTP the browser would not send a secure one back
			Name: name, Value: value, Path: p.Base + Root, MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
		})
	}
	redirect(a.to).send(p, w, r)
}
