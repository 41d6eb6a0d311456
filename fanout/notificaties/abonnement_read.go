package notificaties

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// asked is what a client has said about an abonnement, beside its groups.
type asked struct {
	callback, auth *string // nil: not given
	groups         bool    // which events it asks for may have changed
	kanalen        bool    // given
}

// Limits of an abonnement, in characters. The standard sets none for auth and callbackUrl (gemma-zaken 2571).
const (
	maxCallback  = 2000
	maxAuth      = 8000
	maxValue     = 1000
	maxSubstring = 255
)

// readAbonnement reads a request, and holds the groups that it gives to their kanalen. Its body takes no room
// afterwards, while a callback is probed.
func (s *Server) readAbonnement(r *http.Request, a *fanout.Abonnement, method string) (out asked, err error) {
	if err := onlyQuery(r); err != nil {
		return out, err
	}
	f, leave, err := s.fields(r)
	if err != nil {
		return out, err
	}
	defer leave()
	out = f.abonnement(a, method)
	if err = f.err(); err == nil && out.kanalen {
		err = s.checkGroups(r.Context(), f, a.Kanalen)
	}
	return out, err
}

// abonnement reads the members of a request, and takes over the groups that are given. Only a PATCH
// keeps those that are not.
func (f *fields) abonnement(a *fanout.Abonnement, method string) (out asked) {
	whole := method != http.MethodPatch
	if s, ok := f.link("callbackUrl", textRules{required: whole, most: maxCallback}); ok {
		out.callback = &s
	}
	if s, ok := f.text("auth", textRules{required: whole, blank: true, most: maxAuth}); ok {
		out.auth = &s
	}
	list, ok := f.list("kanalen", fanout.MaxGroups)
	if ok || whole {
		a.Kanalen, out.groups, out.kanalen = f.kanalen(list), true, true
	}
	if list, ok = f.list("cloudeventFilters", fanout.MaxGroups); ok || whole {
		a.CloudEventFilters, out.groups = f.cloudEventFilters(list), true
	}
	if v, ok := f.given("sendCloudevents", false); ok {
		a.SendCloudEvents, ok = v.(bool)
		if out.groups = true; !ok {
			f.fault("sendCloudevents", "invalid", "Moet een geldige boolean zijn.")
		}
	}
	return out
}

// each reads the objects of a list.
func (f *fields) each(name string, list []any, read func(f *fields)) {
	for i, v := range list {
		all, ok := v.(map[string]any)
		below := &fields{fmt.Sprintf("%s%s.%d.", f.at, name, i), all, f.faults}
		if !ok {
			below.fault(whole, "invalid", "Ongeldige data: er wordt een object verwacht.")
			continue
		}
		read(below)
	}
}

func (f *fields) kanalen(list []any) (groups []fanout.FilterGroup) {
	f.each("kanalen", list, func(f *fields) {
		var g fanout.FilterGroup
		g.Naam, _ = f.text("naam", textRules{required: true, most: maxNaam})
		g.Filters = f.texts("filters", textRules{most: maxValue})
		groups = append(groups, g)
	})
	return groups
}

func (f *fields) cloudEventFilters(list []any) (groups []fanout.CloudEventFilter) {
	f.each("cloudeventFilters", list, func(f *fields) {
		var g fanout.CloudEventFilter
		g.TypeSubstring, _ = f.text("typeSubstring", textRules{required: true, most: maxSubstring})
		g.Filters = f.texts("filters", textRules{most: maxValue})
		groups = append(groups, g)
	})
	return groups
}

// checkGroups holds groups to the kanalen that they name.
func (s *Server) checkGroups(ctx context.Context, f *fields, groups []fanout.FilterGroup) error {
	for _, g := range groups {
		t, found, err := s.Book.Topic(ctx, g.Naam)
		switch {
		case err != nil:
			return err
		case !found || g.Naam == fanout.CloudEvents:
			f.fault("naam", "kanaal_naam", fmt.Sprintf("Er bestaat geen kanaal %q.", clip(g.Naam)))
		case !consistent(t.Attributes, g.Filters):
			f.fault("filters", "inconsistent-abonnement-filters", fmt.Sprintf("De filters komen niet overeen met die van kanaal %q.", clip(g.Naam)))
		}
	}
	return f.err()
}

// consistent is the rule for names of attributes: those of a kanaal are all among the given ones, or these are
// all among the kanaal's. What begins with # is not an attribute of the kanaal.
func consistent(kanaal []string, given map[string]string) bool {
	has, known := map[string]bool{}, map[string]bool{}
	for name := range given {
		if !strings.HasPrefix(name, "#") {
			has[filter.Key(name)] = true
		}
	}
	for _, name := range kanaal {
		known[filter.Key(name)] = true
	}
	return among(known, has) || among(has, known)
}

func among(some, all map[string]bool) bool {
	for name := range some {
		if !all[name] {
			return false
		}
	}
	return true
}
