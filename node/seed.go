package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/notify"
)

// sow makes the channels and lists of a seed that do not exist yet. It does not touch what people have
// changed since, and does not check the seed against it: the seed is checked as it is written. sow makes a
// new list even if it does not fit the present channels, for example because it names a deleted one. The
// recipients that can be reached are reached, and the others are reported until that is fixed. Refusing the
// start would also stop the recipients that can be reached.
func (n *Node) sow(ctx context.Context, o *office, file string) error {
	seed, err := n.readSeed(file, o.channels)
	if err != nil {
		return err
	}
	channels, lists := seedBook(seed)
	book, err := n.kept.Directory.Directory(ctx)
	if err != nil {
		return err
	}
	for _, c := range channels {
		if _, there := book.Channels[c.Name]; there {
			continue
		}
		if err := n.kept.Directory.PutChannel(ctx, c, "seed"); errors.Is(err, holdfast.ErrState) {
			continue // another node sows, too
		} else if err != nil {
			return fmt.Errorf("seed channel %s: %w", c.Name, err)
		}
		for _, warning := range seedRetryWarnings(seed.Channels[c.Name]) {
			n.log.WarnContext(ctx, "seed: a setting is not above zero, the default is used", slog.String("channel", c.Name), slog.String("setting", warning))
		}
	}
	for _, l := range lists {
		if _, there := book.Lists[l.Name]; there {
			continue
		}
		if err := n.kept.Directory.PutList(ctx, l, "seed"); errors.Is(err, holdfast.ErrState) {
			continue
		} else if err != nil {
			return fmt.Errorf("seed list %s: %w", l.Name, err)
		}
		o.grew(l.Name)
	}
	if book, err = o.books.Latest(ctx); err != nil {
		return err
	}
	for _, text := range o.unfit(&book) {
		n.log.WarnContext(ctx, "the seed has made a list that does not fit", slog.String("fault", text))
	}
	return nil
}

// Preflight checks what a start would refuse in the things that a configuration names: how databases are
// written to, and the seed with its channels' settings and addresses. It needs no store. serve, config check
// and the doctor call it. The error is a *config.Error.
func Preflight(c *config.Config) error {
	if faults := checkForeign(c); len(faults) > 0 {
		return &config.Error{Faults: faults}
	}
	if c.Notifications.Seed == "" {
		return nil
	}
	n := &Node{cfg: c, log: slog.New(slog.DiscardHandler), secrets: &folder{conf: &c.Notifications}}
	_, err := n.readSeed(c.Notifications.Seed, &notify.Channels{Kinds: n.secrets.kinds(n.secrets.mayUse, n.log)})
	return err
}

// readSeed reads a seed and reports its own faults. A list may name channels that are not in the seed: people
// may have made them.
func (n *Node) readSeed(file string, kinds *notify.Channels) (*config.Seed, error) {
	seed, err := config.LoadSeed(file, config.Process(nil))
	if err != nil {
		return nil, err
	}
	channels, lists := seedBook(seed)
	before := n.secrets.seedUses.Load()
	n.secrets.bindSeed(channels)
	known := map[string]notify.Channel{}
	var faults []config.Fault
	for _, c := range channels {
		known[c.Name] = c
		faults = append(faults, seedFaults(seed, "channels."+c.Name, kinds.Check(c))...)
	}
	for _, l := range lists {
		if err := l.Validate(); err != nil {
			faults = append(faults, seedFaults(seed, "lists."+l.Name, err)...)
			continue
		}
		for i, r := range l.Recipients {
			if c, ok := known[r.Channel]; ok {
				faults = append(faults, seedFaults(seed, fmt.Sprintf("lists.%s.recipients[%d]", l.Name, i), kinds.CheckRecipient(c, r.Address))...)
			}
		}
	}
	if len(faults) > 0 {
		n.secrets.seedUses.Store(before) // a seed with faults changes nothing
		return nil, &config.Error{Faults: faults}
	}
	return seed, nil
}

// seedFaults turns an error into faults with their places in the seed.
func seedFaults(seed *config.Seed, path string, err error) []config.Fault {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		var all []config.Fault
		for _, one := range many.Unwrap() {
			all = append(all, seedFaults(seed, path, one)...)
		}
		return all
	}
	if f, ok := errors.AsType[*holdfast.FieldError](err); ok && f.Field != "" {
		return []config.Fault{seed.Fault(path+"."+f.Field, f.Value, f.Problem)}
	}
	return []config.Fault{seed.Fault(path, "", err.Error())}
}

// grew records a list that the seed has made.
func (o *office) grew(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sown = append(o.sown, name)
}

// grown returns the lists that the seed has made since the start.
func (o *office) grown() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.sown)
}

// look returns unfit for the present channels and lists.
func (o *office) look(ctx context.Context) []string {
	if len(o.grown()) == 0 {
		return nil
	}
	book, err := o.books.Get(ctx)
	if err != nil {
		return nil // another check reports the error
	}
	return o.unfit(&book)
}

// unfit names the recipients of lists made by the seed who cannot be reached now.
func (o *office) unfit(book *notify.Directory) (texts []string) {
	for _, name := range o.grown() {
		for i, r := range book.Lists[name].Recipients {
			if r.Disabled {
				continue
			}
			err := fmt.Errorf("there is no channel %q: make it, or take the recipient off the list", r.Channel)
			if c, ok := book.Channels[r.Channel]; ok {
				err = o.channels.CheckRecipient(c, r.Address)
			}
			if err != nil {
				texts = append(texts, fmt.Sprintf("lists.%s.recipients[%d]: %v", name, i, err))
			}
		}
	}
	return texts
}

// seedBook turns a seed into what the store keeps, by name.
func seedBook(s *config.Seed) (channels []notify.Channel, lists []notify.List) {
	for _, name := range slices.Sorted(maps.Keys(s.Channels)) {
		c := s.Channels[name]
		channels = append(channels, notify.Channel{
			Name: name, Kind: c.Kind, Settings: c.Settings, Workers: c.Workers, Disabled: c.Disabled,
			Retry: notify.NewRetry(c.Attempts, c.Interval, c.Waits),
		})
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

// seedRetryWarnings names the values that NewRetry has replaced (NO-10).
func seedRetryWarnings(c config.SeedChannel) (list []string) {
	if c.Attempts != nil && *c.Attempts <= 0 {
		list = append(list, fmt.Sprintf("retry.attempts: %d", *c.Attempts))
	}
	if c.Interval != nil && *c.Interval <= 0 && len(c.Waits) == 0 {
		list = append(list, "retry.interval: "+setting.FormatDuration(*c.Interval))
	}
	return list
}
