package config

// Auth says how a Call proves who calls: by one of these, or by none.
type Auth struct {
	Basic  *BasicAuth
	Bearer Secret
	Key    *KeyAuth
	OAuth2 *OAuth2
}

// BasicAuth is a user with a password (RFC 7617).
type BasicAuth struct {
	User     string
	Password Secret
}

// KeyAuth is a secret in a header.
type KeyAuth struct {
	Header string
	Value  Secret
}

// OAuth2 is the client credentials grant (RFC 6749, section 4.4).
type OAuth2 struct {
	URL    string // of the token endpoint
	Client string
	Secret Secret
	Scopes []string
}

// Secrets are those of a Call, by the key that names them.
func (a Auth) Secrets() map[string]Secret {
	found := map[string]Secret{}
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

func authKeys() section[Auth] {
	basic := section[BasicAuth]{
		key("user", func(b *BasicAuth) *string { return &b.User }, words[string]("holdfast", nil), "", "User of a Basic authorization.").
			tells("text without colon", "must be set with `basic`"),
		password("password", func(b *BasicAuth) *Secret { return &b.Password },
			row{"file", "File with the password; or `env`, a variable. It is taken as it stands there.", "path", "must be set with `basic`"}),
	}
	header := section[KeyAuth]{
		key("header", func(k *KeyAuth) *string { return &k.Header }, words[string]("X-Api-Key", nil), "X-Api-Key", "Header that takes a key.").tells("name of a header", ""),
		password("value", func(k *KeyAuth) *Secret { return &k.Value },
			row{"env", "Variable that holds the key; or `file`.", variableCell, "must be set with `key`"}),
	}
	grant := section[OAuth2]{
		address("url", func(o *OAuth2) *string { return &o.URL }, "https://login.example/token", "Where tokens are fetched (client credentials grant).").tells("", "must be set with `oauth2`"),
		key("client", func(o *OAuth2) *string { return &o.Client }, words[string]("holdfast", nil), "", "Client id.").tells("", "must be set with `oauth2`"),
		password("secret", func(o *OAuth2) *Secret { return &o.Secret },
			row{"env", "Variable that holds the client's secret; or `file`.", variableCell, "must be set with `oauth2`"}),
		list("scopes", func(o *OAuth2) *[]string { return &o.Scopes }, "orders.write", (*report).checkScope, "Scopes to ask for."),
	}
	bearer := password("bearer", func(a *Auth) *Secret { return &a.Bearer },
		row{"env", "Variable that holds a token.", variableCell, "none"}, row{"file", "File that holds it.", "path", "none"})
	return section[Auth]{
		pointed("basic", func(a *Auth) **BasicAuth { return &a.Basic }, basic),
		bearer.only(func(_ *Config, a *Auth) bool { return !a.Bearer.IsZero() }),
		pointed("key", func(a *Auth) **KeyAuth { return &a.Key }, header),
		pointed("oauth2", func(a *Auth) **OAuth2 { return &a.OAuth2 }, grant),
	}
}

// password is the key of a secret that others have made.
func password[S any](name string, at func(s *S) *Secret, told ...row) entry[S] {
	return secret(name, at, (*loader).password, told...)
}
