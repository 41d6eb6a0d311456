package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// Store is the store of a site's messages; sqlite.DB and postgres.DB implement it.
type Store interface {
	holdfast.Store
	holdfast.Outbox
	holdfast.Lanes
	holdfast.Sweepable
}

// Destination is a target of calls: a foreign system or a database.
type Destination struct {
	// Category says what is called. A program may have its own categories besides those of the
	// library, each with its own deliverers (SF-02).
	Category holdfast.Category
	// Route is how to deliver. Zero fields of its Retry are DefaultRetry's. Without a Deliverer the
	// calls stay pending until a later start has one (SF-11).
	Route holdfast.Route
	TTL   time.Duration // of a call without a TTL; zero: it never expires
}

// Config configures a Site.
type Config struct {
	Store Store
	// Name of the site, the source of everything that it sends; empty: notify.UnknownSite.
	Name         string
	Node         string // name of the node of the site, for people; may be empty
	Destinations map[string]Destination
	// Central delivers notifications to central; package link has its Deliverer. Without a
	// Deliverer they stay pending. Zero fields of its Retry are DefaultRetry's. If the Deliverer
	// has the method Held, as link.Site does, the Site asks it how long to keep what was forwarded.
	// A Deliverer that wraps one must have Held too.
	Central holdfast.Route
	// CentralStrict: a parked notification stops those of its ordering key.
	CentralStrict bool
	// Ask asks central for the standing of a notification that has left this site. It returns
	// ErrNotFound if central does not know it. Nil: central cannot be asked.
	Ask func(ctx context.Context, id holdfast.ID) (notify.Standing, error)
	// Alone means that there is no central. Notify then returns ErrState, and a destination may
	// have central's name. A node that notifies people itself is Alone.
	Alone bool

	Poll     time.Duration     // longest time between two checks for due messages; zero: 1 s (SF-06)
	Grace    time.Duration     // how long attempts may go on after a stop; zero: 10 s (SF-10)
	Observer holdfast.Observer // may be nil
	// Summary makes of an answer what the journal keeps of it, as a Dispatcher's does. May be nil.
	Summary func(answer []byte, ended bool) string
	// OnAttempt is told of the attempts of calls whose outcome has been recorded, and never of
	// notifications (SF-33). It is called beside the dispatcher, for one attempt after the other. A
	// function that is too slow misses some; an error or a panic changes nothing. ObserverFailures
	// counts all of that. Who must not miss any follows the store's journal. May be nil.
	OnAttempt func(ctx context.Context, a Attempt) error
	// OnParked and OnExpired are called when a message parks or expires, notifications included.
	// They work as those of a Dispatcher: durably, and again after an error.
	OnParked, OnExpired func(ctx context.Context, e holdfast.Ended) error

	// Retention is how long the store keeps ended messages, including those that the program has
	// put there itself. Once the row of a call is gone, its id counts as new. Nil:
	// DefaultRetention. &holdfast.Retention{} keeps everything for ever.
	Retention *holdfast.Retention
	// Past keeps what became of calls whose messages are purged: nodestore.New(store, log).Operations.
	// Nil: a call is known as long as its message.
	Past track.Past
	// Tracking is how long a call is known after it has ended, if its message is purged before. Zero:
	// DefaultTracking (SF-23).
	Tracking time.Duration
	Sweep    time.Duration // between purges; zero: 5 min
	// Inbox is swept too, and keeps ids for InboxRetention; zero: DefaultInboxRetention. Nil: no
	// inbox is swept, not even one within Store.
	Inbox          holdfast.InboxLog
	InboxRetention time.Duration

	Waiters  *holdfast.Waiters  // waiters for first attempts, besides the callers of Submit; may be nil
	Progress *holdfast.Progress // of the store, run by its maker; nil: the Site makes its own
	Logger   *slog.Logger       // nil: nothing is logged
}

// DefaultTracking is how long a site knows an ended call: a week.
const DefaultTracking = 7 * 24 * time.Hour

