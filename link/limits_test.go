package link_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/transport"
)

// noted is a notification of so many bytes for a list.
func noted(t *testing.T, n int, list string, size int) holdfast.Message {
	t.Helper()
	payload, err := notify.Encode(notify.Notification{List: list, Subject: "s", Body: strings.Repeat("x", size)})
	if err != nil {
		t.Fatal(err)
	}
	m := message(n)
	m.Payload = payload
	return m
}

// F1-16: a credential that was stolen writes to no list but the site's, and not
// more than the site may; what is above waits at the site, and goes on by itself.
func TestASiteSendsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refused := map[string]int{}
	within(t, func(w *world) {
		t := w.t
		time.Sleep(22 * time.Hour) // of the day
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		send := func(ms ...holdfast.Message) {
			t.Helper()
			if _, err := p.db.Enqueue(t.Context(), ms...); err != nil {
				t.Fatal(err)
			}
		}
		send(noted(t, 1, "ops", 10), noted(t, 2, "press", 10))
		w.eventually(time.Minute, "both have ended", func() bool { return p.db.Counts().Pending == 0 })
		p.is("m-1", holdfast.Delivered)
		if r := p.is("m-2", holdfast.Parked); !strings.Contains(r.LastError, "site plant-7 may not notify list press") {
			t.Errorf("got %q", r.LastError)
		}

		began := time.Now()
		var many []holdfast.Message
		for n := range 150 { // 50 at once, and then five in a second
			many = append(many, noted(t, 100+n, "ops", 10))
		}
		send(many...)
		p.delivered(time.Minute)
		if took := time.Since(began); took < 19*time.Second || took > 40*time.Second {
			t.Errorf("150 took %s, want about 20 s", took)
		}

		send(noted(t, 900, "ops", 800<<10))
		w.eventually(time.Minute, "it has ended", func() bool { return p.db.Counts().Pending == 0 })
		p.is("m-900", holdfast.Parked)
		var large []holdfast.Message
		for n := range 3 {
			large = append(large, noted(t, 1000+n, "ops", 300<<10))
		}
		send(large...)
		time.Sleep(time.Hour)
		if n := p.db.Counts().Pending; n != 1 {
			t.Errorf("%d wait for the next day, want 1", n)
		}
		status := ""
		for n := range 3 {
			if r, err := p.db.Get(t.Context(), message(1000+n).ID); err == nil && r.State != holdfast.Delivered {
				status = fmt.Sprint(r.Failures)
			}
		}
		if status != "0" {
			t.Errorf("waiting has cost %s retries", status)
		}
		p.delivered(2 * time.Hour)

		other := w.site("plant-8") // which has no limits
		other.run(true)
		defer other.stop()
		if _, err := other.db.Enqueue(t.Context(), noted(t, 1, "press", 10)); err != nil {
			t.Fatal(err)
		}
		other.delivered(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for _, code := range []string{"list_not_allowed", "too_many", "too_much_today"} {
			if refused[code] == 0 {
				t.Errorf("no metric counts %s: %v", code, refused)
			}
		}
	}, func(c *link.CentralConfig) {
		c.MaxPayload = 4 << 20
		c.Receiver = &accepting{}
		c.Refused = func(r transport.Refused) {
			mu.Lock()
			defer mu.Unlock()
			refused[r.Code]++
		}
		c.Limits = func(site string) link.Limits {
			if site == "plant-8" {
				return link.Limits{}
			}
			return link.Limits{Lists: []string{"ops"}, Rate: 5, Daily: 700 << 10}
		}
	})
}

// accepting takes everything, after as many failures.
type accepting struct {
	fails int64
	asked atomic.Int64
	known bool // it had all of it already
}

func (a *accepting) Receive(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	if a.asked.Add(1) <= a.fails {
		return holdfast.Receipt{}, &holdfast.Failure{Code: "disk_full", Err: holdfast.ErrDiskFull}
	}
	return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Duplicate: a.known}, nil
}

// F1-16: what central could not take, or had already, uses up nothing of a
// site's day or rate.
func TestOnlyWhatIsTakenCounts(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]*accepting{"not taken": {fails: 30}, "known": {known: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				p := w.site("plant-7")
				for n := range 30 { // three times the day, and more than the burst
					_, err := p.Deliver(w.t.Context(), noted(w.t, n, "ops", 70<<10))
					if err != nil && holdfast.AsFailure(err).Code != "disk_full" {
						w.t.Fatalf("message %d: %v", n, err)
					}
				}
				if _, err := p.Deliver(w.t.Context(), noted(w.t, 99, "ops", 70<<10)); err != nil {
					w.t.Errorf("then nothing is taken: %v", err)
				}
			}, func(c *link.CentralConfig) {
				c.Receiver = to
				c.Limits = func(string) link.Limits { return link.Limits{Rate: 1, Daily: 700 << 10} }
			})
		})
	}
}

