package notify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

// deaf answers the first round after so long, whatever its context says, and
// all others at once.
func (s *script) deaf(late time.Duration, first func(context.Context, []notify.Recipient) notify.Report) {
	begun := false
	s.become(func(ctx context.Context, to []notify.Recipient) notify.Report {
		s.mu.Lock()
		again := begun
		begun = true
		s.mu.Unlock()
		if again {
			return accept(to)
		}
		time.Sleep(late)
		return first(ctx, to)
	})
}

func (s *script) counts() (made, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made, s.closed
}

// A channel that is ended or changed leaves nothing claimed: an answer that comes
// later counts as one that came in time, however late it is. Nobody is asked twice
// meanwhile, and after it only who has not accepted.
func TestAnAnswerThatComesAfterTheChannelWasEndedCounts(t *testing.T) {
	t.Parallel()
	ends := map[string]func(t *testing.T, o *office){
		"resumed": func(t *testing.T, o *office) {
			t.Helper()
			if err := o.channels.Resume(t.Context(), "mail"); err != nil {
				t.Error(err)
			}
		},
		"changed": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Workers: 2})
		},
		"disabled for a while": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Disabled: true})
			time.Sleep(5 * time.Second)
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		},
	}
	for how, end := range ends {
		for name, late := range map[string]time.Duration{"late": 70 * time.Second, "very late": 50 * time.Minute} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				racetest.Bubble(t, func(t *testing.T) {
					o := open(t)
					defer o.close(t)
					o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
					o.list(t, "ops", mailTo("a@x", "b@x")...)
					o.mail.deaf(late, by(map[string]notify.Delivery{"b@x": greylisted}))
					stop := o.run(t)
					defer stop()
					o.sent(t, "ops", "n")
					time.Sleep(time.Second)
					end(t, o)
					time.Sleep(late - 10*time.Second)
					if r := o.one(t, "n"); r.Status != notify.Pending || len(o.mail.asked()) != 1 {
						t.Errorf("while nobody knows it is %s, asked %v", r.Status, o.mail.asked())
					}
					time.Sleep(15 * time.Second)
					r := o.one(t, "n")
					if r.Status != notify.Retrying || r.Failures != 1 {
						t.Errorf("after the late answer it is %s with %d failures, want retrying with 1", r.Status, r.Failures)
					}
					if diff := cmp.Diff(map[string]notify.Result{"a@x": notify.Accepted, "b@x": notify.Deferred}, results(r)); diff != "" {
						t.Errorf("recipients (-want +got):\n%s", diff)
					}
					time.Sleep(70 * time.Second)
					if r := o.one(t, "n"); r.Status != notify.Delivered {
						t.Errorf("a minute later it is %s", r.Status)
					}
					if diff := cmp.Diff([][]string{{"a@x", "b@x"}, {"b@x"}}, o.mail.asked()); diff != "" {
						t.Errorf("asked (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// An adapter may wait LastAnswer for what it has sent, and tell of it in time.
func TestADispatcherWaitsForTheLastAnswer(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(func(ctx context.Context, to []notify.Recipient) notify.Report {
			<-ctx.Done()
			time.Sleep(notify.LastAnswer + time.Second)
			return accept(to)
		})
		stop := o.run(t)
		o.sent(t, "ops", "n")
		time.Sleep(time.Second)
		stop() // fails if an attempt did not return
		if r := o.one(t, "n"); r.Status != notify.Delivered || o.log.has("did not return") {
			t.Errorf("it is %s", r.Status)
		}
	})
}

// While a busy channel ends, the others are changed, made and resumed as ever,
// and who resumes it has the answer at once.
func TestAChannelThatEndsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.list(t, "busy", mailTo("a@x")...)
		o.list(t, "new", notify.Recipient{Channel: "new"})
		o.mail.deaf(45*time.Second, func(_ context.Context, to []notify.Recipient) notify.Report { return accept(to) })
		stop := o.run(t)
		defer stop()
		o.sent(t, "busy", "n")
		time.Sleep(2 * time.Second)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Workers: 2})
		time.Sleep(2 * time.Second) // it ends now, and takes its time
		began := time.Now()
		for _, name := range []string{"mail", "room", "mail"} {
			if err := o.channels.Resume(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("three resumes took %s", took)
		}
		o.channel(t, notify.Channel{Name: "new", Kind: "chat"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat", Workers: 7})
		time.Sleep(2 * time.Second)
		o.sent(t, "new", "m")
		time.Sleep(time.Second)
		if r := o.one(t, "m"); r.Status != notify.Delivered {
			t.Errorf("over a channel that was made meanwhile it is %s", r.Status)
		}
		if s := o.channels.Status()["room"]; s.Limit != 5 { // as a lane of seven begins
			t.Errorf("a channel that was changed meanwhile is not served as it is now: %+v", s)
		}
		if o.one(t, "n").Status == notify.Delivered {
			t.Error("the busy channel had ended: this tests nothing")
		}
		time.Sleep(time.Minute)
		if s, ok := o.channels.Status()["mail"]; !ok || o.one(t, "n").Status != notify.Delivered {
			t.Errorf("the busy channel is not served when it has ended: %+v", s)
		}
	})
}

// The adapter of a channel that is gone is closed, also where it was only
// tried.
func TestTheAdapterOfAChannelThatIsGoneIsClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, o *office){
		"deleted": func(t *testing.T, o *office) {
			t.Helper()
			if err := nodestore.New(o.db, nil).Directory.DeleteChannel(t.Context(), "mail", o.book(t).Channels["mail"].Version, ""); err != nil {
				t.Fatal(err)
			}
		},
		"disabled": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Disabled: true})
			if _, err := o.channels.Test(t.Context(), "mail", "a@x"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo("a@x")...)
				o.mail.deaf(20*time.Second, func(_ context.Context, to []notify.Recipient) notify.Report { return accept(to) })
				stop := o.run(t)
				defer stop()
				o.sent(t, "ops", "n")
				time.Sleep(1500 * time.Millisecond) // between two looks at the directory
				end(t, o)
				time.Sleep(2 * time.Second)
				if made, closed := o.mail.counts(); made != 1 || closed != 0 {
					t.Errorf("while it is used %d were made and %d closed, want 1 and none", made, closed)
				}
				time.Sleep(30 * time.Second)
				if made, closed := o.mail.counts(); made != 1 || closed != 1 {
					t.Errorf("%d were made and %d closed, want 1 and 1", made, closed)
				}
			})
		})
	}
}

