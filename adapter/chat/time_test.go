package chat_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// pipes is a listener whose connections are in memory, so that time in a test
// can be virtual.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	close(p) // http.Server calls it once
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// inMemory serves on pipes and returns what dials them.
func inMemory(t *testing.T, h http.HandlerFunc) dialer {
	t.Helper()
	p := make(pipes)
	srv := &http.Server{Handler: h}
	ended := make(chan error)
	go func() { ended <- srv.Serve(p) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// dialer opens the connections of a channel under test; nil: by TCP.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

const inside = "http://127.0.0.1:80"

// H8: the receiver is slower than the time-out, but has it. The retry carries
// the same id, by which it can tell, and a time of its own.
func TestASlowWebhookSeesTheSameIDAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var ids, times []string
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			ids, times = append(ids, r.Header.Get("Webhook-Id")), append(times, r.Header.Get("Webhook-Timestamp"))
			if len(ids) == 1 {
				<-r.Context().Done()
			}
		})
		r := open(t, "webhook", own("webhook", inside), keep(inside), dial)
		began := time.Now()
		if got := verdict(r.Send(t.Context(), example(), to(""), nil), 0); got != "deferred, maybe, timeout" {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := verdict(r.Send(t.Context(), example(), to(""), nil), 0); got != "accepted" {
			t.Errorf("got %q", got)
		}
		if len(ids) != 2 || ids[0] != ids[1] || times[0] == times[1] {
			t.Errorf("got ids %q at %q", ids, times)
		}
	})
}

// NO-12: a stop does not cut off what may have been taken; what has not left
// does not leave.
func TestAStopWaitsForWhatHasLeft(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		asked := atomic.Int64{}
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if asked.Add(1) == 4 { // as many as there are at once
				stop()
			}
			time.Sleep(20 * time.Second)
			answer(200, "ok")(w, r)
		})
		addresses := strings.Fields(strings.Repeat("t ", 9))
		for i := range addresses {
			addresses[i] += string(rune('a' + i))
		}
		report := open(t, "ntfy", own("ntfy", inside), keep(inside), dial).Send(ctx, example(), to(addresses...), nil)
		accepted, not := 0, 0
		for i := range addresses {
			switch verdict(report, i) {
			case "accepted":
				accepted++
			case "not_started, canceled":
				not++
			}
		}
		if accepted != 4 || asked.Load() != 4 || not != 5 {
			t.Errorf("%d were asked, %d accepted, %d not started: %+v", asked.Load(), accepted, not, report)
		}
	})
}

// A deadline of the caller's stops what has not left as its stop does.
func TestAStopBeforeAnythingHasLeft(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r := open(t, "slack", own("slack", inside), keep(inside), dial)
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if got := verdict(r.Send(ctx, example(), to(""), nil), 0); got != "not_started, canceled" {
			t.Errorf("stopped: got %q", got)
		}
		if got := verdict(r.Send(ctx, example(), to(""), nil), 0); got != "not_started, canceled" {
			t.Errorf("stopped before: got %q", got)
		}
		ctx, stop = context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if got := verdict(r.Send(ctx, example(), to(""), nil), 0); got != "unreachable, connect_timeout" {
			t.Errorf("a deadline: got %q", got)
		}
		if got := verdict(r.Send(t.Context(), example(), to(""), nil), 0); got != "unreachable, connect_timeout" {
			t.Errorf("the channel's time-out: got %q", got)
		}
	})
}

// One that is silent does not hold up the others.
func TestASilentTargetDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		began := time.Now()
		late := atomic.Int64{}
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"topic":"silent"`) {
				<-r.Context().Done()
				return
			}
			if time.Since(began) > time.Second {
				late.Add(1)
			}
			answer(200, "{}")(w, r)
		})
		report := open(t, "ntfy", own("ntfy", inside), keep(inside), dial).Send(t.Context(), example(), to("silent", "a", "b", "c", "d", "e"), nil)
		for i := range report.To {
			want := "accepted"
			if i == 0 {
				want = "deferred, maybe, timeout"
			}
			if got := verdict(report, i); got != want {
				t.Errorf("%d: got %q, want %q", i, got, want)
			}
		}
		if late.Load() != 0 || report.Fault != nil {
			t.Errorf("%d of the others were asked late; %v", late.Load(), report.Fault)
		}
	})
}

// What the answer's beginning says counts: one that goes on for ever, or is
// too long, neither fills the memory nor holds up the channel for longer than
// its time-out.
func TestAnAnswerIsReadToItsBeginning(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		written := 0
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(map[string]int{"/hooks/long": 503}[r.URL.Path] + map[bool]int{true: 200}[r.URL.Path != "/hooks/long"])
			if r.URL.Path == "/hooks/slow" {
				_, _ = io.WriteString(w, "o")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			for range 2 << 10 { // 2 MB
				n, err := io.WriteString(w, strings.Repeat("x", 1<<10))
				if written += n; err != nil {
					return
				}
			}
		})
		s := keep(inside)
		for name, c := range map[string]struct {
			kind, path, want string
			took             time.Duration
		}{
			"a long refusal":       {"webhook", "long", "deferred, http_503", 0},
			"a long acceptance":    {"teams", "x", "accepted", 0},
			"a slow acceptance":    {"webhook", "slow", "accepted", 30 * time.Second},
			"a slow word of Slack": {"slack", "slow", "deferred, maybe, unexpected_answer", 30 * time.Second},
		} {
			s.put("url", inside+"/hooks/"+c.path)
			written = 0
			began := time.Now()
			report := open(t, c.kind, own(c.kind, inside), s, dial).Send(t.Context(), example(), to(""), nil)
			if got := verdict(report, 0); got != c.want || time.Since(began) != c.took || len(report.To[0].Text) > 600 {
				t.Errorf("%s: got %q after %s, with %d bytes of text", name, got, time.Since(began), len(report.To[0].Text))
			}
			synctest.Wait()
			if written > 64<<10 {
				t.Errorf("%s: %d bytes were taken", name, written)
			}
		}
	})
}

// E34: the connection breaks after all has been sent.
func TestALostAnswerMayHaveDelivered(t *testing.T) {
	t.Parallel()
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	report := open(t, "gotify", own("gotify", at), keep(at), nil).Send(t.Context(), example(), to(""), nil)
	if d := report.To[0]; d.Outcome != notify.Deferred || !d.Maybe || d.Code != "connection_lost" {
		t.Errorf("got %+v", d)
	}
}
