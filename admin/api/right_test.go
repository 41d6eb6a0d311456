package api_test

import (
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// What the roles have always meant is what old tokens keep.
func TestARoleIsASetOfRights(t *testing.T) {
	t.Parallel()
	for role, want := range map[api.Role][]api.Right{
		"read": {"read"}, "operate": {"read", "send", "operate"}, "auditor": {"audit-read", "audit-export"},
		"admin": {"read", "send", "operate", "audit-read", "audit-export", "audit-hold", "admin"}, "king": nil, "": nil,
	} {
		if got := role.Rights(); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", role, got, want)
		}
		if g, err := api.ParseGrant(string(role)); (err == nil) != (want != nil) || err == nil && (g.Role() != role || g.String() != string(role)) {
			t.Errorf("%s: got %s and %v", role, g.String(), err)
		}
	}
}

func TestAScopeHasWhatItNames(t *testing.T) {
	t.Parallel()
	sites, both := api.Scope{Sites: []string{"a", "b"}}, api.Scope{Sites: []string{"a"}, Destinations: []string{"erp"}}
	for name, c := range map[string]struct {
		scope  api.Scope
		object api.Object
		has    bool
	}{
		"no scope":               {api.Scope{}, api.Object{Site: "a", Topic: "t"}, true},
		"no scope, all":          {api.Scope{}, api.Object{}, true},
		"a site":                 {sites, api.Object{Site: "b", Destination: "erp"}, true},
		"another site":           {sites, api.Object{Site: "c", Destination: "erp"}, false},
		"all sites":              {sites, api.Object{}, false},
		"both":                   {both, api.Object{Site: "a", Destination: "erp"}, true},
		"one of both":            {both, api.Object{Site: "a", Destination: "mes"}, false},
		"what has only one":      {both, api.Object{Site: "a"}, false},
		"a topic":                {api.Scope{Topics: []string{"t"}}, api.Object{Topic: "t"}, true},
		"a message has no topic": {api.Scope{Topics: []string{"t"}}, api.Object{Site: "a", Destination: "erp"}, false},
	} {
		if got := c.scope.Has(c.object); got != c.has {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// The text that a store keeps: whatever is in it, it gives no right that it does not name, and is
// read as it was written or not at all.
func FuzzGrant(f *testing.F) {
	for _, text := range []string{
		"admin", "read", "viewer", `{"rights":["read","send"]}`, `{"rights":["read"],"sites":["plant-4"],"topics":["<a>"]}`, `{"rights":["admin"]}`,
		`{"rights":["audit-export"]}`, `{"rights":["audit-hold"]}`, `{"rights":["read"],"plants":["a"]}`, `{"rights":["read"],"Sites":["a"]}`, `{"rights":["read","read"]}`, `{"rights":["read"]} x`,
		`{"rights":["read"],"sites":null}`, `{"rights":["read"],"sites":["b","a"]}`, "{}", "null",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := api.ParseGrant(text)
		if err != nil {
			if len(g.Rights) > 0 || !g.Whole() {
				t.Errorf("refused, and still %+v", g)
			}
			return
		}
		if g.String() != text {
			t.Errorf("read as %s", g.String())
		}
		if g.Can(api.Admin) && text != "admin" || (g.Can(api.AuditExport) || g.Can(api.AuditKeep)) && !g.Can(api.AuditRead) || len(g.Rights) == 0 {
			t.Errorf("got %+v", g)
		}
	})
}
