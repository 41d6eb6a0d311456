package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/notify"
)

// office is the part of a node that brings notifications to people; a site has
// none.
type office struct {
	books    *notify.Books
	ingester *notify.Ingester
	channels *notify.Channels
	desk     *notify.Desk
	sweeper  *notify.Sweeper
	sown     []string // lists that the seed has made at this start
}

// buildOffice makes it, with what the seed adds.
func (n *Node) buildOffice(ctx context.Context) error {
	if n.cfg.Role == config.Site {
		return nil
	}
	books := notify.NewBooks(n.store)
	ingester := &notify.Ingester{Store: n.store, Books: books}
	n.office = &office{
		books:    books,
		ingester: ingester,
		desk:     &notify.Desk{Ingester: ingester, Site: n.cfg.Source()},
		channels: &notify.Channels{
			Store: n.store, Books: books, Messages: n.store, Lanes: n.store, Kinds: n.kinds(),
			Grace: n.grace(), Poll: n.cfg.Notifications.Poll, Observer: n.metrics, Progress: n.progress, Answers: &n.answers, Logger: n.log,
		},
		sweeper: &notify.Sweeper{Store: n.store, Keep: n.cfg.Notifications.Retention, Every: n.cfg.Notifications.Sweep, Logger: n.log},
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
		laneHealth("channel "+name, s, add)
	}
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
	text, err := namedfile.ReadLine(filepath.Join(folder, name), longestSecret)
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", name, err)
	}
	return text, nil
}
