package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// nodePages are the pages about the node itself, and of what is whole.
func (p *Pages) nodePages() []page {
	return append([]page{
		{"GET health", "overview", api.Read, false, p.health},
		{"POST settings/schedule", "put-schedule", api.Admin, false, p.putSchedule},
		{"GET settings/keys", "list-keys", api.Read, false, p.keys},
		{"POST settings/keys/rotate", "rotate-keys", api.Admin, false, p.rotateKeys},
	}, p.tokenPages()...)
}

type settingsView struct {
	Caller   api.Caller
	Rights   []right
	Kept     []api.Kept
	Schedule *api.UsualSchedule // nil: the node has none, or the caller may not see it
	Save     action
	Pages    []action
}

// right is a right in words.
type right struct {
	Name, Means string
	Roles       string
	Has         bool // the caller has it
}

// rightsOf explains the rights, and which of them the caller has.
func rightsOf(may *api.Grant) (list []right) {
	for _, one := range []right{
		{Name: "read", Means: "look at everything but the audit log"},
		{Name: "send", Means: "hand in messages, events and notifications"},
		{Name: "operate", Means: "retry, discard, reschedule, pause, resume, mark done"},
		{Name: "audit-read", Means: "look at the audit log, prove and verify it"},
		{Name: "audit-export", Means: "take the audit log away"},
		{Name: "audit-hold", Means: "say what stays in the audit log, and what is erased"},
		{Name: "admin", Means: "tokens, sites, secrets, channels, lists, schedule, backups"},
		{Name: "portal", Means: "what a subscriber may do about its own subscriptions"},
		{Name: "portal-pause", Means: "pause and resume them"},
	} {
		var roles []string
		for _, role := range []api.Role{api.RoleRead, api.RoleOperate, api.RoleAuditor, api.RoleAdmin} {
			if g := (api.Grant{Rights: role.Rights()}); g.Can(api.Right(one.Name)) {
				roles = append(roles, string(role))
			}
		}
		one.Roles, one.Has = strings.Join(roles, ", "), may.Can(api.Right(one.Name))
		list = append(list, one)
	}
	return list
}

func (p *Pages) settings(r *http.Request) (answer, error) {
	may := admin.Granted(r.Context())
	data := &settingsView{
		Caller: admin.Tokens{Service: p.Service}.Self(r.Context()), Rights: rightsOf(&may), Kept: admin.Node{Service: p.Service}.Retention(r.Context()),
		Save: button(r, api.Admin, "Save", "check", "main", p.link("settings", "schedule")),
	}
	if may.Whole() && p.Hub != nil {
		s, err := admin.UsualSchedule{Service: p.Service}.Get(r.Context())
		if err != nil {
			return nil, err
		}
		data.Schedule = &s
	}
	data.Pages = []action{{Label: "People", Icon: "people", Href: p.link("people")}, {Label: "Tokens", Icon: "user", Href: p.link("settings", "tokens")}, {Label: "Keys", Icon: "shield", Href: p.link("settings", "keys")}}
	return &view{template: "settings", title: "Settings", rail: "Settings", data: data}, nil
}

func (p *Pages) putSchedule(r *http.Request) (answer, error) {
	spec := &api.UsualScheduleSpec{
		Backoff: r.PostFormValue("backoff"), Factor: r.PostFormValue("factor"), Cap: r.PostFormValue("cap"), Apply: r.PostFormValue("apply"), Version: r.PostFormValue("version"),
	}
	var wrong []api.Fault
	if text := r.PostFormValue("base"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if spec.Base = n; err != nil {
			wrong = append(wrong, api.Fault{Field: "base", Value: api.Clip(text), Problem: "is no number"})
		}
	}
	if text := r.PostFormValue("retries"); text != "" {
		n, err := strconv.Atoi(text)
		if spec.Retries = &n; err != nil {
			wrong = append(wrong, api.Fault{Field: "retries", Value: api.Clip(text), Problem: "is no number"})
		}
	}
	if _, err := (admin.UsualSchedule{Service: p.Service}).Put(r.Context(), spec, admin.Conditions{}, wrong...); err != nil {
		return nil, err
	}
	return redirect(withQuery(p.link("settings"), "done", "set")), nil
}

type keysView struct {
	api.KeyList

	Rotate action
}

func (p *Pages) keys(r *http.Request) (answer, error) {
	all, err := admin.Keys{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	return &view{template: "keys", title: "Keys", rail: "Settings", data: &keysView{all, button(r, api.Admin, "Seal everything with the newest", "shield", "main", p.link("settings", "keys", "rotate"))}}, nil
}

// Bounds of one rotation by a form. What is left is done by the next, which leaves alone what has the newest key.
const (
	rotatePage = 200
	rotateTime = 20 * time.Second
)

func (p *Pages) rotateKeys(r *http.Request) (answer, error) {
	began, after, sealed := time.Now(), "", 0
	for {
		done, err := admin.Keys{Service: p.Service}.Rotate(r.Context(), after, rotatePage)
		if err != nil {
			return nil, err
		}
		sealed += done.Resealed
		if after = done.Next; after == "" {
			return told{redirect(withQuery(p.link("settings", "keys"), "done", "sealed")), []any{"resealed", sealed}}, nil
		}
		if time.Since(began) > rotateTime {
			return told{redirect(withQuery(p.link("settings", "keys"), "done", "sealing")), []any{"resealed", sealed}}, nil
		}
	}
}
