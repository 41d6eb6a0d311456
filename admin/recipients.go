package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// PutRecipient adds a recipient to a list, or changes the one with this channel and address.
func (s Lists) PutRecipient(ctx context.Context, name string, spec *api.RecipientSpec, wrong ...api.Fault) (out api.ListChange, err error) {
	if len(wrong) > 0 {
		return out, api.Faulty(wrong...)
	}
	return s.putRecipient(ctx, name, notify.Recipient(*spec), false)
}

// AddRecipient adds a recipient to a list. One that is there with this channel and address is left alone, and refused.
func (s Lists) AddRecipient(ctx context.Context, name string, spec *api.RecipientSpec) (api.ListChange, error) {
	return s.putRecipient(ctx, name, notify.Recipient(*spec), true)
}

// DisableRecipient disables a recipient of a list, or enables it again, and changes nothing else of it.
func (s Lists) DisableRecipient(ctx context.Context, name, channel, address string, disabled bool) (api.ListChange, error) {
	return s.changeList(ctx, name, func(l *notify.List, _ *notify.Directory, out *api.ListChange) *api.Problem {
		i := slices.IndexFunc(l.Recipients, func(r notify.Recipient) bool { return targetOf(r) == target{channel, address} })
		if i < 0 {
			return noRecipient(l.Name, channel, address)
		}
		r := l.Recipients[i]
		r.Disabled = disabled
		join(l, out, r)
		return nil
	})
}

func noRecipient(list, channel, address string) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("list %s has no recipient %q on channel %q", list, api.Clip(address), api.Clip(channel)),
		api.Fault{Field: "address", Value: api.Clip(address), Problem: "is not on the list, on this channel"})
}

func (s Lists) putRecipient(ctx context.Context, name string, r notify.Recipient, onlyNew bool) (api.ListChange, error) {
	return s.changeList(ctx, name, func(l *notify.List, book *notify.Directory, out *api.ListChange) *api.Problem {
		if faults := s.recipientFaults(r, book, func(part string) string { return part }); len(faults) > 0 {
			return api.Faulty(faults...)
		}
		if onlyNew && slices.ContainsFunc(l.Recipients, func(old notify.Recipient) bool { return targetOf(old) == targetOf(r) }) {
			return api.Conflict.Problem(fmt.Sprintf("list %s has %q on channel %q already", l.Name, api.Clip(r.Address), api.Clip(r.Channel)),
				api.Fault{Field: "address", Value: api.Clip(r.Address), Problem: "is on the list already, on this channel"})
		}
		join(l, out, r)
		return nil
	})
}

// DeleteRecipient removes a recipient from a list.
func (s Lists) DeleteRecipient(ctx context.Context, name, channel, address string) (api.ListChange, error) {
	gone := target{channel, address}
	return s.changeList(ctx, name, func(l *notify.List, book *notify.Directory, out *api.ListChange) *api.Problem {
		if channel == "" {
			return api.Faulty(api.Fault{Field: "channel", Problem: "is missing; " + knownAs(book.Channels)})
		}
		rest := slices.DeleteFunc(slices.Clone(l.Recipients), func(r notify.Recipient) bool { return targetOf(r) == gone })
		if out.Removed = len(l.Recipients) - len(rest); out.Removed == 0 {
			return noRecipient(l.Name, channel, address)
		}
		l.Recipients = rest
		return nil
	})
}

// Import adds all recipients of a text to a list, or none.
func (s Lists) Import(ctx context.Context, name string, req *api.ImportRequest, wrong ...api.Fault) (out api.ListChange, err error) {
	entries, faults := parseRecipients(req.Format, req.Text)
	if faults = append(wrong, faults...); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	return s.changeList(ctx, name, func(l *notify.List, book *notify.Directory, out *api.ListChange) *api.Problem {
		var faults []api.Fault
		news := make([]notify.Recipient, len(entries))
		for i, e := range entries {
			if e.Channel == "" {
				e.Channel = req.Channel
			}
			faults = append(faults, s.recipientFaults(e.Recipient, book, func(part string) string { return fmt.Sprintf("line %d: %s", e.line, part) })...)
			news[i] = e.Recipient
		}
		if len(faults) > 0 {
			return api.Faulty(faults...)
		}
		join(l, out, news...)
		return nil
	})
}

// join adds recipients to a list, or changes those that it already has.
func join(l *notify.List, out *api.ListChange, news ...notify.Recipient) {
	all := slices.Clone(l.Recipients)
	at := make(map[target]int, len(all)+len(news))
	for i, r := range all {
		at[targetOf(r)] = i
	}
	for _, r := range news {
		i, known := at[targetOf(r)]
		switch {
		case !known:
			at[targetOf(r)] = len(all)
			all = append(all, r)
			out.Added++
		case all[i] == r:
			out.Unchanged++
		default:
			all[i] = r
			out.Changed++
		}
	}
	l.Recipients = all
}

// changeList changes the recipients of an existing list.
func (s Lists) changeList(ctx context.Context, name string, change func(*notify.List, *notify.Directory, *api.ListChange) *api.Problem) (out api.ListChange, err error) {
	return anew(s.Service, func() (api.ListChange, error) { return s.changeListOnce(ctx, name, change) })
}

func (s Lists) changeListOnce(ctx context.Context, name string, change func(*notify.List, *notify.Directory, *api.ListChange) *api.Problem) (out api.ListChange, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	l, ok := book.Lists[name]
	if !ok {
		return out, noList(name, &book)
	}
	out = api.ListChange{List: name}
	if p := change(&l, &book, &out); p != nil {
		return out, p
	}
	if faults := tooMany(len(l.Recipients)); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	if out.Added+out.Changed+out.Removed > 0 {
		if err := s.storeList(ctx, &l); err != nil {
			return out, err
		}
	}
	out.Recipients, out.Version, out.Warnings = len(l.Recipients), listVersion(l), listWarnings(&l, &book)
	return out, nil
}
