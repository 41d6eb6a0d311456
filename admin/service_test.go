package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// office is a service over a stand-in store that keeps tokens, with a destination.
func office() (*admin.Service, *admintest.Memory) {
	store := &admintest.Memory{}
	return &admin.Service{
		Outbox: store, Enqueuer: store, Inbox: store, Tokens: store, Name: "plant-7",
		Destinations: func() []admin.Destination {
			return []admin.Destination{{Name: "inventory"}, {Name: "ledger", Category: holdfast.CategoryExternalSystem}}
		},
	}, store
}

// send accepts a message for a destination.
func send(t *testing.T, s *admin.Service, destination string) holdfast.ID {
	t.Helper()
	sent, err := admin.Messages{Service: s}.Send(t.Context(), &api.NewMessage{Destination: destination, Endpoint: "E", Payload: []byte("1")}, "")
	if err != nil {
		t.Fatal(err)
	}
	return holdfast.ID(sent.ID)
}

// ADR 0030: what is asked of sites is refused where there are none.
func TestANodeThatIsNoCentralHasNoSites(t *testing.T) {
	t.Parallel()
	service, _ := office()
	sites := admin.Sites{Service: service}
	for name, ask := range map[string]func(ctx context.Context) error{
		"List":   func(ctx context.Context) error { _, err := sites.List(ctx); return err },
		"Get":    func(ctx context.Context) error { _, err := sites.Get(ctx, "a"); return err },
		"Add":    func(ctx context.Context) error { _, err := sites.Add(ctx, &api.NewSite{Name: "a"}); return err },
		"Rotate": func(ctx context.Context) error { _, err := sites.Rotate(ctx, "a", false); return err },
		"Revoke": func(ctx context.Context) error { return sites.Revoke(ctx, "a") },
		"At":     func(ctx context.Context) error { _, err := sites.At(ctx, "a"); return err },
	} {
		if err := ask(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// ADR 0030: the messages of a site are the site's in all that is asked, and what
// cannot be asked there is not done here.
func TestWhatCannotBeAskedOfASiteIsNotDoneHere(t *testing.T) {
	t.Parallel()
	service, _ := office()
	central := &admintest.Sites{}
	service.Central = central
	send(t, service, "ledger")
	sites := admin.Sites{Service: service}
	if _, err := sites.Add(t.Context(), &api.NewSite{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	there, err := sites.At(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Send(t.Context(), &api.NewMessage{Destination: "inventory", Endpoint: "E", Payload: []byte("1")}, ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Send: got %v", err)
	}
	if page, err := there.List(t.Context(), &admin.MessageQuery{Category: string(holdfast.CategoryExternalSystem)}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("List of a category: got %v and %d messages", err, len(page.Messages))
	}
	here, err := admin.Messages{Service: service}.List(t.Context(), &admin.MessageQuery{Category: string(holdfast.CategoryExternalSystem)})
	if err != nil || len(here.Messages) != 1 || here.Next != "" {
		t.Errorf("here: got %d messages, next %q and %v, want the one", len(here.Messages), here.Next, err)
	}
	if page, err := (admin.Messages{Service: service}).List(t.Context(), &admin.MessageQuery{}); err != nil || len(page.Messages) != 1 {
		t.Errorf("here: got %d messages and %v, want that of before alone", len(page.Messages), err)
	}
}

// A history always says who did it.
func TestWhoDoesNotSayWhoTheyAreIsLocal(t *testing.T) {
	t.Parallel()
	service, store := office()
	for want, ctx := range map[string]context.Context{
		api.Local: t.Context(), "jane": admin.As(t.Context(), "jane", api.Everything()),
	} {
		id := send(t, service, "inventory")
		if _, err := (admin.Messages{Service: service}).Discard(ctx, string(id)); err != nil {
			t.Fatal(err)
		}
		r, err := store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.History, func(e holdfast.Entry) bool { return e.Actor == want }) {
			t.Errorf("want %q as an actor in %+v", want, r.History)
		}
	}
}

// ADR 0030: programs branch on the errors of the library, as they do elsewhere.
func TestARefusalIsAnErrorOfTheLibrary(t *testing.T) {
	t.Parallel()
	service, store := office()
	messages, tokens := admin.Messages{Service: service}, admin.Tokens{Service: service}
	id := string(send(t, service, "inventory"))
	broken := errors.New("broken")
	get := func(id string) error { _, err := messages.Get(t.Context(), id); return err }
	retry := func(id string) error {
		_, err := messages.Retry(t.Context(), id, &api.RetryRequest{})
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"a message that is not kept": {get("019376f2-0000-7000-8000-000000000000"), holdfast.ErrNotFound},
		"a token that there is not":  {tokens.Delete(t.Context(), "x", true), holdfast.ErrNotFound},
		"a wrong field":              {get(""), holdfast.ErrInvalid},
		"a wrong state":              {retry(id), holdfast.ErrState},
	} {
		if _, ok := errors.AsType[*api.Problem](c.got); !ok || !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	store.FailWith(broken)
	if err := get(id); !errors.Is(err, broken) || err.Error() == broken.Error() {
		t.Errorf("got %v, want it to keep the store's error, and not to show it", err)
	}
}

// What a caller hands in as wrong stays the caller's.
func TestFaultsHandedInAreNotChanged(t *testing.T) {
	t.Parallel()
	service, _ := office()
	wrong := []api.Fault{{Field: "ttl", Problem: "a"}, {Field: "ttl", Problem: "b"}, {Field: "name", Problem: "c"}, {}, {}, {}, {}}[:3]
	before := slices.Clone(wrong[:cap(wrong)])
	if _, err := (admin.Tokens{Service: service}).Create(t.Context(), &api.NewToken{}, wrong...); err == nil {
		t.Error("got no error")
	}
	if after := wrong[:cap(wrong)]; !slices.Equal(before[:3], after[:3]) {
		t.Errorf("got %v, were %v", after, before)
	}
}