// F1-16: no limit is zero, so that the smallest one shuts a site out: what it sends
// waits for no day on which it would be taken.
func TestTheSmallestLimitTakesNothing(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		_, err := w.site("plant-7").Deliver(w.t.Context(), message(1))
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.Permanent || f.Reason != holdfast.ReasonTooLarge {
			w.t.Errorf("got %v, want it refused for good", err)
		}
	}, func(c *link.CentralConfig) {
		c.Limits = func(string) link.Limits { return link.Limits{Daily: 1} }
	})
}

// F1-16: what is over the day's bytes waits for the next day of UTC, and is told how
// long that is; what is over the rate, for a second. The day may be used to its last
// byte. Who reads the log hears of it once a minute.
func TestHowLongALimitPutsOff(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var mu sync.Mutex
	var refused []transport.Refused
	within(t, func(w *world) {
		t := w.t
		credential := credentialOf(t, w.enroll("plant-7"))
		c, err := transport.NewClient(transport.ClientConfig{
			URL: address, Path: link.MessagesPath, Source: "plant-7", Dial: w.connect, RetryAfter: 25 * time.Hour,
			Credential: func() (string, error) { return credential, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		n := 0
		send := func(bytes int, code string, wait time.Duration) {
			t.Helper()
			n++
			m := message(n)
			m.Kind, m.Payload = holdfast.Signal, []byte(strconv.Quote(strings.Repeat("x", bytes-2)))
			_, err := c.Deliver(t.Context(), m)
			if f := holdfast.AsFailure(err); code == "" && err != nil || code != "" && (err == nil || f.Outcome != holdfast.NotStarted || f.Code != code || f.RetryAfter != wait) {
				t.Errorf("message %d of %d bytes: got %v, wait %s; want %q, wait %s", n, bytes, err, f.RetryAfter, code, wait)
			}
		}
		time.Sleep(22 * time.Hour) // of the day
		send(600, "", 0)
		send(401, "too_much_today", 2*time.Hour)
		send(400, "", 0)
		time.Sleep(30 * time.Minute)
		send(2, "too_much_today", 90*time.Minute)
		send(2, "too_much_today", 90*time.Minute)
		time.Sleep(time.Minute)
		send(2, "too_much_today", 89*time.Minute)
		time.Sleep(89 * time.Minute)
		for range 20 { // ten seconds' messages at once
			send(2, "", 0)
		}
		send(2, "too_many", time.Second)
		time.Sleep(time.Second)
		send(2, "", 0)
		send(2, "", 0)
		send(2, "too_many", time.Second)
		send(960, "too_much_today", 24*time.Hour-time.Second)
		time.Sleep(time.Hour)
		for range 20 { // and no more after an hour
			send(2, "", 0)
		}
		send(2, "too_many", time.Second)

		var told []string
		for line := range strings.Lines(log.String()) {
			if _, code, ok := strings.Cut(line, `level=WARN msg="site over its limits" site=plant-7 code=`); ok {
				told = append(told, strings.TrimSpace(code))
			}
		}
		if want := []string{"too_much_today", "too_much_today", "too_much_today", "too_many", "too_many"}; !slices.Equal(told, want) {
			t.Errorf("the log tells of %q, want %q", told, want)
		}
		mu.Lock()
		defer mu.Unlock()
		var quiet []bool
		for _, r := range refused {
			if r.Source == "plant-7" {
				quiet = append(quiet, r.Suppressed)
			}
		}
		if want := []bool{false, false, true, false, false, true, true, false}; !slices.Equal(quiet, want) {
			t.Errorf("suppressed %v, want %v", quiet, want)
		}
	}, func(c *link.CentralConfig) {
		c.Receiver, c.Logger = &accepting{}, slog.New(slog.NewTextHandler(&log, nil))
		c.Limits = func(string) link.Limits { return link.Limits{Rate: 2, Daily: 1000} }
		c.Refused = func(r transport.Refused) {
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, r)
		}
	})
}
