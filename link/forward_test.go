package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// SF-19: the site's own name, whoever wrote the row; the row is cleared on an
// ack, which comes after central's commit (NO-01).
func TestForwardedMessagesAreOfTheSite(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.put(0, 40)
		m := message(40)
		m.Source = "somebody"
		if _, err := p.db.Enqueue(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		p.run(true)
		defer p.stop()
		p.delivered(time.Minute)
		got := w.kept()
		if len(got) != 41 {
			t.Fatalf("central has %d messages, want 41", len(got))
		}
		for _, k := range got {
			if k.Message.Source != "plant-7" {
				t.Errorf("got source %q", k.Message.Source)
			}
		}
		if w.inbox.batches > 30 {
			t.Errorf("%d requests for 41 messages: no batches", w.inbox.batches)
		}
		if s := p.Status(); !s.Connected || s.Site != "plant-7" || s.Incarnation == "" {
			t.Errorf("got %+v", s)
		}
	})
}

// SF-19, SF-20: what central says of a message parks it; any other answer is
// transient.
func TestOnlyCentralParks(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		w.inbox.answer = func(m *holdfast.Message) error {
			switch m.ID {
			case "m-0":
				return holdfast.ErrConflict
			case "m-1":
				return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "x", Reason: holdfast.ReasonUndecodable}
			case "m-2":
				return &holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonNoEndpoint}
			case "m-3":
				return &holdfast.Failure{Outcome: holdfast.Permanent}
			case "m-4":
				return errors.New("storage")
			}
			return nil
		}
		for n, want := range []holdfast.Failure{
			{Outcome: holdfast.Permanent, Code: "conflict", Reason: holdfast.ReasonConflict},
			{Outcome: holdfast.Permanent, Code: "undecodable", Reason: holdfast.ReasonUndecodable},
			{Outcome: holdfast.Transient},
			{Outcome: holdfast.Transient},
			{Outcome: holdfast.Transient},
		} {
			_, err := p.Deliver(t.Context(), message(n))
			got := holdfast.AsFailure(err)
			if err == nil || got.Outcome != want.Outcome || got.Reason != want.Reason || want.Code != "" && got.Code != want.Code {
				t.Errorf("message %d: got %s %q %q (%v), want %s %q", n, got.Outcome, got.Code, got.Reason, err, want.Outcome, want.Code)
			}
		}
		m := message(5)
		m.Payload = []byte("no JSON")
		_, err := p.Deliver(t.Context(), m)
		if f := holdfast.AsFailure(err); f.Outcome != holdfast.Permanent || f.Code != "undecodable" {
			t.Errorf("got %v, want it undecodable", err)
		}
		m.Payload = []byte(strconv.Quote(strings.Repeat("x", 1<<20)))
		_, err = p.Deliver(t.Context(), m)
		if f := holdfast.AsFailure(err); f.Outcome != holdfast.Permanent || f.Reason != holdfast.ReasonTooLarge {
			t.Errorf("got %v, want it too large", err)
		}
		for _, status := range []int{400, 404, 410, 413, 422} {
			p.Close() // its connections lead to central itself
			w.proxy(func(r *http.Request) int { return status })
			_, err = p.Deliver(t.Context(), message(6))
			if f := holdfast.AsFailure(err); f.Outcome != holdfast.Transient && f.Outcome != holdfast.LaneFault || f.Reason != "" {
				t.Errorf("a proxy's %d: got %s %q (%v), want no word about the message", status, f.Outcome, f.Reason, err)
			}
		}
	})
}

// SF-19, SF-20: of what central refuses for good, only what is about the message itself
// parks it at the site; a reason that the site's program does not know is none.
func TestWhichRefusalsOfCentralPark(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.Close()
		w.away()
		var says wire.Reply
		w.serve((*http.Server).Serve, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = rw.Write(says.AppendTo(nil))
		}))
		for n, c := range []struct {
			code   string
			reason holdfast.Reason
			want   holdfast.Failure
		}{
			{"x", holdfast.ReasonConflict, holdfast.Failure{Outcome: holdfast.Permanent, Code: "x", Reason: holdfast.ReasonConflict}},
			{"x", holdfast.ReasonTooLarge, holdfast.Failure{Outcome: holdfast.Permanent, Code: "x", Reason: holdfast.ReasonTooLarge}},
			{"x", holdfast.ReasonTooOld, holdfast.Failure{Outcome: holdfast.Permanent, Code: "x", Reason: holdfast.ReasonTooOld}},
			{"x", holdfast.ReasonUndecodable, holdfast.Failure{Outcome: holdfast.Permanent, Code: "undecodable", Reason: holdfast.ReasonUndecodable}},
			{transport.CodeWrongSource, holdfast.ReasonPermanent, holdfast.Failure{Outcome: holdfast.Permanent, Code: transport.CodeWrongSource, Reason: holdfast.ReasonPermanent}},
			{"list_not_allowed", holdfast.ReasonPermanent, holdfast.Failure{Outcome: holdfast.Permanent, Code: "list_not_allowed", Reason: holdfast.ReasonPermanent}},
			{"x", holdfast.ReasonPermanent, holdfast.Failure{Outcome: holdfast.Transient, Code: "x"}},
			{"x", holdfast.ReasonNoEndpoint, holdfast.Failure{Outcome: holdfast.Transient, Code: "x"}},
			{"x", holdfast.ReasonRejected, holdfast.Failure{Outcome: holdfast.Transient, Code: "x"}},
			{"x", "of a newer program", holdfast.Failure{Outcome: holdfast.Transient, Code: "x"}},
			{"x", "", holdfast.Failure{Outcome: holdfast.Transient, Code: "x"}},
			{"http_422", holdfast.ReasonConflict, holdfast.Failure{Outcome: holdfast.Transient, Code: "http_422"}},
		} {
			says = wire.Reply{Outcome: holdfast.Permanent.String(), Code: c.code, Reason: c.reason, Error: "no"}
			_, err := p.Deliver(t.Context(), message(n))
			if got := holdfast.AsFailure(err); err == nil || got.Outcome != c.want.Outcome || got.Code != c.want.Code || got.Reason != c.want.Reason {
				t.Errorf("%s, %q: got %s %q %q (%v), want %s %q %q", c.code, c.reason, got.Outcome, got.Code, got.Reason, err, c.want.Outcome, c.want.Code, c.want.Reason)
			}
		}
	})
}

