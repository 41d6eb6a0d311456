package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

type putRecipientInput struct {
	Name    string `path:"name" doc:"The list's name."`
	Content body
}

type deleteRecipientInput struct {
	Name    string `path:"name" doc:"The list's name."`
	Channel string `query:"channel" doc:"The recipient's channel."`
	Address string `query:"address" doc:"Its address. Absent: the one target that the channel has."`
}

type listChangeOutput struct {
	ETag string `header:"ETag" doc:"The version of the list, for If-Match."`
	Body api.ListChange
}

func (b *builder) recipients() {
	none, full := "There is no such list.", "The disk is full; nothing was changed."
	problems := map[api.Sort]string{api.NotFound: none, api.Changed: "Other nodes change the list all the time.", api.DiskFull: full, api.Unsupported: unsupportedNotify}
	handle(b, route{
		method: http.MethodPut, path: "/v1/lists/{name}/recipients", id: "put-recipient", tag: "lists", role: api.Admin,
		summary: "Add or change a recipient", description: "The one with this channel and address. Doing it again changes nothing.",
		problems: problems, request: reflect.TypeFor[api.RecipientSpec](), bodyRequired: true,
		requestSample: json.RawMessage(`{"channel":"mail","address":"jane@example.com","name":"Doe, Jane"}`),
	}, b.putRecipient)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/lists/{name}/recipients", id: "delete-recipient", tag: "lists", role: api.Admin,
		summary: "Remove a recipient", description: "The one with this channel and address.",
		problems: map[api.Sort]string{
			api.NotFound: "There is no such list, or nobody of this channel and address on it.", api.Changed: problems[api.Changed], api.DiskFull: full, api.Unsupported: unsupportedNotify,
		},
	}, b.deleteRecipient)
	handle(b, route{
		method: http.MethodPost, path: "/v1/lists/{name}/recipients/import", id: "import-recipients", tag: "lists", role: api.Admin,
		summary: "Import recipients", description: "Adds those that are not on the list yet, and changes those that are. A line that is wrong is named, and nothing is changed then.",
		problems: problems, request: reflect.TypeFor[api.ImportRequest](), bodyRequired: true, bodyLimit: bookBody,
		requestSample: json.RawMessage(`{"channel":"mail","text":"john@example.com\n\"Doe, Jane\" <jane@example.com>"}`),
	}, b.importRecipients)
}

func (b *builder) putRecipient(ctx context.Context, in *putRecipientInput) (*listChangeOutput, error) {
	var spec api.RecipientSpec
	faults, p := in.Content.decode(&spec)
	if p != nil {
		return nil, p
	}
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	r := notify.Recipient(spec)
	return b.changeList(ctx, in.Name, func(l *notify.List, book *notify.Book, out *api.ListChange) *api.Problem {
		if faults := b.recipientFaults(r, book, func(part string) string { return part }); len(faults) > 0 {
			return api.Faulty(faults...)
		}
		join(l, out, r)
		return nil
	})
}

func (b *builder) deleteRecipient(ctx context.Context, in *deleteRecipientInput) (*listChangeOutput, error) {
	gone := target{in.Channel, in.Address}
	return b.changeList(ctx, in.Name, func(l *notify.List, book *notify.Book, out *api.ListChange) *api.Problem {
		if in.Channel == "" {
			return api.Faulty(api.Fault{Field: "channel", Problem: "is missing; " + knownAs(book.Channels)})
		}
		rest := slices.DeleteFunc(slices.Clone(l.Recipients), func(r notify.Recipient) bool { return targetOf(r) == gone })
		if out.Removed = len(l.Recipients) - len(rest); out.Removed == 0 {
			return api.NotFound.Problem(fmt.Sprintf("list %s has no recipient %q on channel %q", l.Name, api.Clip(in.Address), api.Clip(in.Channel)),
				api.Fault{Field: "address", Value: api.Clip(in.Address), Problem: "is not on the list, on this channel"})
		}
		l.Recipients = rest
		return nil
	})
}

func (b *builder) importRecipients(ctx context.Context, in *putRecipientInput) (*listChangeOutput, error) {
	var req api.ImportRequest
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	entries, wrong := parseRecipients(req.Format, req.Text)
	if faults = append(faults, wrong...); len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	return b.changeList(ctx, in.Name, func(l *notify.List, book *notify.Book, out *api.ListChange) *api.Problem {
		var faults []api.Fault
		news := make([]notify.Recipient, len(entries))
		for i, e := range entries {
			if e.Channel == "" {
				e.Channel = req.Channel
			}
			faults = append(faults, b.recipientFaults(e.Recipient, book, func(part string) string { return fmt.Sprintf("line %d: %s", e.line, part) })...)
			news[i] = e.Recipient
		}
		if len(faults) > 0 {
			return api.Faulty(faults...)
		}
		join(l, out, news...)
		return nil
	})
}

// join adds recipients to a list, or changes those that it has.
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

// changeList changes the recipients of a list that there is.
func (b *builder) changeList(ctx context.Context, name string, change func(*notify.List, *notify.Book, *api.ListChange) *api.Problem) (*listChangeOutput, error) {
	return anew(b, func() (*listChangeOutput, error) { return b.changeListOnce(ctx, name, change) })
}

func (b *builder) changeListOnce(ctx context.Context, name string, change func(*notify.List, *notify.Book, *api.ListChange) *api.Problem) (*listChangeOutput, error) {
	book, p := b.book(ctx)
	if p != nil {
		return nil, p
	}
	l, ok := book.Lists[name]
	if !ok {
		return nil, noList(name, &book)
	}
	out := api.ListChange{List: name}
	if p := change(&l, &book, &out); p != nil {
		return nil, p
	}
	if faults := tooMany(len(l.Recipients)); len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	if out.Added+out.Changed+out.Removed > 0 {
		if err := b.storeList(ctx, &l); err != nil {
			return nil, err
		}
	}
	out.Recipients, out.Version, out.Warnings = len(l.Recipients), listVersion(l), listWarnings(&l, &book)
	return &listChangeOutput{ETag: etag(out.Version), Body: out}, nil
}
