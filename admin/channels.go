package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/notify"
)

// Channels offers the channels that bring notifications to people.
type Channels struct{ *Service }

// book reads all lists and channels.
func (s *Service) book(ctx context.Context) (notify.Directory, *api.Problem) {
	if s.Directory == nil {
		return notify.Directory{}, noNotify()
	}
	book, err := s.Directory.Directory(ctx)
	if err != nil {
		return notify.Directory{}, s.refuse(ctx, "read lists and channels", err)
	}
	return book, nil
}

// List returns all channels by name, with how each fares here.
func (s Channels) List(ctx context.Context) (out api.ChannelList, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	lanes, counts := s.Channels.Status(), s.Outbox.Counts().Lanes
	list := make([]api.Channel, 0, len(book.Channels))
	for _, c := range book.Channels {
		shown := channelOf(c)
		shown.Status = channelStatusOf(&c, lanes, counts)
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b api.Channel) int { return cmp.Compare(a.Name, b.Name) })
	return api.ChannelList{Channels: list}, nil
}

// Get returns one channel.
func (s Channels) Get(ctx context.Context, name string) (out api.Channel, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	c, ok := book.Channels[name]
	if !ok {
		return out, noChannel(name, &book)
	}
	return s.show(&c), nil
}

func (s Channels) show(c *notify.Channel) api.Channel {
	out := channelOf(*c)
	out.Status = channelStatusOf(c, s.Channels.Status(), s.Outbox.Counts().Lanes)
	return out
}

func noChannel(name string, book *notify.Directory) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no channel %q; %s", api.Clip(name), knownAs(book.Channels)),
		api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a channel"})
}

// knownAs lists the names in a map.
func knownAs[V any](all map[string]V) string {
	if len(all) == 0 {
		return "there are none"
	}
	return "known are " + namesOf(all)
}

func namesOf[V any](all map[string]V) string {
	return brief.List(slices.Sorted(maps.Keys(all)))
}

// Put makes or replaces a channel, if the conditions hold.
func (s Channels) Put(ctx context.Context, name string, spec *api.ChannelSpec, only Conditions, wrong ...api.Fault) (out api.Channel, err error) {
	if s.Directory == nil {
		return out, noNotify()
	}
	c, faults := channelFrom(spec, name)
	if wrong = append(wrong, faults...); len(wrong) > 0 {
		return out, api.Faulty(withoutRepeats(wrong)...)
	}
	return anew(s.Service, func() (api.Channel, error) { return s.replace(ctx, c, spec, only) })
}

func (s Channels) replace(ctx context.Context, c notify.Channel, spec *api.ChannelSpec, only Conditions) (out api.Channel, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	old, exists := book.Channels[c.Name]
	if s.Vault != nil {
		c, err = s.Vault.Seal(c, old)
	}
	if err == nil {
		err = s.Channels.Check(c)
	}
	if wrong := settingFaults(err); len(wrong) > 0 {
		return out, api.Faulty(withoutRepeats(wrong)...)
	}
	var warnings []string
	if spec.Retry != nil {
		warnings = retryWarnings(spec.Retry)
	}
	is := state{"channel", c.Name, exists, channelVersion(old), spec.Version, channelVersion(c)}
	if p := only.check(is); p != nil {
		return out, p
	}
	if !is.same() {
		c.Version = old.Version
		if err := s.Directory.PutChannel(ctx, c, Actor(ctx)); err != nil {
			return out, s.notStored(ctx, "store the channel", err)
		}
		s.noted(ctx, "channel changed", slog.String("channel", c.Name), slog.String("channel_kind", c.Kind))
		for _, w := range warnings {
			s.Log().WarnContext(ctx, "channel setting replaced", slog.String("channel", c.Name), slog.String("warning", w))
		}
		c.Changed, c.Version = time.Time{}, 0 // the store sets them
	}
	out = s.show(&c)
	out.Warnings = warnings
	return out, nil
}

// settingFaults turns an adapter's error about settings into faults.
func settingFaults(err error) []api.Fault {
	if err == nil {
		return nil
	}
	if faults := api.FaultsOf(err); len(faults) > 0 {
		return faults
	}
	return []api.Fault{{Field: "settings", Problem: "do not work: " + api.Clip(err.Error())}}
}

// errMeanwhile says that another node has changed the list or channel since it was read.
var errMeanwhile = errors.New("changed meanwhile")

// notStored explains why a store did not keep a list or channel. A version that is not the present one is errMeanwhile.
func (s *Service) notStored(ctx context.Context, doing string, err error) error {
	if errors.Is(err, holdfast.ErrState) {
		return errMeanwhile
	}
	return s.refuse(ctx, doing, err)
}

// mostTries bounds how often a change is repeated because another node was faster.
const mostTries = 20

// anew makes a change of a list or channel, from reading it to storing it. If another node was faster, anew
// reads again and repeats the change, as if the request had come a moment later. Then a condition may refuse
// it, and a recipient is added to the other node's version.
func anew[T any](s *Service, change func() (T, error)) (out T, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	for range mostTries {
		if out, err = change(); !errors.Is(err, errMeanwhile) {
			return out, err
		}
	}
	return out, api.Changed.Problem("other requests keep changing it; repeat the change")
}

// Delete removes a channel. force removes it even if it is needed.
func (s Channels) Delete(ctx context.Context, name string, force bool, only Conditions) error {
	_, err := anew(s.Service, func() (struct{}, error) { return struct{}{}, s.end(ctx, name, force, only) })
	return err
}

func (s Channels) end(ctx context.Context, name string, force bool, only Conditions) error {
	book, p := s.book(ctx)
	if p != nil {
		return p
	}
	c, ok := book.Channels[name]
	if !ok {
		return noChannel(name, &book)
	}
	if p := only.check(state{what: "channel", name: name, exists: true, version: channelVersion(c)}); p != nil {
		return p
	}
	if why := s.neededBy(name, &book); why != "" && !force {
		return api.WrongState.Problem(fmt.Sprintf("channel %s is needed: %s; disable it, or delete it by force", name, why),
			api.Fault{Field: "name", Value: name, Problem: "is needed: " + why})
	}
	if err := s.Directory.DeleteChannel(ctx, name, c.Version, Actor(ctx)); errors.Is(err, holdfast.ErrNotFound) {
		return noChannel(name, &book)
	} else if err != nil {
		return s.notStored(ctx, "delete the channel", err)
	}
	s.noted(ctx, "channel deleted", slog.String("channel", name))
	return nil
}

// neededBy names the users of a channel.
func (s Channels) neededBy(name string, book *notify.Directory) string {
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
