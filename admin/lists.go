package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

type listNameInput struct {
	Name string `path:"name" doc:"The list's name."`
}

type putListInput struct {
	Conditions
	Name    string `path:"name" doc:"The list's name."`
	Content body
}

type deleteListInput struct {
	Conditions
	Name string `path:"name" doc:"The list's name."`
}

type listsOutput struct{ Body api.Lists }

type listOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.List
}

func (b *builder) lists() {
	none, full := "There is no such list.", "The disk is full; nothing was changed."
	changed := "It is another one by now than that which the condition or the version names."
	handle(b, route{
		method: http.MethodGet, path: "/v1/lists", id: "list-lists", tag: "lists", role: api.Read,
		summary: "List lists", description: "Without their recipients, by name.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, b.listLists)
	handle(b, route{
		method: http.MethodGet, path: "/v1/lists/{name}", id: "get-list", tag: "lists", role: api.Read,
		summary: "Show a list", description: "With its recipients, and why somebody is not reached.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
	}, b.showList)
	handle(b, route{
		method: http.MethodPut, path: "/v1/lists/{name}", id: "put-list", tag: "lists", role: api.Admin,
		summary:     "Make or replace a list",
		description: "It counts for all notifications that are delivered from now on. What GET answers can be changed and sent back; the version in it keeps two people from overwriting each other.",
		problems:    map[api.Sort]string{api.Changed: changed, api.DiskFull: full, api.Unsupported: unsupportedNotify},
		request:     reflect.TypeFor[api.ListSpec](), bodyRequired: true, bodyLimit: bookBody,
		requestSample: json.RawMessage(`{"description":"Who is on call","recipients":[{"channel":"mail","address":"jane@example.com","name":"Doe, Jane"}]}`),
	}, b.putList)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/lists/{name}", id: "delete-list", tag: "lists", role: api.Admin,
		summary: "Delete a list", description: "Notifications for it park, with that reason.",
		problems: map[api.Sort]string{api.NotFound: none, api.Changed: changed, api.DiskFull: full, api.Unsupported: unsupportedNotify},
	}, b.deleteList)
	b.recipients()
}

func (s *Server) listLists(ctx context.Context, _ *struct{}) (*listsOutput, error) {
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	list := make([]api.ListSummary, 0, len(book.Lists))
	for _, l := range book.Lists {
		list = append(list, summaryOf(l, &book))
	}
	slices.SortFunc(list, func(a, b api.ListSummary) int { return cmp.Compare(a.Name, b.Name) })
	return &listsOutput{api.Lists{Lists: list}}, nil
}

func (s *Server) showList(ctx context.Context, in *listNameInput) (*listOutput, error) {
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	l, ok := book.Lists[in.Name]
	if !ok {
		return nil, noList(in.Name, &book)
	}
	return listAnswer(l, &book), nil
}

func listAnswer(l notify.List, book *notify.Book) *listOutput {
	shown := listOf(l, book)
	return &listOutput{ETag: etag(shown.Version), Body: shown}
}

func noList(name string, book *notify.Book) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no list %q; %s", api.Clip(name), knownAs(book.Lists)),
		api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a list"})
}

func (b *builder) putList(ctx context.Context, in *putListInput) (*listOutput, error) {
	if b.Notify == nil {
		return nil, noNotify()
	}
	var spec api.ListSpec
	faults, p := in.Content.decode(&spec)
	if p != nil {
		return nil, p
	}
	l, wrong := listFrom(&spec, in.Name)
	faults = append(faults, wrong...)
	return anew(b, func() (*listOutput, error) { return b.replaceList(ctx, in, l, spec.Version, faults) })
}

func (b *builder) replaceList(ctx context.Context, in *putListInput, l notify.List, seen string, faults []api.Fault) (*listOutput, error) {
	book, p := b.book(ctx)
	if p != nil {
		return nil, p
	}
	if faults := append(slices.Clone(faults), b.manyFaults(l.Recipients, &book)...); len(faults) > 0 {
		return nil, api.Faulty(withoutRepeats(faults)...)
	}
	old, exists := book.Lists[in.Name]
	is := state{"list", in.Name, exists, listVersion(old), seen, listVersion(l)}
	if p := in.check(is); p != nil {
		return nil, p
	}
	if !is.same() {
		l.Version = old.Version
		if err := b.storeList(ctx, &l); err != nil {
			return nil, err
		}
	}
	return listAnswer(l, &book), nil
}

// manyFaults says what is wrong with the recipients of a list.
func (s *Server) manyFaults(all []notify.Recipient, book *notify.Book) (faults []api.Fault) {
	seen := make(map[target]int, len(all))
	for i, r := range all {
		field := func(part string) string { return fmt.Sprintf("recipients[%d].%s", i, part) }
		faults = append(faults, s.recipientFaults(r, book, field)...)
		if first, again := seen[targetOf(r)]; again {
			faults = append(faults, api.Fault{Field: field("address"), Value: api.Clip(r.Address), Problem: fmt.Sprintf("stands on channel %s a second time, after recipients[%d]; keep one of them", r.Channel, first)})
			continue
		}
		seen[targetOf(r)] = i
	}
	return faults
}

// storeList writes a list that was checked.
func (s *Server) storeList(ctx context.Context, l *notify.List) error {
	if err := s.Notify.PutList(ctx, *l); err != nil {
		return s.notStored(ctx, "store the list", err)
	}
	l.Changed, l.Version = time.Time{}, 0 // the store has set them
	s.noted(ctx, "list changed", slog.String("list", l.Name), slog.Int("recipients", len(l.Recipients)))
	return nil
}

func (b *builder) deleteList(ctx context.Context, in *deleteListInput) (*struct{}, error) {
	return anew(b, func() (*struct{}, error) { return b.endList(ctx, in) })
}

func (b *builder) endList(ctx context.Context, in *deleteListInput) (*struct{}, error) {
	book, p := b.book(ctx)
	if p != nil {
		return nil, p
	}
	l, ok := book.Lists[in.Name]
	if !ok {
		return nil, noList(in.Name, &book)
	}
	if p := in.check(state{what: "list", name: in.Name, exists: true, version: listVersion(l)}); p != nil {
		return nil, p
	}
	if err := b.Notify.DeleteList(ctx, in.Name, l.Version); errors.Is(err, holdfast.ErrNotFound) {
		return nil, noList(in.Name, &book)
	} else if err != nil {
		return nil, b.notStored(ctx, "delete the list", err)
	}
	b.noted(ctx, "list deleted", slog.String("list", in.Name))
	return nil, nil //nolint:nilnil // huma's way to answer 204
}