// A proxy between the two may take less than central: batches get smaller, and
// what alone is too large for it waits.
func TestAProxysLimitParksNothing(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		w.proxy(func(r *http.Request) int {
			if r.ContentLength > 10000 {
				return http.StatusRequestEntityTooLarge
			}
			return 0
		})
		p.backlog(0, 50)
		large := message(50)
		large.Payload = []byte(strconv.Quote(strings.Repeat("x", 20000)))
		if _, err := p.db.Enqueue(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		p.run(true)
		defer p.stop()
		w.eventually(5*time.Minute, "all others delivered", func() bool { return p.db.Counts().Pending == 1 })
		time.Sleep(10 * time.Minute)
		p.is("m-50", holdfast.Pending)
		w.proxy(func(*http.Request) int { return 0 })
		p.delivered(10 * time.Minute)
		p.is("m-50", holdfast.Delivered)
	})
}

// NO-20: the answer is lost at each of many places, and each message arrives
// once.
func TestLostAnswersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		cut := transporttest.Cutter{Under: w.direct, Plan: func(n int) transporttest.Limit {
			switch {
			case n > 60:
				return transporttest.Whole()
			case n%2 == 0:
				return transporttest.Limit{Written: -1, Read: n * 17}
			}
			return transporttest.Limit{Written: n * 61, Read: -1}
		}}
		w.via(cut.Dial)
		p.put(0, 100)
		p.run(true)
		defer p.stop()
		p.delivered(4 * time.Hour)
		if got := len(w.kept()); got != 100 {
			t.Errorf("central has %d messages, want 100", got)
		}
	})
}

// A site can never write as another; the rows of its own in the same batch are
// taken.
func TestNoSiteWritesAsAnother(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		id, err := link.ReadIdentity(w.enroll("plant-7"))
		if err != nil {
			t.Fatal(err)
		}
		w.enroll("plant-8")
		c, err := transport.NewClient(transport.ClientConfig{
			URL: address, Path: link.MessagesPath, Dial: w.connect, Credential: func() (string, error) { return id.Credential, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		own, others := message(1), message(2)
		own.Source, own.Kind, others.Source, others.Kind = "plant-7", holdfast.Signal, "plant-8", holdfast.Signal
		for range 2 { // alone, and in a batch
			results := c.DeliverBatch(t.Context(), []holdfast.Message{own, others})
			f := holdfast.AsFailure(results[1].Err)
			if results[0].Err != nil || f.Outcome != holdfast.Permanent || f.Code != transport.CodeWrongSource {
				t.Errorf("got %v and %v, want only the other's refused for good", results[0].Err, results[1].Err)
			}
		}
		if got := w.kept(); len(got) != 1 || got[0].Message.Source != "plant-7" {
			t.Errorf("central has %v", got)
		}
	})
}

// A row longer than a batch goes alone; one longer than central takes parks
// (edge 41, 47).
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		large := func(n, size int) holdfast.Message {
			m := message(n)
			m.Payload = make([]byte, size)
			for i := range m.Payload {
				m.Payload[i] = '1'
			}
			return m
		}
		_, err := p.db.Enqueue(t.Context(), large(0, 1<<20), large(1, 700<<10), message(2), large(3, 1<<20+1), large(4, 700<<10), message(5))
		if err != nil {
			t.Fatal(err)
		}
		p.run(true)
		defer p.stop()
		p.delivered(time.Minute)
		if r := p.is("m-3", holdfast.Parked); r.Reason != holdfast.ReasonTooLarge {
			t.Errorf("got reason %s", r.Reason)
		}
		if got := len(w.kept()); got != 5 {
			t.Errorf("central has %d messages, want 5", got)
		}
	})
}

