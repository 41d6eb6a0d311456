package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/notify"
)

type channelInput struct {
	Name string `path:"name" doc:"The channel's name."`
}

type putChannelInput struct {
	Conditions
	Name    string `path:"name" doc:"The channel's name."`
	Content body
}

type deleteChannelInput struct {
	Conditions
	Name  string `path:"name" doc:"The channel's name."`
	Force bool   `query:"force" doc:"Also while lists use it or notifications wait for it. Those wait until there is a channel of this name again."`
}

type channelsOutput struct{ Body api.ChannelList }

type channelOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.Channel
}

func (b *builder) channels() {
	none := "There is no such channel."
	handle(b, route{
		method: http.MethodGet, path: "/v1/channels", id: "list-channels", tag: "channels", role: api.Read,
		summary: "List channels", description: "With how each fares on the node that is asked.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, b.listChannels)
	handle(b, route{
		method: http.MethodGet, path: "/v1/channels/{name}", id: "get-channel", tag: "channels", role: api.Read,
		summary: "Show a channel", description: "Its settings, and how it fares on the node that is asked.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
	}, b.showChannel)
	handle(b, route{
		method: http.MethodPut, path: "/v1/channels/{name}", id: "put-channel", tag: "channels", role: api.Admin,
		summary:     "Make or replace a channel",
		description: "It is used within about a second, on all nodes, without a restart. What GET answers can be changed and sent back; the version in it keeps two people from overwriting each other.",
		problems: map[api.Sort]string{
			api.Changed: "It is another one by now than that which the condition or the version names.", api.Unsupported: unsupportedNotify,
			api.DiskFull: "The disk is full; nothing was changed.",
		},
		request: reflect.TypeFor[api.ChannelSpec](), bodyRequired: true, bodyLimit: 2 * mostSettings,
		requestSample: json.RawMessage(`{"kind":"ntfy","settings":{"url":"https://ntfy.example"},"retry":{"attempts":10,"interval":"1m"}}`),
	}, b.putChannel)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/channels/{name}", id: "delete-channel", tag: "channels", role: api.Admin,
		summary: "Delete a channel", description: "Refused while lists use it or notifications wait for it, unless force says otherwise.",
		problems: map[api.Sort]string{
			api.NotFound: none, api.WrongState: "Lists use it, or notifications wait for it.", api.Changed: "It is another one by now than that which the condition names.",
			api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
		},
	}, b.deleteChannel)
	handle(b, route{
		method: http.MethodPost, path: "/v1/channels/{name}/resume", id: "resume-channel", tag: "channels", role: api.Operate,
		summary:     "Resume a held channel",
		description: "It is tried at once, instead of at its next probe. On a store with several nodes the others find out by theirs.",
		problems: map[api.Sort]string{
			api.NotFound: none, api.WrongState: "It is disabled.", api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
		},
	}, b.resumeChannel)
	handle(b, route{
		method: http.MethodPost, path: "/v1/channels/{name}/test", id: "test-channel", tag: "channels", role: api.Operate,
		summary:     "Test a channel",
		description: "Sends a notification of its own to one address, once, also over a channel that is held or disabled. The answer is what the other side said; nothing is kept.",
		problems:    map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
		request:     reflect.TypeFor[api.TestRequest](), requestSample: json.RawMessage(`{"address":"jane@example.com"}`), slow: true,
	}, b.testChannel)
}

// book reads all lists and channels.
func (s *Server) book(ctx context.Context) (notify.Book, *api.Problem) {
	if s.Notify == nil {
		return notify.Book{}, noNotify()
	}
	book, err := s.Notify.Book(ctx)
	if err != nil {
		return notify.Book{}, s.refuse(ctx, "read lists and channels", err)
	}
	return book, nil
}

func (s *Server) listChannels(ctx context.Context, _ *struct{}) (*channelsOutput, error) {
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	lanes, counts := s.Channels.Status(), s.Outbox.Counts().Lanes
	list := make([]api.Channel, 0, len(book.Channels))
	for _, c := range book.Channels {
		shown := channelOf(c)
		shown.Status = channelStatusOf(&c, lanes, counts)
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b api.Channel) int { return cmp.Compare(a.Name, b.Name) })
	return &channelsOutput{api.ChannelList{Channels: list}}, nil
}

func (s *Server) showChannel(ctx context.Context, in *channelInput) (*channelOutput, error) {
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	c, ok := book.Channels[in.Name]
	if !ok {
		return nil, noChannel(in.Name, &book)
	}
	return s.channelAnswer(c), nil
}

func (s *Server) channelAnswer(c notify.Channel) *channelOutput {
	shown := channelOf(c)
	shown.Status = channelStatusOf(&c, s.Channels.Status(), s.Outbox.Counts().Lanes)
	return &channelOutput{ETag: etag(shown.Version), Body: shown}
}

func noChannel(name string, book *notify.Book) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no channel %q; %s", api.Clip(name), knownAs(book.Channels)),
		api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a channel"})
}

// knownAs lists the names that there are.
func knownAs[V any](all map[string]V) string {
	if len(all) == 0 {
		return "there are none"
	}
	return "known are " + namesOf(all)
}

func namesOf[V any](all map[string]V) string {
	return brief.List(slices.Sorted(maps.Keys(all)))
}