// looks counts how often somebody looks for due messages.
type looks struct {
	holdfast.Store
	n atomic.Int64
}

func (l *looks) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	l.n.Add(1)
	return l.Store.Claim(ctx, slots)
}

// NO-15: how often a channel looks for what is due is a setting.
func TestTheIntervalOfLooksForDueNotificationsIsASetting(t *testing.T) {
	t.Parallel()
	for poll, want := range map[time.Duration]int64{0: 600, 10 * time.Second: 60} {
		racetest.Bubble(t, func(t *testing.T) {
			o := open(t)
			defer o.close(t)
			store := &looks{Store: o.db}
			o.attach(store)
			o.channels.Poll = poll
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
			stop := o.run(t)
			defer stop()
			time.Sleep(10 * time.Minute)
			if n := store.n.Load(); n < want-4 || n > want+4 {
				t.Errorf("with a poll of %s they looked %d times in 10 minutes, want %d", poll, n, want)
			}
		})
	}
}

// purges counts how often somebody looks for what can be purged.
type purges struct {
	notify.Store
	n atomic.Int64
}

func (p *purges) PurgeNotifications(context.Context, time.Duration) (int, bool, error) {
	p.n.Add(1)
	return 0, false, nil
}

// NO-15: how often notifications are purged is a setting.
func TestTheIntervalOfPurgesIsASetting(t *testing.T) {
	t.Parallel()
	for every, want := range map[time.Duration]int64{0: 24, 6 * time.Hour: 4} {
		racetest.Bubble(t, func(t *testing.T) {
			store := &purges{}
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour-time.Second)
			defer cancel()
			if err := (&notify.Sweeper{Store: store, Every: every}).Run(ctx); err != nil || store.n.Load() != want {
				t.Errorf("every %s: %d looks in a day, %v; want %d", every, store.n.Load(), err, want)
			}
		})
	}
}

// purged is a store that has so many notifications to purge, page by page, or
// fails.
type purged struct {
	notify.Store
	pages []int
	err   error
}

func (p *purged) PurgeNotifications(context.Context, time.Duration) (int, bool, error) {
	if len(p.pages) == 0 {
		return 0, false, p.err
	}
	n := p.pages[0]
	p.pages = p.pages[1:]
	return n, len(p.pages) > 0, nil
}

