package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/notify"
)

// office is the part of a node that brings notifications to people; a site has
// none.
type office struct {
	ingester *notify.Ingester
	channels *notify.Channels
	desk     *notify.Desk
	sweeper  *notify.Sweeper
}

// buildOffice makes it, with what the seed adds.
func (n *Node) buildOffice(ctx context.Context) error {
	if n.cfg.Role == config.Site {
		return nil
	}
	books := notify.NewBooks(n.store)
	ingester := &notify.Ingester{Store: n.store, Books: books}
	n.office = &office{
		ingester: ingester,
		desk:     &notify.Desk{Ingester: ingester, Site: n.cfg.Source()},
		channels: &notify.Channels{
			Store: n.store, Books: books, Messages: n.store, Lanes: n.store, Kinds: n.kinds(),
			Grace: n.grace(), Observer: n.observers(), Logger: n.log,
		},
		sweeper: &notify.Sweeper{Store: n.store, Keep: n.cfg.Notifications.Retention, Logger: n.log},
	}
	if n.cfg.Notifications.Seed == "" {
		return nil
	}
	return n.sow(ctx, n.cfg.Notifications.Seed)
}

func (o *office) parts(stop context.Context) []run.Part {
	if o == nil {
		return nil
	}
	return []run.Part{{Name: "notifications", Run: atOnce(stop, o.channels.Run)}, {Name: "notification sweeper", Run: o.sweeper.Run}}
}

// lanes are how the channels fare, as lanes.
func (o *office) lanes() (list []holdfast.LaneStatus) {
	if o == nil {
		return nil
	}
	for _, s := range o.channels.Status() {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b holdfast.LaneStatus) int { return strings.Compare(a.Destination, b.Destination) })
	return list
}

// health adds the channels that do not fare well.
func (o *office) health(add addCheck) {
	for _, s := range o.lanes() {
		name, _ := notify.ChannelOf(s.Destination)
		switch {
		case s.Held:
			add("channel "+name, admin.Degraded, "held: "+s.Problem)
		case !s.Up:
			add("channel "+name, admin.Degraded, "down: "+s.Problem)
		}
	}
}

// sow makes the channels and lists of a seed that do not exist. Nothing of what
// people have changed since is touched.
func (n *Node) sow(ctx context.Context, file string) error {
	seed, err := config.LoadSeed(file, config.Process())
	if err != nil {
		return err
	}
	book, err := n.store.Book(ctx)
	if err != nil {
		return err
	}
	channels, lists := seedBook(seed)
	var faults []error
	for _, c := range channels {
		faults = append(faults, placed(file+": channels."+c.Name, n.office.channels.Check(c)))
	}
	for _, l := range lists {
		faults = append(faults, n.checkSeedList(file, l, channels, book))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, c := range channels {
		if _, there := book.Channels[c.Name]; !there {
			if err := n.store.PutChannel(ctx, c); err != nil && !errors.Is(err, holdfast.ErrState) { // another node sows, too
				return fmt.Errorf("seed channel %s: %w", c.Name, err)
			}
		}
	}
	for _, l := range lists {
		if _, there := book.Lists[l.Name]; !there {
			if err := n.store.PutList(ctx, l); err != nil && !errors.Is(err, holdfast.ErrState) {
				return fmt.Errorf("seed list %s: %w", l.Name, err)
			}
		}
	}
	return nil
}

func (n *Node) checkSeedList(file string, l notify.List, seeded []notify.Channel, book notify.Book) error {
	if err := l.Validate(); err != nil {
		return placed(file+": lists."+l.Name, err)
	}
	var faults []error
	for i, r := range l.Recipients {
		c, known := book.Channels[r.Channel]
		if at := slices.IndexFunc(seeded, func(c notify.Channel) bool { return c.Name == r.Channel }); !known && at >= 0 {
			c, known = seeded[at], true
		}
		err := fmt.Errorf("there is no channel %q", r.Channel)
		if known {
			err = n.office.channels.CheckRecipient(c, r.Address)
		}
		if err != nil {
			faults = append(faults, placed(fmt.Sprintf("%s: lists.%s.recipients[%d]", file, l.Name, i), err))
		}
	}
	return errors.Join(faults...)
}

// placed says where each fault of several is.
func placed(place string, err error) error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, placed(place, one))
		}
		return errors.Join(all...)
	}
	return fmt.Errorf("%s: %w", place, err)
}

// seedBook turns a seed into what the store keeps, by name.
func seedBook(s *config.Seed) (channels []notify.Channel, lists []notify.List) {
	for _, name := range slices.Sorted(maps.Keys(s.Channels)) {
		c := s.Channels[name]
		channel := notify.Channel{
			Name: name, Kind: c.Kind, Settings: c.Settings, Workers: c.Workers, Disabled: c.Disabled,
			Retry: notify.Retry{Attempts: c.Attempts, Interval: c.Interval, Waits: c.Waits},
		}
		if c.Attempts == 0 && c.Interval == 0 && len(c.Waits) == 0 {
			channel.Retry = notify.DefaultRetry()
		}
		channels = append(channels, channel)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Lists)) {
		l := notify.List{Name: name, Description: s.Lists[name].Description, Partial: s.Lists[name].Partial}
		for _, r := range s.Lists[name].Recipients {
			l.Recipients = append(l.Recipients, notify.Recipient(r))
		}
		lists = append(lists, l)
	}
	return channels, lists
}

// longestSecret is far more than any is.
const longestSecret = 64 << 10

// secret reads what a channel names as a secret: the file of that name. It is
// read at each use, so that a new one needs no restart.
func (n *Node) secret(name string) ([]byte, error) {
	folder := n.cfg.Notifications.Secrets
	if folder == "" {
		return nil, fmt.Errorf("secret %q: this node has no folder of secrets: set notifications.secrets", name)
	}
	if err := notify.CheckName("secret", name); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, name)
	// Before it is opened: a pipe would hold up who opens it.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("secret %q: %w", name, err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("secret %q: %s is not a regular file", name, path)
	}
	f, err := os.Open(path) //nolint:gosec // in the folder of secrets, by a name that cannot leave it
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", name, err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, longestSecret+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("secret %q: %w", name, err)
	case len(text) > longestSecret:
		return nil, fmt.Errorf("secret %q: the file is larger than %s", name, config.FormatSize(longestSecret))
	}
	if text = []byte(strings.TrimRight(string(text), "\r\n")); len(text) == 0 {
		return nil, fmt.Errorf("secret %q: the file is empty", name)
	}
	return text, nil
}
