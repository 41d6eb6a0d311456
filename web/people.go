package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) peoplePages() []page {
	return []page{
		{"GET people", "list-people", api.Admin, false, p.persons},
		{"POST people", "add-person", api.Admin, false, p.addPerson},
		{"GET people/{name}", "get-person", api.Admin, false, p.person},
		{"POST people/{name}/rights", "set-person-rights", api.Admin, false, p.setRole},
		{"POST people/{name}/disable", "disable-person", api.Admin, false, p.disablePerson},
		{"POST people/{name}/enable", "enable-person", api.Admin, false, p.enablePerson},
		{"POST people/{name}/end", "end-person-sessions", api.Admin, false, p.endSessions},
	}
}

// personTable is what the page of all people shows.
type personTable struct {
	Rows  []personRow
	Roles []string
	Form  api.NewPerson // as it was typed; without its password
	Wrong map[string]string
}

type personRow struct {
	api.Person

	Href string
}

// roles lists the roles that a form offers, the weakest first.
func roles() []string {
	return []string{string(api.RoleRead), string(api.RoleOperate), string(api.RoleAuditor), string(api.RoleAdmin)}
}

func (p *Pages) allPersons(r *http.Request) (*view, *personTable, error) {
	all, err := admin.People{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, nil, err
	}
	t := &personTable{Roles: roles()}
	for i := range all.People {
		t.Rows = append(t.Rows, personRow{all.People[i], p.link("people", all.People[i].Name)})
	}
	return &view{template: "people", title: "People", rail: "People", data: t}, t, nil
}

func (p *Pages) persons(r *http.Request) (answer, error) {
	v, _, err := p.allPersons(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *Pages) addPerson(r *http.Request) (answer, error) {
	req := api.NewPerson{Name: r.PostFormValue("name"), Display: r.PostFormValue("display"), Password: r.PostFormValue("password"), Role: api.Role(r.PostFormValue("role"))}
	_, err := admin.People{Service: p.Service}.Add(r.Context(), &req)
	if err == nil {
		return redirect(withQuery(p.link("people", req.Name), "done", "added")), nil
	}
	v, t, gone := p.allPersons(r)
	if gone != nil {
		return nil, err
	}
	req.Password = ""
	t.Form, t.Wrong = req, v.refuse(err)
	return v, err
}

// personDetail is what the page of a person shows.
type personDetail struct {
	personRow

	Sessions []api.Session
	Roles    []string
	Commands []string
}

func (p *Pages) onePerson(r *http.Request) (*view, error) {
	name := r.PathValue("name")
	who, err := admin.People{Service: p.Service}.Get(r.Context(), name)
	if err != nil {
		return nil, err
	}
	list, err := admin.People{Service: p.Service}.Sessions(r.Context(), name)
	if err != nil {
		return nil, err
	}
	d := &personDetail{personRow: personRow{who, p.link("people", name)}, Sessions: list.Sessions, Roles: roles()}
	for _, verb := range []string{"set-role --role read ", "set-password ", "totp --remove ", "rm "} {
		d.Commands = append(d.Commands, "holdfast users "+verb+shellQuote(name))
	}
	return &view{template: "person", title: name, rail: "People", data: d}, nil
}

func (p *Pages) person(r *http.Request) (answer, error) {
	v, err := p.onePerson(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// settled leads back to a person, or shows them with what was not done.
func (p *Pages) settled(r *http.Request, done string, err error) (answer, error) {
	if err == nil {
		return redirect(withQuery(p.link("people", r.PathValue("name")), "done", done)), nil
	}
	v, gone := p.onePerson(r)
	if gone != nil {
		return nil, err
	}
	v.refuse(err)
	return v, err
}

// setRole gives a person another role, for the same part of the node as before.
func (p *Pages) setRole(r *http.Request) (answer, error) {
	of, name := admin.People{Service: p.Service}, r.PathValue("name")
	who, err := of.Get(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return p.settled(r, "granted", of.SetGrant(r.Context(), name, &api.PersonGrant{
		Role: api.Role(r.PostFormValue("role")), Sites: who.Sites, Destinations: who.Destinations, Topics: who.Topics,
	}, false))
}

func (p *Pages) disablePerson(r *http.Request) (answer, error) {
	return p.settled(r, "barred", admin.People{Service: p.Service}.Disable(r.Context(), r.PathValue("name"), false))
}

func (p *Pages) enablePerson(r *http.Request) (answer, error) {
	return p.settled(r, "enabled", admin.People{Service: p.Service}.Enable(r.Context(), r.PathValue("name")))
}

func (p *Pages) endSessions(r *http.Request) (answer, error) {
	_, err := admin.People{Service: p.Service}.EndSessions(r.Context(), r.PathValue("name"))
	return p.settled(r, "ended", err)
}