// DefaultRetention is how long a site keeps ended messages: a week. Parked messages stay until a
// person decides.
func DefaultRetention() holdfast.Retention {
	const week = 7 * 24 * time.Hour
	return holdfast.Retention{Delivered: week, Expired: week, Discarded: week}
}

// DefaultRetry is the default retry policy of a site: every 30 s, fifty retries after the first
// attempt (SF-06, SF-07, SF-32). An attempt that reaches nobody is not counted.
func DefaultRetry() holdfast.RetryPolicy {
	return holdfast.RetryPolicy{First: 30 * time.Second, Max: 30 * time.Second, Jitter: -1, Factor: 1, Attempts: 51}
}

// Site takes what its program calls, and delivers it. Its methods may be called concurrently, even
// before Run and after it; messages then wait.
type Site struct {
	conf       Config
	log        *slog.Logger
	waiters    *holdfast.Waiters
	dispatcher *holdfast.Dispatcher
	sweeper    *holdfast.Sweeper
	submitter  *holdfast.Submitter
	forwarder  *Forwarder // nil: the Site is Alone
	tracker    *track.Tracker
	teller     *teller // nil: nobody is told of attempts
}

// holder is a Deliverer to central that says how long to keep what it has forwarded, so that it can
// send it again to a central that has lost it.
type holder interface {
	Held() map[string]time.Duration
}

// New checks the configuration and makes a Site. Its error holds all faults.
func New(conf Config) (*Site, error) {
	s := &Site{conf: conf, log: conf.Logger, waiters: conf.Waiters}
	if s.waiters == nil {
		s.waiters = &holdfast.Waiters{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if strings.TrimSpace(s.conf.Name) == "" {
		s.conf.Name = notify.UnknownSite
	}
	if err := s.conf.check(); err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	routes := map[string]holdfast.Route{}
	add := func(name string, route holdfast.Route) {
		if route.Deliverer != nil {
			route.Retry = route.Retry.Over(DefaultRetry())
			routes[name] = route
		}
	}
	for name, d := range s.conf.Destinations {
		add(name, d.Route)
	}
	add(notify.Central, s.conf.Central)
	s.dispatcher = &holdfast.Dispatcher{
		OnParked: conf.OnParked, OnExpired: conf.OnExpired,
		Store: conf.Store, Lanes: conf.Store, Routes: routes, Poll: conf.Poll, Grace: conf.Grace, Observer: observer{s, conf.Observer}, Waiters: s.waiters, Progress: conf.Progress, Summary: conf.Summary, Logger: s.log,
	}
	keep := DefaultRetention()
	if conf.Retention != nil {
		keep = *conf.Retention
	}
	s.sweeper = &holdfast.Sweeper{
		Outbox: conf.Store, Inbox: conf.Inbox, Retention: keep, InboxRetention: conf.InboxRetention, Every: conf.Sweep, Observer: conf.Observer, Logger: s.log,
	}
	s.sweeper.Retention.Track, s.sweeper.Retention.Tracking = conf.tracked(), cmp.Or(conf.Tracking, DefaultTracking)
	s.tracker = &track.Tracker{Outbox: conf.Store, Past: conf.Past, Category: s.category, Node: conf.Node}
	if conf.OnAttempt != nil {
		s.teller = &teller{tell: conf.OnAttempt, queue: make(chan Attempt, told), log: s.log}
	}
	if k, ok := conf.Central.Deliverer.(holder); ok {
		s.sweeper.Held = k.Held
	}
	s.submitter = &holdfast.Submitter{Enqueuer: conf.Store, Outbox: conf.Store, Waiters: s.waiters, Lane: s.dispatcher.Lane}
	if !conf.Alone {
		s.forwarder = &Forwarder{Enqueuer: conf.Store, Outbox: conf.Store, Name: s.conf.Name, Ask: conf.Ask}
	}
	return s, nil
}

func (c *Config) check() error {
	var faults []error
	bad := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: field, Value: value, Problem: problem})
	}
	if c.Store == nil {
		bad("store", "", "is nil; open one with sqlite.Open or sqlite.Attach")
	}
	if c.Alone && c.Central.Deliverer != nil {
		bad("central", "", "is set, and the site is Alone; leave one of them out")
	}
	for name, d := range c.Destinations {
		switch {
		case name == notify.Central && !c.Alone:
			bad("destinations."+name, "", "has the name of the lane to central; use another name, or the field Central")
		case d.Category == "":
			bad("destinations."+name+".category", "", "is empty; say what is called there, such as "+string(holdfast.CategoryExternalSystem))
		case d.Category == holdfast.CategoryNotification:
			bad("destinations."+name+".category", string(d.Category), "is reserved for the lane to central; set the field Central")
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	return nil
}

// Run delivers, expires and purges until ctx ends. Then work in hand may go on for the grace, and
// waiting callers are released. Its error is the Dispatcher's or the Sweeper's, and says which. Run
// may be called once.
func (s *Site) Run(ctx context.Context) error {
	parts := []run.Part{{Name: "sweeper", Run: s.sweeper.Run}, {Name: "dispatcher", Run: s.deliver}}
	if s.teller != nil { // it ends after the dispatcher
		grace := cmp.Or(s.conf.Grace, 10*time.Second) // as the dispatcher's
		parts = append([]run.Part{{Name: "observer", Run: func(ctx context.Context) error { return s.teller.run(ctx, grace) }}}, parts...)
	}
	return run.All(ctx, parts...)
}

func (s *Site) deliver(ctx context.Context) error {
	defer s.waiters.Release()
	if s.conf.Central.Deliverer != nil && !s.newBeforeOld(ctx) {
		var again sync.WaitGroup
		defer again.Wait()
		ctx, cancel := context.WithCancel(ctx) // the dispatcher may end by itself
		defer cancel()
		again.Go(func() {
			every := time.NewTicker(laneEvery)
			defer every.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-every.C:
				}
				if s.newBeforeOld(ctx) {
					return
				}
			}
		})
	}
	return s.dispatcher.Run(ctx)
}

