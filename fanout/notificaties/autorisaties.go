package notificaties

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Authority asks an Autorisaties API which rights clients have. It may be used concurrently.
type Authority struct {
	URL    string // of the API, such as https://ac.example.nl/api/v1
	ID     string // the client id under which this node asks
	Secret string // that signs its tokens
	Get    Getter
	Logger *slog.Logger // nil: nothing is logged

	asking singleflight.Group
	mu     sync.Mutex
	known  map[string]rights // by client id; nobody else than clients of the configuration is asked for
	forgot int               // how often what is known came to be due
}

// rights are what the authority has said about a client.
type rights struct {
	scopes    []Scope
	superuser bool
	read      time.Time // zero: it has said nothing
	forgot    int       // of the authority, when it was asked
	failed    time.Time // when the last ask had failed; zero: it had an answer
	failure   error     // of it
}

const (
	// rightsFresh is how long rights are used without another look. A callback ends that earlier at the node
	// that gets it.
	rightsFresh = time.Minute
	// rightsStale is how long they are used while the authority does not answer.
	rightsStale = 24 * time.Hour
	// patience is how long a request waits for the authority if there are rights to use meanwhile.
	patience = time.Second
	// askAgain is how long an authority that did not answer is left alone.
	askAgain = 5 * time.Second
	// component is the name of this API among those whose rights the authority keeps.
	component = "nrc"
)

// rights returns the scopes of a client. One that the authority does not know has none.
func (a *Authority) rights(ctx context.Context, client string) ([]Scope, bool, error) {
	a.mu.Lock()
	r, forgot := a.known[client], a.forgot
	a.mu.Unlock()
	if r.settled(forgot) {
		return r.use()
	}
	asking := a.asking.DoChan(fmt.Sprint(forgot, " ", client), func() (any, error) {
		return a.renew(context.WithoutCancel(ctx), client, forgot), nil
	})
	var enough <-chan time.Time
	if r.usable() {
		enough = time.After(patience)
	}
	select {
	case answer := <-asking:
		r, _ = answer.Val.(rights)
	case <-enough: // the answer is for later requests
	case <-ctx.Done():
		return nil, false, busy()
	}
	return r.use()
}

// settled reports whether the authority need not, or should not, be asked now.
func (r *rights) settled(forgot int) bool {
	return time.Since(r.failed) < askAgain || r.forgot == forgot && time.Since(r.read) < rightsFresh
}

func (r *rights) usable() bool { return time.Since(r.read) < rightsStale }

// use returns the scopes. That there were none says nothing while the authority does not answer.
func (r *rights) use() ([]Scope, bool, error) {
	if r.failure != nil && (!r.usable() || len(r.scopes) == 0 && !r.superuser) {
		return nil, false, r.failure
	}
	return r.scopes, r.superuser, nil
}

// renew asks about a client and keeps what was said, or that nothing was.
func (a *Authority) renew(ctx context.Context, client string, forgot int) rights {
	fresh, err := a.ask(ctx, client)
	if err != nil && a.Logger != nil {
		a.Logger.WarnContext(ctx, "Autorisaties API not asked", slog.String("client", client), slog.Any("error", err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fresh.forgot = forgot; err != nil {
		fresh = a.known[client]
		fresh.failed, fresh.failure = time.Now(), err
	}
	if a.known == nil {
		a.known = map[string]rights{}
	}
	a.known[client] = fresh
	return fresh
}

// forget makes the next request of each client ask anew. What is known is used if there is no answer.
func (a *Authority) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgot++
}

// ask asks the authority. The error is a *Problem for the client.
func (a *Authority) ask(ctx context.Context, client string) (r rights, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	now := time.Now()
	status, body, err := a.Get(ctx, strings.TrimSuffix(a.URL, "/")+"/applicaties?clientIds="+url.QueryEscape(client), "Bearer "+sign(a.ID, a.Secret, now))
	switch {
	case err != nil:
		return r, forbidden("permission_denied", "De Autorisaties API is niet bereikbaar.")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return r, forbidden("not_authenticated_for_ac", "De Autorisaties API laat deze server niet toe.")
	case status != http.StatusOK:
		return r, forbidden("permission_denied", fmt.Sprintf("De Autorisaties API antwoordde status %d.", status))
	}
	var page struct {
		Results []struct {
			ClientIDs    []string `json:"clientIds"`
			All          bool     `json:"heeftAlleAutorisaties"`
			Autorisaties []struct {
				Component string  `json:"component"`
				Scopes    []Scope `json:"scopes"`
			} `json:"autorisaties"`
		} `json:"results"`
	}
	if json.Unmarshal(body, &page) != nil {
		return r, forbidden("permission_denied", "Het antwoord van de Autorisaties API is niet te lezen.")
	}
	r.read = now
	for _, app := range page.Results {
		if !slices.Contains(app.ClientIDs, client) {
			continue
		}
		r.superuser = r.superuser || app.All
		for _, one := range app.Autorisaties {
			if one.Component == component {
				r.scopes = append(r.scopes, one.Scopes...)
			}
		}
	}
	return r, nil
}

func (s *Server) callbackRoutes() []route {
	return []route{{path: "callbacks", methods: map[string]handler{http.MethodPost: s.callback}}}
}

// callback takes a notification that the rights of a client have changed at the Autorisaties API.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Publish)
	if err != nil {
		return err
	}
	f, leave, err := s.fields(r)
	if err != nil {
		return err
	}
	defer leave()
	kanaal, _ := f.text("kanaal", textRules{required: true, most: maxNaam})
	actie, _ := f.text("actie", textRules{required: true, most: 100})
	if err := f.err(); err != nil {
		return err
	}
	if s.Authority != nil && kanaal == "autorisaties" {
		s.Authority.forget()
	}
	s.Logger.InfoContext(r.Context(), "notification for this node", slog.String("kanaal", clip(kanaal)), slog.String("actie", clip(actie)), slog.String("client", c.ID))
	w.WriteHeader(http.StatusNoContent)
	return nil
}
