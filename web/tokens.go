package web

import (
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) tokenPages() []page {
	return []page{
		{"GET settings/tokens", "list-tokens", api.Admin, false, p.tokens},
		{"POST settings/tokens", "create-token", api.Admin, false, p.createToken},
		{"GET settings/tokens/{name}/delete", "ask-delete-token", api.Admin, false, p.askDeleteToken},
		{"POST settings/tokens/{name}/delete", "delete-token", api.Admin, false, p.deleteToken},
	}
}

type tokensView struct {
	Tokens []api.Token
	Roles  []string
	Rights []right
	Form   api.NewToken // as it was filled in, if it was refused
}

func (p *Pages) tokens(r *http.Request) (answer, error) {
	v, err := p.tokensView(r, api.NewToken{Role: api.RoleRead})
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *Pages) tokensView(r *http.Request, form api.NewToken) (*view, error) {
	all, err := admin.Tokens{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	may := api.Grant{Rights: form.Rights}
	return &view{template: "tokens", title: "Tokens", rail: "Settings", data: &tokensView{all.Tokens, []string{"read", "operate", "auditor", "admin"}, rightsOf(&may), form}}, nil
}

func (p *Pages) createToken(r *http.Request) (answer, error) {
	req := api.NewToken{
		Name: r.PostFormValue("name"), Role: api.Role(r.PostFormValue("role")), Sites: lines(r.PostFormValue("sites")), Destinations: lines(r.PostFormValue("destinations")),
		Topics: lines(r.PostFormValue("topics")), For: r.PostFormValue("for"),
	}
	for _, one := range r.PostForm["right"] {
		req.Rights = append(req.Rights, api.Right(one))
	}
	made, err := admin.Tokens{Service: p.Service}.Create(r.Context(), &req)
	if err != nil {
		v, gone := p.tokensView(r, req)
		if gone != nil {
			return nil, err
		}
		v.status, v.said = problemOf(err).Status, refused(err)
		return v, err
	}
	return told{once{&view{template: "secret", title: "Token " + made.Name, rail: "Settings", data: &secret{
		Label: "Secret of the token", Secret: made.Secret, Until: made.Until, Back: p.link("settings", "tokens"),
		Text: "Send it as Authorization: Bearer. The node keeps only a hash of it, and cannot show it again.",
	}}}, []any{"token", made.Name}}, nil
}

func (p *Pages) askDeleteToken(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	return p.askFirst(r, "Settings", "Delete token "+name, question{
		Text: "Whoever uses it is refused from now on.", Back: p.link("settings", "tokens"), Command: "holdfast tokens rm " + shellQuote(name),
		Verb: "Delete", Icon: "trash", Tone: "danger",
		Inputs: []input{{Name: "force", Kind: "tick", Label: "even if it is the last with the role admin that does not end"}},
	}), nil
}

func (p *Pages) deleteToken(r *http.Request) (answer, error) {
	if err := (admin.Tokens{Service: p.Service}).Delete(r.Context(), r.PathValue("name"), r.PostFormValue("force") != ""); err != nil {
		return nil, err
	}
	return redirect(withQuery(p.link("settings", "tokens"), "done", "removed")), nil
}

// lines splits what a form gives in lines or with commas.
func lines(text string) (list []string) {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' }) {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}
