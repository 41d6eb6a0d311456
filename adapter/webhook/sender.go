package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// Settings configure a Sender. The zero value is ready to use.
type Settings struct {
	Allow       []netip.Prefix // addresses that may be reached though they are not public
	Proxy       string         // URL of a forward proxy for targets that name none; empty: none
	NoProxy     string         // hosts, domains and networks that are reached without Proxy, separated by commas, as in NO_PROXY
	Connections int            // idle connections that are kept for each host; zero: 8
}

// Sender sends to all subscribers, which share its connections. Use New. A Sender may be used
// concurrently.
type Sender struct {
	settings Settings
	client   *exchange.Client
}

// New returns a Sender. It does not connect. Errors name the setting.
func New(s Settings) (*Sender, error) {
	return &Sender{settings: s, client: exchange.NewClient(exchange.Settings{Idle: cmp.Or(s.Connections, 8)})}, nil
}

// Close closes idle connections. Exchanges under way go on.
func (s *Sender) Close() { s.client.Close() }

// ErrGone is wrapped by the failure of a subscriber that answered 410: it wants no more. The message
// parks; whoever keeps the subscription pauses it.
var ErrGone = errors.New("the subscriber wants no more messages")

// Deliverer returns a deliverer to the target that each call of target returns, so a change and a
// new secret count from the next attempt on. If target fails, nobody is called and nothing is
// charged; its own *holdfast.Failure is kept. What a subscriber or the network does wrong is
// charged to the message, so that it keeps its schedule: use Route.OwnSchedule.
func (s *Sender) Deliverer(target func(ctx context.Context) (Target, error)) holdfast.Deliverer {
	return holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		t, err := target(ctx)
		if err != nil {
			return holdfast.Receipt{}, untargeted(err)
		}
		e := s.Send(ctx, &t, &m)
		if e.Failure != nil {
			return holdfast.Receipt{}, e.Failure
		}
		return e.receipt(m.ID), nil
	})
}

// untargeted returns the failure of an attempt whose target is not known.
func untargeted(err error) error {
	if f, ok := errors.AsType[*holdfast.Failure](err); ok {
		return f
	}
	return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_target", Err: fmt.Errorf("find the subscriber: %w", err)}
}
