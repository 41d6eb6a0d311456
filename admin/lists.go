package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Lists offers the lists of who gets notifications.
type Lists struct{ *Service }

// List returns all lists by name, without their recipients.
func (s Lists) List(ctx context.Context) (out api.Lists, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	list := make([]api.ListSummary, 0, len(book.Lists))
	for _, l := range book.Lists {
		list = append(list, summaryOf(l, &book))
	}
	slices.SortFunc(list, func(a, b api.ListSummary) int { return cmp.Compare(a.Name, b.Name) })
	return api.Lists{Lists: list}, nil
}

// Get returns one list with its recipients.
func (s Lists) Get(ctx context.Context, name string) (out api.List, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	l, ok := book.Lists[name]
	if !ok {
		return out, noList(name, &book)
	}
	return listOf(l, &book), nil
}

func noList(name string, book *notify.Directory) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no list %q; %s", api.Clip(name), knownAs(book.Lists)),
		api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a list"})
}

// Put makes or replaces a list, if the conditions hold.
func (s Lists) Put(ctx context.Context, name string, spec *api.ListSpec, only Conditions, wrong ...api.Fault) (out api.List, err error) {
	if s.Directory == nil {
		return out, noNotify()
	}
	l, faults := listFrom(spec, name)
	wrong = append(wrong, faults...)
	return anew(s.Service, func() (api.List, error) { return s.replace(ctx, l, spec.Version, only, wrong) })
}

func (s Lists) replace(ctx context.Context, l notify.List, seen string, only Conditions, faults []api.Fault) (out api.List, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	if faults := append(slices.Clone(faults), s.manyFaults(l.Recipients, &book)...); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	old, exists := book.Lists[l.Name]
	is := state{"list", l.Name, exists, listVersion(old), seen, listVersion(l)}
	if p := only.check(is); p != nil {
		return out, p
	}
	if !is.same() {
		l.Version = old.Version
		if err := s.storeList(ctx, &l); err != nil {
			return out, err
		}
	}
	return listOf(l, &book), nil
}

// manyFaults reports the faults of a list's recipients.
func (s Lists) manyFaults(all []notify.Recipient, book *notify.Directory) (faults []api.Fault) {
	seen := make(map[target]int, len(all))
	for i, r := range all {
		field := func(part string) string { return fmt.Sprintf("recipients[%d].%s", i, part) }
		faults = append(faults, s.recipientFaults(r, book, field)...)
		if first, again := seen[targetOf(r)]; again {
			faults = append(faults, api.Fault{Field: field("address"), Value: api.Clip(r.Address), Problem: fmt.Sprintf("is on channel %s already, as recipients[%d]; keep one of them", r.Channel, first)})
			continue
		}
		seen[targetOf(r)] = i
	}
	return faults
}

// storeList writes a list that has been checked.
func (s Lists) storeList(ctx context.Context, l *notify.List) error {
	if err := s.Directory.PutList(ctx, *l, Actor(ctx)); err != nil {
		return s.notStored(ctx, "store the list", err)
	}
	l.Changed, l.Version = time.Time{}, 0 // the store sets them
	s.noted(ctx, "list changed", slog.String("list", l.Name), slog.Int("recipients", len(l.Recipients)))
	return nil
}

// Delete removes a list, if the conditions hold.
func (s Lists) Delete(ctx context.Context, name string, only Conditions) error {
	_, err := anew(s.Service, func() (struct{}, error) { return struct{}{}, s.end(ctx, name, only) })
	return err
}

func (s Lists) end(ctx context.Context, name string, only Conditions) error {
	book, p := s.book(ctx)
	if p != nil {
		return p
	}
	l, ok := book.Lists[name]
	if !ok {
		return noList(name, &book)
	}
	if p := only.check(state{what: "list", name: name, exists: true, version: listVersion(l)}); p != nil {
		return p
	}
	if err := s.Directory.DeleteList(ctx, name, l.Version, Actor(ctx)); errors.Is(err, holdfast.ErrNotFound) {
		return noList(name, &book)
	} else if err != nil {
		return s.notStored(ctx, "delete the list", err)
	}
	s.noted(ctx, "list deleted", slog.String("list", name))
	return nil
}
