package call

import "github.com/holdfast-mq/holdfast/internal/setting"

// Auth says how a call is authenticated: by one of these, or not at all.
type Auth struct {
	Basic  *BasicAuth
	Bearer setting.Secret
	Key    *KeyAuth
	OAuth2 *OAuth2
}

// BasicAuth is a user and a password (RFC 7617).
type BasicAuth struct {
	User     string
	Password setting.Secret
}

// KeyAuth is a secret in a header.
type KeyAuth struct {
	Header string
	Value  setting.Secret
}

// OAuth2 is the client credentials grant (RFC 6749, section 4.4).
type OAuth2 struct {
	URL    string // of the token endpoint
	Client string
	Secret setting.Secret
	Scopes []string
}

// secrets returns the secrets that are kept outside the file, by the key that names them.
func (a Auth) secrets() map[string]setting.Secret {
	found := map[string]setting.Secret{}
	if a.Basic != nil {
		found["basic.password"] = a.Basic.Password
	}
	if !a.Bearer.IsZero() {
		found["bearer"] = a.Bearer
	}
	if a.Key != nil {
		found["key.value"] = a.Key.Value
	}
	if a.OAuth2 != nil {
		found["oauth2.secret"] = a.OAuth2.Secret
	}
	return found
}

func authKeys() setting.Section[Auth] {
	basic := setting.Section[BasicAuth]{
		setting.Key("user", func(b *BasicAuth) *string { return &b.User }, setting.Words[string]("holdfast", nil), "", "User of a Basic authorization.").
			Tells("text without colon", "must be set with `basic`"),
		setting.Password("password", func(b *BasicAuth) *setting.Secret { return &b.Password },
			setting.Row{Path: "file", Doc: "File with the password; or `env`, a variable. It is taken as it stands there.", Values: "path", Usual: "must be set with `basic`"}),
	}
	header := setting.Section[KeyAuth]{
		setting.Key("header", func(k *KeyAuth) *string { return &k.Header }, setting.Words[string]("X-Api-Key", nil), "X-Api-Key", "Header that takes a key.").Tells("name of a header", ""),
		setting.Password("value", func(k *KeyAuth) *setting.Secret { return &k.Value },
			setting.Row{Path: "env", Doc: "Variable that holds the key; or `file`.", Values: setting.VariableCell, Usual: "must be set with `key`"}),
	}
	grant := setting.Section[OAuth2]{
		setting.Address("url", func(o *OAuth2) *string { return &o.URL }, "https://login.example/token", "Where tokens are fetched (client credentials grant).").Tells("", "must be set with `oauth2`"),
		setting.Key("client", func(o *OAuth2) *string { return &o.Client }, setting.Words[string]("holdfast", nil), "", "Client id.").Tells("", "must be set with `oauth2`"),
		setting.Password("secret", func(o *OAuth2) *setting.Secret { return &o.Secret },
			setting.Row{Path: "env", Doc: "Variable that holds the client's secret; or `file`.", Values: setting.VariableCell, Usual: "must be set with `oauth2`"}),
		setting.List("scopes", func(o *OAuth2) *[]string { return &o.Scopes }, "orders.write", checkScope, "Scopes to ask for."),
	}
	bearer := setting.Password("bearer", func(a *Auth) *setting.Secret { return &a.Bearer },
		setting.Row{Path: "env", Doc: "Variable that holds a token.", Values: setting.VariableCell, Usual: "none"}, setting.Row{Path: "file", Doc: "File that holds it.", Values: "path", Usual: "none"})
	return setting.Section[Auth]{
		setting.Pointed("basic", func(a *Auth) **BasicAuth { return &a.Basic }, basic),
		bearer.Only(func(_ any, a *Auth) bool { return !a.Bearer.IsZero() }),
		setting.Pointed("key", func(a *Auth) **KeyAuth { return &a.Key }, header),
		setting.Pointed("oauth2", func(a *Auth) **OAuth2 { return &a.OAuth2 }, grant),
	}
}
