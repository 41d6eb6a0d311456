package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// accountPages are about the person who asks, whatever else they may do.
func (p *Pages) accountPages() []page {
	return []page{
		{"POST sign-out", "sign-out", api.AnyToken, false, p.signOut},
		{"GET account", "get-person", api.AnyToken, false, p.account},
		{"POST account/password", "set-person-password", api.AnyToken, false, p.changePassword},
		{"POST account/totp/new", "new-person-totp", api.AnyToken, false, p.newFactor},
		{"POST account/totp", "enroll-person-totp", api.AnyToken, false, p.enrollFactor},
		{"POST account/sessions/{id}/end", "end-session", api.AnyToken, false, p.endSession},
	}
}

// accountDetail is what the page of one's own account shows.
type accountDetail struct {
	api.Person

	Sessions []api.Session
	New      *api.NewTOTP // a second factor that is not in use yet
	Recovery []string     // new recovery codes; they are not shown again
	Wrong    map[string]string
}

// oneself returns the page of the person who asks. A token and a machine have none.
func (p *Pages) oneself(r *http.Request) (*view, *accountDetail, error) {
	name, is := personOf(r)
	if !is {
		return nil, nil, api.NotFound.Problem("an account is a person's, and " + admin.Actor(r.Context()) + " asks here without having signed in")
	}
	who, err := admin.People{Service: p.Service}.Get(r.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	list, err := admin.People{Service: p.Service}.Sessions(r.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	d := &accountDetail{Person: who, Sessions: list.Sessions}
	return &view{template: "account", title: "Your account", data: d}, d, nil
}

func (p *Pages) account(r *http.Request) (answer, error) {
	v, _, err := p.oneself(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// accounted leads back to the account, or shows it with what was not done.
func (p *Pages) accounted(r *http.Request, done string, err error) (answer, error) {
	if err == nil {
		return redirect(withQuery(p.link("account"), "done", done)), nil
	}
	return p.unaccounted(r, nil, err)
}

// unaccounted shows the account with what was not done, and the second factor that is being set.
func (p *Pages) unaccounted(r *http.Request, factor *api.NewTOTP, err error) (answer, error) {
	v, d, gone := p.oneself(r)
	if gone != nil {
		return nil, err
	}
	d.New, d.Wrong = factor, v.refuse(err)
	return v, err
}

func (p *Pages) changePassword(r *http.Request) (answer, error) {
	name, _ := personOf(r)
	req := &api.NewPassword{Password: r.PostFormValue("new"), Current: r.PostFormValue("current")}
	var wrong []api.Fault
	if req.Password != r.PostFormValue("again") {
		wrong = append(wrong, api.Fault{Field: "again", Problem: "is another one"})
	}
	return p.accounted(r, "password", admin.People{Service: p.Service}.SetPassword(r.Context(), name, req, wrong...))
}

// newFactor shows a new secret with the form that puts it to use.
func (p *Pages) newFactor(r *http.Request) (answer, error) {
	name, _ := personOf(r)
	made, err := admin.People{Service: p.Service}.NewTOTP(r.Context(), name)
	if err != nil {
		return p.unaccounted(r, nil, err)
	}
	v, d, err := p.oneself(r)
	if err != nil {
		return nil, err
	}
	d.New = &made
	return v, nil
}

// enrollFactor puts a second factor to use, and shows its recovery codes once.
func (p *Pages) enrollFactor(r *http.Request) (answer, error) {
	name, _ := personOf(r)
	factor := api.NewTOTP{Secret: r.PostFormValue("secret"), Address: r.PostFormValue("address")}
	codes, err := admin.People{Service: p.Service}.EnrollTOTP(r.Context(), name, &api.EnrollTOTP{Secret: factor.Secret, Code: r.PostFormValue("code"), Password: r.PostFormValue("password")})
	if err != nil {
		return p.unaccounted(r, &factor, err)
	}
	v, d, err := p.oneself(r)
	if err != nil {
		return nil, err
	}
	d.Recovery = codes.Codes
	return v, nil
}

func (p *Pages) endSession(r *http.Request) (answer, error) {
	return p.accounted(r, "ended", admin.People{Service: p.Service}.EndSession(r.Context(), r.PathValue("id")))
}