const (
	laneEvery = 10 * time.Second // between two tries to configure the lane to central
	laneTime  = 5 * time.Second  // limits one try: the dispatcher waits for the first
)

// newBeforeOld lets a new alarm go before the backlog of an outage. It reports whether the store
// has recorded that.
func (s *Site) newBeforeOld(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	err := s.conf.Store.ConfigureLane(bounded, notify.Central, holdfast.LaneSettings{LiveFirst: true, Strict: s.conf.CentralStrict})
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "new messages go to central behind waiting ones, for now", slog.Any("error", err))
	}
	return err == nil
}

// Dispatcher returns the dispatcher that Run runs. Use it for further routes, and to pause and
// resume destinations.
func (s *Site) Dispatcher() *holdfast.Dispatcher { return s.dispatcher }

// Forwarder takes the site's notifications. It is nil if the Site is Alone.
func (s *Site) Forwarder() *Forwarder { return s.forwarder }

// Lanes returns the status of the destinations; empty before Run.
func (s *Site) Lanes() []holdfast.LaneStatus { return s.dispatcher.Status() }

// Unserved returns, by name, the destinations that have due messages and no deliverer here, as of
// the last check. Use it for the program's own health. The messages stay pending (SF-11). It does
// not query the database.
func (s *Site) Unserved() []string { return s.dispatcher.Unserved() }

// observer passes calls to OnAttempt, and everything to the configured Observer.
type observer struct {
	site *Site
	own  holdfast.Observer
}

func (o observer) ObserveAttempt(a holdfast.AttemptInfo) {
	if t := o.site.teller; t != nil {
		if call, ok := o.site.attemptOf(&a); ok {
			t.add(call)
		}
	}
	if o.own != nil {
		o.own.ObserveAttempt(a)
	}
}

func (o observer) ObserveExpired(n int) {
	if o.own != nil {
		o.own.ObserveExpired(n)
	}
}

func (o observer) ObserveReceived(r holdfast.ReceivedInfo) {
	if o.own != nil {
		o.own.ObserveReceived(r)
	}
}
