package opennotificaties

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// auth is what an item says of how its subscriber is called.
type auth struct {
	kind, client, secret, url, scope string
	whole                            *string // nil: it is not given
}

// authorization reports what is missing for its kind. What belongs to other kinds is left alone, as the
// upstream does.
func (r *reader) authorization(path string, a *auth) *Authorization {
	needs := func(name, value string) {
		if value == "" && !r.Bad[path+"."+name] {
			r.wrong(path+"."+name, "", "is missing", "auth_type "+a.kind+" needs it")
		}
	}
	switch a.kind {
	case "no_auth":
		return &Authorization{}
	case "api_key":
		switch {
		case a.whole == nil:
			return nil
		case *a.whole == "":
			return &Authorization{}
		}
		return &Authorization{Kind: "key", Secret: *a.whole}
	case "zgw":
		needs("auth_client_id", a.client)
		needs("secret", a.secret)
		return &Authorization{Kind: "zgw", Client: a.client, Secret: a.secret}
	case "oauth2_client_credentials":
		needs("auth_client_id", a.client)
		needs("secret", a.secret)
		r.link(path+".oauth2_token_url", a.url)
		return &Authorization{Kind: "oauth2", Client: a.client, Secret: a.secret, URL: a.url, Scopes: strings.Fields(a.scope)}
	}
	r.wrong(path+".auth_type", a.kind, "is no way to authorize", "write no_auth, api_key, zgw or oauth2_client_credentials")
	return nil
}

// service is an item of zgw_consumers.
type service struct {
	Service
	line       int
	kind, auth string
}

func (r *reader) service(path string, n *yaml.Node) {
	s := service{line: n.Line, auth: "zgw"}
	var name string
	keys := setting.Keys{
		"identifier": r.text(&name), "api_root": r.text(&s.URL), "api_type": r.text(&s.kind), "auth_type": r.text(&s.auth),
		"client_id": r.text(&s.Client), "secret": r.secret(&s.Secret), "header_value": nothing, "jwt_valid_for": nothing, "timeout": nothing,
	}
	for _, other := range []string{"label", "api_connection_check_path", "header_key", "nlx", "user_id", "user_representation", "oauth2_token_url", "oauth2_scope"} {
		keys[other] = nothing
	}
	r.mapping(keys)(path, n)
	r.needed(path+".identifier", name, 255)
	r.link(path+".api_root", s.URL)
	r.services[name] = s
	if s.kind != "ac" && s.kind != "nrc" {
		r.note(n.Line, path+": "+name+" is not needed: a node calls no service but the Autorisaties API and subscribers")
	}
}

// authorizations finds the service of the Autorisaties API.
func (r *reader) authorizations() {
	if r.api == "" {
		return
	}
	const path = "autorisaties_api.authorizations_api_service_identifier"
	s, ok := r.services[r.api]
	switch {
	case !ok:
		r.wrong(path, r.api, "is no service of zgw_consumers", "write the service there, and enable the block")
	case s.auth != "zgw" || s.Client == "" || s.Secret == "":
		r.wrong(path, r.api, "has no client_id and secret, of auth_type zgw", "write them")
	default:
		r.file.Authorizations = &s.Service
	}
}