// NO-21: a purge is an Info with its count, one that failed an Error, and
// nothing to purge is no line (F1-99).
func TestLogLinesOfPurges(t *testing.T) {
	t.Parallel()
	for want, store := range map[string]*purged{
		"INFO notifications purged count=12":        {pages: []int{5, 7}},
		"ERROR notifications not purged error=disk": {err: errors.New("disk")},
		"": {},
	} {
		racetest.Bubble(t, func(t *testing.T) {
			log := &logged{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := (&notify.Sweeper{Store: store, Logger: slog.New(log)}).Run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(log.lines, "\n"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// A channel whose deliveries all hang goes on once a person has resumed it, or disabled
// and enabled it, as the way out of that: they are cut off after the grace, and leave
// their slots where they do not heed it. Nothing is sent twice meanwhile.
func TestAChangedChannelIsNotHeldUpByWhatHangs(t *testing.T) {
	t.Parallel()
	mail := notify.Channel{Name: "mail", Kind: "mail", Workers: 1}
	off, other := mail, mail
	off.Disabled, other.Retry = true, notify.Retry{Attempts: 3, Interval: time.Second}
	changes := map[string]func(t *testing.T, o *office){
		"resumed": func(t *testing.T, o *office) {
			t.Helper()
			if err := o.channels.Resume(t.Context(), "mail"); err != nil {
				t.Error(err)
			}
		},
		"disabled and enabled": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, off)
			<-time.After(5 * time.Second)
			o.channel(t, mail)
		},
		"changed": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, other)
		},
	}
	for name, change := range changes {
		for heeds, within := range map[bool]time.Duration{true: 15 * time.Second, false: time.Minute} {
			t.Run(fmt.Sprintf("%s, heeds %v", name, heeds), func(t *testing.T) {
				t.Parallel()
				racetest.Bubble(t, func(t *testing.T) {
					o := open(t)
					defer o.close(t)
					o.channel(t, mail)
					o.list(t, "ops", mailTo("a@x")...)
					o.mail.become(func(ctx context.Context, to []notify.Recipient) notify.Report {
						if !heeds {
							time.Sleep(20 * time.Minute)
							return accept(to)
						}
						<-ctx.Done()
						return notify.Report{Fault: &holdfast.Failure{Err: ctx.Err()}}
					})
					stop := o.run(t)
					defer stop()
					o.sent(t, "ops", "n")
					time.Sleep(2 * time.Second)
					o.mail.become(func(_ context.Context, to []notify.Recipient) notify.Report { return accept(to) })
					o.sent(t, "ops", "m")
					change(t, o)
					time.Sleep(within)
					if r := o.one(t, "m"); r.Status != notify.Delivered {
						t.Errorf("what comes after it is %s: %+v", r.Status, o.channels.Status()["mail"])
					}
					if r := o.one(t, "n"); (r.Status == notify.Delivered) != heeds || r.Failures > 0 {
						t.Errorf("what hung is %s, with %d failures", r.Status, r.Failures)
					}
					time.Sleep(20 * time.Minute)
					asked := 2
					if heeds {
						asked = 3
					}
					if r := o.one(t, "n"); r.Status != notify.Delivered || len(o.mail.asked()) != asked {
						t.Errorf("at last it is %s, and %d were asked, want %d", r.Status, len(o.mail.asked()), asked)
					}
					if s := o.channels.Status()["mail"]; s.InFlight+s.Hanging > 0 {
						t.Errorf("something is left: %+v", s)
					}
				})
			})
		}
	}
}

// A channel that is disabled in the middle of a flood, or deleted, sends no longer than the grace.
func TestAChannelThatEndsSendsNoMore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, o *office){
		"disabled": func(t *testing.T, o *office) {
			t.Helper()
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Workers: 1, Disabled: true})
		},
		"deleted": func(t *testing.T, o *office) {
			t.Helper()
			if err := nodestore.New(o.db, nil).Directory.DeleteChannel(t.Context(), "mail", o.book(t).Channels["mail"].Version, ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Workers: 1})
				o.list(t, "ops", mailTo("a@x")...)
				var sent atomic.Int32
				o.mail.become(func(ctx context.Context, to []notify.Recipient) notify.Report {
					for range 1000 {
						select {
						case <-time.After(time.Second):
							sent.Add(1)
						case <-ctx.Done():
							return notify.Report{Fault: &holdfast.Failure{Err: context.Cause(ctx)}}
						}
					}
					return accept(to)
				})
				stop := o.run(t)
				defer stop()
				o.sent(t, "ops", "n")
				time.Sleep(2 * time.Second)
				before := sent.Load()
				end(t, o)
				time.Sleep(20 * time.Minute)
				if n := sent.Load() - before; n < 5 || n > 13 {
					t.Errorf("sent %d afterwards, one a second", n)
				}
				if r := o.one(t, "n"); r.Status != notify.Retrying || r.Failures > 0 {
					t.Errorf("it is %s, with %d failures", r.Status, r.Failures)
				}
			})
		})
	}
}

// An adapter that takes long to say goodbye holds up neither its channel nor who asks
// how the channels fare.
func TestAnAdapterThatEndsSlowlyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(2 * time.Second)
		o.mail.mu.Lock()
		o.mail.closes = time.Minute
		o.mail.mu.Unlock()
		resumed := make(chan error)
		go func() { resumed <- o.channels.Resume(t.Context(), "mail") }()
		time.Sleep(time.Second)
		began := time.Now()
		s, served := o.channels.Status()["mail"]
		if took := time.Since(began); took > 0 || !served {
			t.Errorf("the status took %s: %+v", took, s)
		}
		o.sent(t, "ops", "m")
		time.Sleep(2 * time.Second)
		if r := o.one(t, "m"); r.Status != notify.Delivered {
			t.Errorf("while the adapter of before says goodbye, the next is %s", r.Status)
		}
		if err := <-resumed; err != nil {
			t.Error(err)
		}
		o.mail.mu.Lock()
		o.mail.closes = 0
		o.mail.mu.Unlock()
	})
}
