package config

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Notificaties says how a node serves the Notificaties API. It does if there is a client.
type Notificaties struct {
	Path      string        // below which the API is; empty: the root of the listener
	URL       string        // begins links in answers, with the path; empty: as the request says
	Leeway    time.Duration // between the clocks of clients and the node's
	Callbacks string        // CallbacksProtected or CallbacksAny
	Links     bool          // links to documentation are fetched when they are given
	Hosts     string        // of the URLs in notifications: HostsAny or HostsDotted
	Faults    string        // of a notification: FaultsProblem or FaultsPlain
	// Abonnementen is how many one client may have; zero: any number.
	Abonnementen int
	Clients      map[string]NotificatiesClient
	Authority    *Autorisaties // of clients without scopes; nil: they have none
}

// Callbacks that an abonnement may have.
const (
	CallbacksProtected = "protected" // they refuse requests without authorization
	CallbacksAny       = "any"
)

// Hosts of URLs in notifications, and forms of faults.
const (
	HostsAny      = "any"
	HostsDotted   = "dotted" // or localhost, as Open Notificaties has it
	FaultsProblem = "problem"
	FaultsPlain   = "plain" // as Open Notificaties has it
)

// NotificatiesClient may ask.
type NotificatiesClient struct {
	Secret    Secret   // that signs its tokens
	Scopes    []string // ScopeConsume, ScopePublish
	Superuser bool     // it has all scopes
}

// Scopes of clients.
const (
	ScopeConsume = "consumeren"
	ScopePublish = "publiceren"
)

// Autorisaties is the Autorisaties API that knows the rights of clients.
type Autorisaties struct {
	URL    string
	Client string // under which the node asks
	Secret Secret
}

func notificatiesKeys() setting.Section[Notificaties] {
	return setting.Section[Notificaties]{
		setting.Maybe("path", func(n *Notificaties) *string { return &n.Path }, setting.Words("/notificaties", checkPrefix),
			"Path before `/api/v1` and `/ref`, if the API is not at the root of `listen`.").Tells("begins with / and does not end with it", "none"),
		setting.Maybe("url", func(n *Notificaties) *string { return &n.URL }, setting.Words("https://notificaties.example/notificaties", func(r *setting.Report, path, text string) { r.CheckURL(path, text, false) }),
			"What links in answers begin with, up to `/api/v1`. Set it behind a proxy that changes host, scheme or path.").Tells("", "as the request was made"),
		setting.Key("leeway", func(n *Notificaties) *time.Duration { return &n.Leeway }, setting.Period(0, time.Hour), 0, "How far the clocks of clients may be off."),
		setting.Key("callbacks", func(n *Notificaties) *string { return &n.Callbacks }, setting.Word(CallbacksProtected, CallbacksProtected, CallbacksAny), CallbacksProtected,
			"`protected`: the callback of an abonnement must refuse requests without authorization; `any`: it need not."),
		setting.Key("links", func(n *Notificaties) *bool { return &n.Links }, setting.Truth(), true,
			"Whether the documentation link of a kanaal must answer 200 when it is given. Only addresses of `webhooks.addresses` are asked."),
		setting.Key("hosts", func(n *Notificaties) *string { return &n.Hosts }, setting.Word(HostsAny, HostsAny, HostsDotted), HostsAny,
			"`dotted`: the URLs in a notification must have a host with a dot, or localhost, as Open Notificaties demands."),
		setting.Key("faults", func(n *Notificaties) *string { return &n.Faults }, setting.Word(FaultsProblem, FaultsProblem, FaultsPlain), FaultsProblem,
			"`problem`: the faults of a notification are told in a problem document; `plain`: as Open Notificaties tells them, by an object of lists."),
		setting.Key("abonnementen", func(n *Notificaties) *int { return &n.Abonnementen }, setting.Count(1, 1_000_000, "any number", "10000"), 10_000, "How many abonnementen one client may have."),
		setting.Named("clients", func(n *Notificaties) *map[string]NotificatiesClient { return &n.Clients }, setting.Each("CLIENT", notificatiesClientKeys())).UnlessEmpty(),
		setting.Pointed("authority", func(n *Notificaties) **Autorisaties { return &n.Authority }, autorisatiesKeys()),
	}
}

func notificatiesClientKeys() setting.Section[NotificatiesClient] {
	return setting.Section[NotificatiesClient]{
		setting.Password("secret", func(c *NotificatiesClient) *Secret { return &c.Secret },
			setting.Row{Path: "env", Doc: "Variable that holds the secret that signs the tokens of this client id; or `file`.", Values: setting.VariableCell, Usual: "must be set"}),
		setting.List("scopes", func(c *NotificatiesClient) *[]string { return &c.Scopes }, ScopePublish, func(r *setting.Report, path, scope string) {
			if !slices.Contains([]string{ScopeConsume, ScopePublish}, scope) {
				r.Fault(path, scope, setting.Problem{What: "is no scope", Fix: "write consumeren or publiceren"})
			}
		}, "What it may do: `consumeren`, `publiceren`. None: what `authority` says."),
		setting.Maybe("superuser", func(c *NotificatiesClient) *bool { return &c.Superuser }, setting.Truth(), "It may do everything.").Tells("", "`false`"),
	}
}

func autorisatiesKeys() setting.Section[Autorisaties] {
	return setting.Section[Autorisaties]{
		setting.Address("url", func(a *Autorisaties) *string { return &a.URL }, "https://autorisaties.example/api/v1", "Autorisaties API that is asked for the scopes of clients that have none here. What it says is used for a minute, and for a day while it does not answer.").
			Tells("", "must be set with `authority`"),
		setting.Key("client", func(a *Autorisaties) *string { return &a.Client }, setting.Words[string]("notificaties", nil), "", "Client id under which it is asked.").Tells("", "must be set with `authority`"),
		setting.Password("secret", func(a *Autorisaties) *Secret { return &a.Secret },
			setting.Row{Path: "env", Doc: "Variable that holds the secret of this client id; or `file`.", Values: setting.VariableCell, Usual: "must be set with `authority`"}),
	}
}

func checkPrefix(r *setting.Report, path, text string) {
	if !strings.HasPrefix(text, "/") || strings.HasSuffix(text, "/") || strings.Contains(text, "//") || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/") != "" || strings.HasPrefix(text, "/v1") {
		r.Fault(path, text, setting.Problem{What: "is no path for this API", Fix: "write one such as /notificaties, of letters, digits, - and _, which is not below /v1"})
	}
}

// checkNotificaties finds what is missing of clients.
func checkNotificaties(r *setting.Report, c *Config) {
	n := &c.Notificaties
	missing := func(path string) {
		if !r.Bad[path] {
			r.Fault(path, "", setting.Problem{What: "is not set", Fix: "write {file: PATH} or {env: NAME}"})
		}
	}
	for name, client := range n.Clients {
		if client.Secret.IsZero() {
			missing(setting.Join("notificaties.clients", name) + ".secret")
		}
	}
	if a := n.Authority; a != nil {
		if a.Secret.IsZero() {
			missing("notificaties.authority.secret")
		}
		if a.Client == "" {
			r.Fault("notificaties.authority.client", "", setting.Problem{What: "is not set", Fix: "write the client id under which this node asks"})
		}
	}
	if len(n.Clients) > 0 && c.Secrets.Key.IsZero() && !r.Bad["secrets.key"] {
		r.Fault("secrets.key", "", setting.Problem{What: "is not set, but clients of the Notificaties API bring secrets", Fix: "make one with: holdfast keys create FILE, and write {file: FILE}"})
	}
}