func (b *builder) putChannel(ctx context.Context, in *putChannelInput) (*channelOutput, error) {
	if b.Notify == nil {
		return nil, noNotify()
	}
	var spec api.ChannelSpec
	faults, p := in.Content.decode(&spec)
	if p != nil {
		return nil, p
	}
	c, wrong := channelFrom(&spec, in.Name)
	if faults = append(faults, wrong...); len(faults) == 0 {
		faults = settingFaults(b.Channels.Check(c))
	}
	if len(faults) > 0 {
		return nil, api.Faulty(withoutRepeats(faults)...)
	}
	return anew(b, func() (*channelOutput, error) { return b.replaceChannel(ctx, in, c, &spec) })
}

func (b *builder) replaceChannel(ctx context.Context, in *putChannelInput, c notify.Channel, spec *api.ChannelSpec) (*channelOutput, error) {
	book, p := b.book(ctx)
	if p != nil {
		return nil, p
	}
	old, exists := book.Channels[in.Name]
	var warnings []string
	if spec.Retry != nil {
		warnings = retryWarnings(spec.Retry)
	}
	is := state{"channel", in.Name, exists, channelVersion(old), spec.Version, channelVersion(c)}
	if p := in.check(is); p != nil {
		return nil, p
	}
	if !is.same() {
		c.Version = old.Version
		if err := b.Notify.PutChannel(ctx, c); err != nil {
			return nil, b.notStored(ctx, "store the channel", err)
		}
		b.noted(ctx, "channel changed", slog.String("channel", c.Name), slog.String("channel_kind", c.Kind))
		for _, w := range warnings {
			b.log().WarnContext(ctx, "a setting of a channel is taken otherwise than it was sent", slog.String("channel", c.Name), slog.String("warning", w))
		}
		c.Changed, c.Version = time.Time{}, 0 // the store has set them
	}
	out := b.channelAnswer(c)
	out.Body.Warnings = warnings
	return out, nil
}

// settingFaults are what an adapter says of settings.
func settingFaults(err error) []api.Fault {
	if err == nil {
		return nil
	}
	if faults := api.FaultsOf(err); len(faults) > 0 {
		return faults
	}
	return []api.Fault{{Field: "settings", Problem: "do not work: " + api.Clip(err.Error())}}
}

// errMeanwhile says that another node has changed it since it was looked at.
var errMeanwhile = errors.New("changed meanwhile")

// notStored also knows what a store says of a version that is not the present
// one.
func (s *Server) notStored(ctx context.Context, doing string, err error) error {
	if errors.Is(err, holdfast.ErrState) {
		return errMeanwhile
	}
	return s.refuse(ctx, doing, err)
}

// mostTries bounds how often another node may be faster.
const mostTries = 20

// anew makes a change of a list or channel, from the look at what there is until
// it is stored. When another node was faster it looks again, as if the request
// had come a moment later: a condition is then refused, and a recipient is added
// to what the other has made.
func anew[T any](b *builder, change func() (*T, error)) (*T, error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	for range mostTries {
		if out, err := change(); !errors.Is(err, errMeanwhile) {
			return out, err
		}
	}
	return nil, api.Changed.Problem("others change it all the time; repeat the change")
}

// noted logs who changed what.
func (s *Server) noted(ctx context.Context, what string, attrs ...slog.Attr) {
	s.log().LogAttrs(ctx, slog.LevelInfo, what, append(attrs, slog.String("actor", actor(ctx)))...) //nolint:sloglint // constant at each call
}

func (b *builder) deleteChannel(ctx context.Context, in *deleteChannelInput) (*struct{}, error) {
	return anew(b, func() (*struct{}, error) { return b.endChannel(ctx, in) })
}

func (b *builder) endChannel(ctx context.Context, in *deleteChannelInput) (*struct{}, error) {
	book, p := b.book(ctx)
	if p != nil {
		return nil, p
	}
	c, ok := book.Channels[in.Name]
	if !ok {
		return nil, noChannel(in.Name, &book)
	}
	if p := in.check(state{what: "channel", name: in.Name, exists: true, version: channelVersion(c)}); p != nil {
		return nil, p
	}
	if why := b.neededBy(in.Name, &book); why != "" && !in.Force {
		return nil, api.WrongState.Problem(fmt.Sprintf("channel %s is needed: %s; disable it, or delete it by force", in.Name, why),
			api.Fault{Field: "name", Value: in.Name, Problem: "is needed: " + why})
	}
	if err := b.Notify.DeleteChannel(ctx, in.Name, c.Version); errors.Is(err, holdfast.ErrNotFound) {
		return nil, noChannel(in.Name, &book)
	} else if err != nil {
		return nil, b.notStored(ctx, "delete the channel", err)
	}
	b.noted(ctx, "channel deleted", slog.String("channel", in.Name))
	return nil, nil //nolint:nilnil // huma's way to answer 204
}

// neededBy says who uses a channel.
func (s *Server) neededBy(name string, book *notify.Book) string {
	users := map[string]bool{}
	for _, l := range book.Lists {
		if slices.ContainsFunc(l.Recipients, func(r notify.Recipient) bool { return r.Channel == name }) {
			users[l.Name] = true
		}
	}
	waiting := s.Outbox.Counts().Lanes[notify.Lane(name)].Pending
	switch {
	case len(users) > 0:
		return "recipients of these lists are on it: " + namesOf(users)
	case waiting > 0:
		return fmt.Sprintf("notifications wait for it: %d", waiting)
	}
	return ""
}