// blackHole takes everything and answers nothing.
func blackHole(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := there.Read(b); err != nil {
				return
			}
		}
	}()
	return here, nil
}

// Edge 40, 17: a link that says it is up and gets nothing through is found, torn
// down and shown, and goes on by itself.
func TestAStalledLinkIsTornDown(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7", func(c *link.SiteConfig) {
			c.Overdue, c.Timeout = c.Outbox.(*sqlite.DB).Overdue, 10*time.Minute // which would end a request much later
		})
		p.run(true)
		defer p.stop()
		p.put(0, 1)
		p.delivered(time.Minute)
		w.via(blackHole)
		w.away()
		p.put(1, 3)
		began := time.Now()
		w.eventually(70*time.Second, "stalled", func() bool { return !p.Status().Stalled.IsZero() })
		if took := time.Since(began); took < 50*time.Second {
			t.Errorf("stalled after %s", took)
		}
		w.via(nil)
		w.start()
		p.delivered(time.Minute)
		w.eventually(time.Minute, "well", func() bool { s := p.Status(); return s.Stalled.IsZero() && s.Connected })
	})
}

// Nothing is due: nothing stalls, whether the store tells what is overdue or not.
func TestAnIdleLinkIsNoStalledOne(t *testing.T) {
	t.Parallel()
	for name, overdue := range map[string]func(db *sqlite.DB) func(context.Context) (map[string]time.Duration, error){
		"counts": func(*sqlite.DB) func(context.Context) (map[string]time.Duration, error) { return nil },
		"ages":   func(db *sqlite.DB) func(context.Context) (map[string]time.Duration, error) { return db.Overdue },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				t := w.t
				p := w.site("plant-7", func(c *link.SiteConfig) { c.Overdue = overdue(c.Outbox.(*sqlite.DB)) })
				p.run(true)
				defer p.stop()
				for range 20 {
					time.Sleep(30 * time.Second)
					if s := p.Status(); !s.Connected || !s.Stalled.IsZero() {
						t.Fatalf("got %+v", s)
					}
				}
			})
		})
	}
}

// However long central was away, a site comes back to it within half a minute.
func TestASiteTriesEachHalfMinute(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		var tries []time.Time // one after the other: nothing is forwarded
		w.via(func(context.Context, string, string) (net.Conn, error) {
			tries = append(tries, time.Now())
			return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("nobody listens")}
		})
		p.run(false)
		time.Sleep(3 * time.Hour)
		p.stop()
		for n := 1; n < len(tries); n++ {
			if wait := tries[n].Sub(tries[n-1]); wait > 31*time.Second || wait < time.Second/2 {
				t.Errorf("try %d came %s after the one before, want half a minute at most", n, wait)
			}
		}
		if len(tries) < 360 || len(tries) > 3600 {
			t.Errorf("%d tries in three hours", len(tries))
		}
	})
}

// Edge 38, SF-19: a long outage, and everything arrives soon after it, without
// anybody's help. What waits is on disk: it takes no memory, however much it is.
// It has the process to itself, whose heap it measures.
func TestALongOutageEndsByItself(t *testing.T) {
	racetest.Without(t, "days of tries, whose heap is measured")
	const waiting = 20_000 // of 1 KB, at the end
	for name, days := range map[string]int{"four days": 4, "thirty days": 30} {
		t.Run(name, func(t *testing.T) {
			each := waiting / days
			within(t, func(w *world) {
				t := w.t
				p := w.site("plant-7")
				p.most = 15 * time.Minute // a test need not try every half minute for a month
				p.run(true)
				defer p.stop()
				w.away()
				var held []uint64
				for day := range days {
					p.fill(each*day, each*day+each)
					time.Sleep(24 * time.Hour)
					held = append(held, heap())
				}
				t.Logf("the heap at the end of each day: %d KiB", held)
				if early, late := held[0], held[days-1]; late > early+moreHeap {
					t.Errorf("the heap grew from %d to %d KiB while %d messages came to wait, want at most %d KiB more", early, late, each*(days-1), moreHeap)
				}
				w.start()
				p.delivered(40 * time.Minute)
				if got := len(w.kept()); got != each*days {
					t.Errorf("central has %d messages, want %d", got, each*days)
				}
				p.is("m-0", holdfast.Delivered)
			})
		})
	}
}

// moreHeap is far more than the heap wavers by, and far less than the messages
// of an outage are, in KiB.
const moreHeap = 2 << 10

// heap is what is in use of it, in KiB. The cache of SQLite is not of it, and has
// a bound of its own.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 10
}

// fill enqueues messages of 1 KB.
func (p *plant) fill(from, to int) {
	p.w.t.Helper()
	text := strings.Repeat("x", 1000)
	for n := from; n < to; {
		var ms []holdfast.Message
		for ; n < to && len(ms) < 500; n++ {
			m := message(n)
			m.Payload = fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, text)
			ms = append(ms, m)
		}
		if _, err := p.db.Enqueue(p.w.t.Context(), ms...); err != nil {
			p.w.t.Fatal(err)
		}
	}
}
