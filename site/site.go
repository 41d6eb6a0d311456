package site

import (
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
)

// Store is what a site keeps its messages in; sqlite.DB and postgres.DB are one.
type Store interface {
	holdfast.Store
	holdfast.Outbox
	holdfast.Lanes
	holdfast.Sweepable
}

// Destination is where calls go: a foreign system, or a database.
type Destination struct {
	// Category says what is called. A program may have its own beside those of
	// the library, each with deliverers of its own (SF-02).
	Category holdfast.Category
	// Route is the way. The zero fields of its Retry are DefaultRetry's. Without
	// a Deliverer the calls stay pending until a later start has one (SF-11).
	Route holdfast.Route
	TTL   time.Duration // of a call that gives none; zero: it never expires
}

// Config is what a Site is made of.
type Config struct {
	Store Store
	// Name of the site, the source of all that it sends; empty: notify.UnknownSite.
	Name         string
	Destinations map[string]Destination
	// Central takes notifications; package link has its deliverer. Without one
	// they stay pending. Zero fields of its Retry are DefaultRetry's. A Deliverer that
	// has the method Held, as link.Site does, is asked how long what it has forwarded
	// is kept: one that wraps it must have it too.
	Central holdfast.Route
	// CentralStrict: a parked notification stops those of its ordering key.
	CentralStrict bool
	// Ask asks central how a notification stands that has left this site. What
	// central does not know is ErrNotFound. Nil: nobody can be asked.
	Ask func(ctx context.Context, id holdfast.ID) (notify.Standing, error)
	// Alone says that there is no central: Notify is ErrState, and a destination may have
	// the name of the way there. A node is so that brings notifications to people itself.
	Alone bool

	Poll     time.Duration     // the longest time between two looks for due messages; zero: 1 s (SF-06)
	Grace    time.Duration     // for work in hand at a stop; zero: 10 s (SF-10)
	Observer holdfast.Observer // nil: none
	// OnAttempt is told of every attempt of a call whose outcome has been recorded,
	// never of notifications (SF-33). It must not block. Nil: nobody is told.
	OnAttempt func(a Attempt)
	// OnParked and OnExpired are told of what parked or expired, notifications too,
	// as those of a Dispatcher are: durably, and again where they fail.
	OnParked, OnExpired func(ctx context.Context, e holdfast.Ended) error

	// Retention is for how long the store keeps what has ended: all of it, also what the
	// program has put there itself. An id of a call is new again once its row is gone. Nil:
	// DefaultRetention; &holdfast.Retention{} keeps all for ever.
	Retention *holdfast.Retention
	Sweep     time.Duration // between purges; zero: 5 min
	// Inbox is swept besides, and keeps ids for InboxRetention; zero: DefaultInboxRetention.
	// Nil: it is not, and nor is one within Store.
	Inbox          holdfast.InboxLog
	InboxRetention time.Duration

	Waiters  *holdfast.Waiters  // who waits for first attempts, besides those who call; nil: nobody
	Progress *holdfast.Progress // the watch of the store, run by whoever made it; nil: one of its own
	Logger   *slog.Logger       // nil: none
}

// DefaultRetention is how long a site keeps what has ended: a week, and what is
// parked until a person decides.
func DefaultRetention() holdfast.Retention {
	const week = 7 * 24 * time.Hour
	return holdfast.Retention{Delivered: week, Expired: week, Discarded: week}
}

// DefaultRetry is how a site tries again: every 30 s, fifty retries after the
// first attempt (SF-06, SF-07, SF-32). An attempt that found nobody is not
// counted.
func DefaultRetry() holdfast.RetryPolicy {
	return holdfast.RetryPolicy{First: 30 * time.Second, Max: 30 * time.Second, Jitter: -1, Factor: 1, Attempts: 51}
}

// Site takes what its program calls, and delivers it. Its methods may be called
// concurrently, also before Run and after it: then what they take waits.
type Site struct {
	conf       Config
	log        *slog.Logger
	waiters    *holdfast.Waiters
	dispatcher *holdfast.Dispatcher
	sweeper    *holdfast.Sweeper
	submitter  *holdfast.Submitter
	forwarder  *Forwarder // nil: it is alone
}

// holder is a way to central that says how long what it has forwarded is kept, so that
// it can be sent again to a central that has lost it.
type holder interface {
	Held() map[string]time.Duration
}

// New checks the configuration and makes a site of it. The error holds every
// fault.
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
		Store: conf.Store, Lanes: conf.Store, Routes: routes, Poll: conf.Poll, Grace: conf.Grace, Observer: observer{s, conf.Observer}, Waiters: s.waiters, Progress: conf.Progress, Logger: s.log,
	}
	keep := DefaultRetention()
	if conf.Retention != nil {
		keep = *conf.Retention
	}
	s.sweeper = &holdfast.Sweeper{
		Outbox: conf.Store, Inbox: conf.Inbox, Retention: keep, InboxRetention: conf.InboxRetention, Every: conf.Sweep, Observer: conf.Observer, Logger: s.log,
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
			bad("destinations."+name, "", "has the name of the way to central; use another name, or the field Central")
		case d.Category == "":
			bad("destinations."+name+".category", "", "is empty; say what is called there, such as "+string(holdfast.CategoryExternalSystem))
		case d.Category == holdfast.CategoryNotification:
			bad("destinations."+name+".category", string(d.Category), "is that of the way to central; set the field Central")
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	return nil
}

// Run delivers, expires and purges until ctx ends; then what is in hand may end for
// the grace, and nobody is kept waiting. Its error is that of the Dispatcher or of the
// Sweeper, and says which. It runs once.
func (s *Site) Run(ctx context.Context) error {
	return run.All(ctx, run.Part{Name: "sweeper", Run: s.sweeper.Run}, run.Part{Name: "dispatcher", Run: s.deliver})
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
	laneTime  = 5 * time.Second  // bounds one of them: the dispatcher waits for the first
)

// newBeforeOld lets an alarm go before what an outage has left, and says whether the store
// knows.
func (s *Site) newBeforeOld(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	err := s.conf.Store.ConfigureLane(bounded, notify.Central, holdfast.LaneSettings{LiveFirst: true, Strict: s.conf.CentralStrict})
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "what is new goes to central behind what waits, for now", slog.Any("error", err))
	}
	return err == nil
}

// Dispatcher delivers what the site's store holds: for further routes, and for people who
// pause and resume destinations. Run runs it.
func (s *Site) Dispatcher() *holdfast.Dispatcher { return s.dispatcher }

// Forwarder takes the site's notifications; nil: it is Alone.
func (s *Site) Forwarder() *Forwarder { return s.forwarder }

// Lanes tells how the destinations fare; none before Run.
func (s *Site) Lanes() []holdfast.LaneStatus { return s.dispatcher.Status() }

// Unserved are the destinations that have due messages and no deliverer here, by
// name, as of the last look; for a program's own health. Their rows stay pending
// (SF-11). It asks no database.
func (s *Site) Unserved() []string { return s.dispatcher.Unserved() }

// observer tells the program of calls, and then its own observer.
type observer struct {
	site *Site
	own  holdfast.Observer
}

func (o observer) ObserveAttempt(a holdfast.AttemptInfo) {
	if tell := o.site.conf.OnAttempt; tell != nil {
		if call, ok := o.site.attemptOf(&a); ok {
			defer tell(call) // whichever of the two panics, the other is told
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
