package link_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// caller makes requests by hand.
type caller struct {
	w          *world
	credential string
	client     *http.Client
}

func (w *world) caller(credential string) *caller {
	rt := &http.Transport{DialContext: w.connect}
	w.t.Cleanup(rt.CloseIdleConnections)
	return &caller{w, credential, &http.Client{Transport: rt}}
}

func (c *caller) post(path, contentType string, body io.Reader) (status int, header http.Header, text string) {
	c.w.t.Helper()
	req, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodPost, address+path, body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if c.credential != "" {
		req.Header.Set("Authorization", "Bearer "+c.credential)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

func credentialOf(t *testing.T, file string) string {
	t.Helper()
	id, err := link.ReadIdentity(file)
	if err != nil {
		t.Fatal(err)
	}
	return id.Credential
}

// Who has no credential reaches nothing; guesses are told to wait, and a good
// credential from the same address passes all the while.
func TestGuessesAreTurnedAway(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		good := w.caller(credentialOf(t, w.enroll("plant-7")))
		paths := []string{link.MessagesPath, link.PollPath, link.AnswersPath, link.EnrollPath}
		seen := map[int]int{}
		for n := range 200 {
			guess := bearer.New("hfs_")
			switch n % 4 {
			case 1:
				guess = ""
			case 2:
				guess = "hfs_short"
			case 3:
				guess = bearer.New("hf_")
			}
			status, header, text := w.caller(guess).post(paths[n%len(paths)], wire.MessageType, strings.NewReader(`{}`))
			seen[status]++
			if status == http.StatusTooManyRequests && header.Get("Retry-After") == "" {
				t.Errorf("got no Retry-After with %d", status)
			}
			if guess != "" && strings.Contains(text, guess) {
				t.Errorf("the answer repeats the guess: %s", text)
			}
		}
		if seen[http.StatusUnauthorized]+seen[http.StatusTooManyRequests] != 200 || seen[http.StatusTooManyRequests] < 150 {
			t.Errorf("got statuses %v, want 401, and 429 after some", seen)
		}
		if status, _, text := good.post(link.PollPath, wire.MessageType, strings.NewReader(`{}`)); status != http.StatusOK {
			t.Errorf("with the credential: got %d %s", status, text)
		}
	})
}

// What is too large, or no message at all, costs nobody anything.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		c := w.caller(credentialOf(t, w.enroll("plant-7")))
		huge := func(n int64) io.Reader { return io.LimitReader(zeros{}, n) }
		for name, r := range map[string]struct {
			path, kind string
			body       io.Reader
			want       int
		}{
			"huge batch":     {link.MessagesPath, wire.BatchType, huge(64 << 20), http.StatusRequestEntityTooLarge},
			"huge message":   {link.MessagesPath, wire.MessageType, huge(64 << 20), http.StatusRequestEntityTooLarge},
			"huge poll":      {link.PollPath, wire.MessageType, huge(64 << 20), http.StatusRequestEntityTooLarge},
			"huge answers":   {link.AnswersPath, wire.MessageType, huge(64 << 20), http.StatusRequestEntityTooLarge},
			"huge enrolment": {link.EnrollPath, wire.MessageType, huge(64 << 20), http.StatusRequestEntityTooLarge},
			"no batch":       {link.MessagesPath, wire.BatchType, strings.NewReader("999999999\n{}"), http.StatusBadRequest},
			"too many":       {link.MessagesPath, wire.BatchType, strings.NewReader(strings.Repeat("2\n{}\n", 501)), http.StatusRequestEntityTooLarge},
			"no poll":        {link.PollPath, wire.MessageType, strings.NewReader(`[`), http.StatusBadRequest},
			"foreign answer": {link.AnswersPath, wire.MessageType, strings.NewReader(`{"answers":[{"id":"x"}]}`), http.StatusOK},
		} {
			got, _, text := c.post(r.path, r.kind, r.body)
			if got != r.want && got != 0 {
				t.Errorf("%s: got %d %s, want %d", name, got, text, r.want)
			}
			if got >= http.StatusBadRequest && !strings.Contains(text, `"outcome":"permanent"`) {
				t.Errorf("%s: got %s, want that it is refused for good", name, text)
			}
		}
		// A bomb: central unpacks nothing.
		var bomb bytes.Buffer
		bomb.Write([]byte{0x28, 0xb5, 0x2f, 0xfd})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+link.MessagesPath, &bomb)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Encoding", "zstd")
		req.Header.Set("Authorization", "Bearer "+c.credential)
		resp, err := c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("compressed: got %d", resp.StatusCode)
		}
		if status, _, _ := c.post("/v1/link/else", wire.MessageType, nil); status != http.StatusNotFound {
			t.Errorf("another path: got %d", status)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A site cannot answer for another, nor end what another was asked.
func TestNoSiteAnswersForAnother(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		seven, eight := w.caller(credentialOf(t, w.enroll("plant-7"))), w.caller(credentialOf(t, w.enroll("plant-8")))
		asked := make(chan string, 1)
		go func() {
			body, err := w.central.Ask(t.Context(), "plant-7", link.Command{Verb: link.Show, Message: "m"})
			asked <- fmt.Sprint(string(body), err)
		}()
		for {
			_, _, text := seven.post(link.PollPath, wire.MessageType, strings.NewReader(`{"waitMs":1000}`))
			var got struct {
				Commands []link.Command `json:"commands"`
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if len(got.Commands) == 0 {
				// The ask came before the first poll, and was told so.
				go func() {
					body, err := w.central.Ask(t.Context(), "plant-7", link.Command{Verb: link.Show, Message: "m"})
					asked <- fmt.Sprint(string(body), err)
				}()
				<-asked
				continue
			}
			answer := `{"answers":[{"id":"` + got.Commands[0].ID + `","body":%q}]}`
			eight.post(link.AnswersPath, wire.MessageType, strings.NewReader(fmt.Sprintf(answer, "forged")))
			seven.post(link.AnswersPath, wire.MessageType, strings.NewReader(fmt.Sprintf(answer, "true")))
			break
		}
		if got := <-asked; got != `"true"<nil>` {
			t.Errorf("got %s", got)
		}
	})
}

// A site that sends its bodies a byte a minute, on as many connections as it
// likes, costs the others nothing.
func TestASlowSiteCostsTheOthersNothing(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		credential := credentialOf(t, w.enroll("plant-7"))
		ctx, cancel := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		for range 50 {
			conn, err := w.connect(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			slow.Go(func() { drip(ctx, conn, credential, "1", 5*time.Second) })
		}
		time.Sleep(time.Second)
		p := w.site("plant-8")
		p.run(true)
		began := time.Now()
		p.put(0, 500)
		p.delivered(30 * time.Second)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the other site's messages took %s", took)
		}
		p.stop()
		time.Sleep(time.Minute)
		cancel()
		slow.Wait()
	}, func(c *link.CentralConfig) { c.AtWork = 16 })
}

// drip sends a request whose body never comes to its end, a part at a time.
func drip(ctx context.Context, conn net.Conn, credential, part string, every time.Duration) {
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	head := "POST " + link.MessagesPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: " + wire.BatchType +
		"\r\nContent-Length: 1000000\r\nAuthorization: Bearer " + credential + "\r\n\r\n"
	if _, err := conn.Write([]byte(head)); err != nil {
		return
	}
	for ctx.Err() == nil {
		if _, err := conn.Write([]byte(part)); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// A site that holds the most room by bodies that come slowly is asked to come again a
// little later, with less at once; nothing is charged to a message for that. Another
// one gets in all the while.
func TestASlowSiteIsAskedToSendLess(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		credential := credentialOf(t, p.conf.File)
		conn, err := w.connect(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		slow.Go(func() { drip(ctx, conn, credential, strings.Repeat("1", 4400), 4*time.Second) })
		time.Sleep(3 * time.Second) // it is known as slow
		began := time.Now()
		status, header, text := w.caller(credential).post(link.MessagesPath, wire.MessageType, strings.NewReader(`{}`))
		wait, err := strconv.Atoi(header.Get("Retry-After"))
		if status != http.StatusRequestTimeout || err != nil || wait < 1 || wait > 5 || time.Since(began) > 0 {
			t.Errorf("got %d, to come again after %q, after %s; want 408 at once, and a few seconds", status, header.Get("Retry-After"), time.Since(began))
		}
		reply, err := new(wire.Decoder).DecodeReply([]byte(text))
		if err != nil || reply.Acknowledged || reply.Outcome != "not_started" || reply.Code != "busy" || reply.RetryAfter < time.Second || reply.RetryAfter > 5*time.Second || !strings.Contains(reply.Error, "send less") {
			t.Errorf("got %+v, %v", reply, err)
		}
		_, err = p.Deliver(t.Context(), message(1))
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.NotStarted || f.RetryAfter < time.Second || f.RetryAfter > 5*time.Second {
			t.Errorf("its link got %v, %s, wait %s", err, f.Outcome, f.RetryAfter)
		}
		if _, err := w.site("plant-8").Deliver(t.Context(), message(1)); err != nil {
			t.Errorf("another site: %v", err)
		}
		cancel()
		slow.Wait()
		w.eventually(time.Minute, "in again", func() bool {
			_, err := p.Deliver(t.Context(), message(1))
			return err == nil
		})
	}, func(c *link.CentralConfig) { c.AtWork = 1 })
}

// Most sites hold all the room that they get, by bodies that come just fast
// enough not to be cut off, again and again. The others get through, also those
// whose line is slow indeed.
func TestManySlowSitesCostTheOthersNothing(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		const hostile, honest = 20, 8
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range hostile {
			credential := credentialOf(t, w.enroll(fmt.Sprint("bad-", n)))
			for range 10 {
				all.Go(func() {
					for ctx.Err() == nil {
						conn, err := w.connect(ctx, "", "")
						if err != nil {
							return
						}
						drip(ctx, conn, credential, strings.Repeat("1", 4400), 4*time.Second)
						time.Sleep(time.Second)
					}
				})
			}
		}
		time.Sleep(10 * time.Second)
		var slow []*plant
		for n := range honest {
			l := &line{rate: 64000 / 8, w: w}
			p := w.site(fmt.Sprint("slow-", n), func(c *link.SiteConfig) { c.Dial = l.dial })
			p.backlog(0, 200)
			slow = append(slow, p)
		}
		quick := w.site("quick")
		began := time.Now()
		for _, p := range append(slow, quick) {
			p.run(true)
		}
		quick.backlog(0, 1000)
		quick.delivered(time.Minute)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the quick site's messages took %s", took)
		}
		for _, p := range slow {
			p.delivered(5 * time.Minute)
		}
		// 200 messages of 1250 bytes take half a minute.
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("the honest slow sites' messages took %s", took)
		}
		for _, p := range append(slow, quick) {
			p.stop()
		}
		cancel()
		all.Wait()
	})
}

// Many sites come back at once: all get through within two minutes, at most as
// many at work as central has room for (design: section 10).
func TestAHerdIsLetInAFewAtATime(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		const herd, atOnce, each = 500, 16, 3
		w.inbox.takes = 250 * time.Millisecond
		w.inbox.answer = func(*holdfast.Message) error { return nil }
		credentials := make([]string, herd)
		for n := range credentials {
			token, credential := bearer.New("hfe_"), bearer.New("hfs_")
			name := fmt.Sprint("plant-", n)
			if err := nodestore.New(w.db, nil).Sites.AddSite(t.Context(), name, bearer.Hash(token), ""); err != nil {
				t.Fatal(err)
			}
			if _, err := nodestore.New(w.db, nil).Sites.EnrollSite(t.Context(), bearer.Hash(token), bearer.Hash(credential)); err != nil {
				t.Fatal(err)
			}
			credentials[n] = credential
		}
		began := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var last time.Duration
		refused := 0
		for n, credential := range credentials {
			all.Go(func() {
				c, err := transport.NewClient(transport.ClientConfig{
					URL: address, Path: link.MessagesPath, Source: fmt.Sprint("plant-", n), Dial: w.connect,
					Credential: func() (string, error) { return credential, nil },
				})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for i := 0; i < each; {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					m := message(i)
					m.Kind = holdfast.Signal
					_, err := c.Deliver(ctx, m)
					cancel()
					if err == nil {
						i++
						continue
					}
					f := holdfast.AsFailure(err)
					if f.Outcome != holdfast.NotStarted {
						t.Errorf("site %d: got %v, want nothing but not started", n, err)
					}
					mu.Lock()
					refused++
					mu.Unlock()
					time.Sleep(max(f.RetryAfter, 100*time.Millisecond))
				}
				mu.Lock()
				last = max(last, time.Since(began))
				mu.Unlock()
			})
		}
		all.Wait()
		if w.inbox.most > atOnce {
			t.Errorf("%d small requests at once, want at most %d", w.inbox.most, atOnce)
		}
		if last > 2*time.Minute || refused == 0 {
			t.Errorf("the last site was through after %s, %d were asked to come again; want all within two minutes, some asked", last, refused)
		}
	}, func(c *link.CentralConfig) { c.AtWork = 1 })
}

// A request takes as much room as it is long: what central holds in memory has
// a bound, whatever sites send.
func TestLargeRequestsTakeMoreRoom(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		w.inbox.takes = time.Second
		var all sync.WaitGroup
		for n := range 12 {
			credential := credentialOf(t, w.enroll(fmt.Sprint("plant-", n)))
			all.Go(func() {
				c, err := transport.NewClient(transport.ClientConfig{
					URL: address, Path: link.MessagesPath, Source: fmt.Sprint("plant-", n), Dial: w.connect,
					Credential: func() (string, error) { return credential, nil },
				})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				m := message(n)
				m.Kind, m.Payload = holdfast.Signal, []byte(strconv.Quote(strings.Repeat("x", 900<<10)))
				if _, err := c.Deliver(t.Context(), m); err != nil {
					t.Errorf("site %d: %v", n, err)
				}
			})
		}
		all.Wait()
		if w.inbox.most > 4 || w.inbox.most < 2 {
			t.Errorf("%d large requests at once, want up to 4", w.inbox.most)
		}
	}, func(c *link.CentralConfig) { c.AtWork = 4 })
}

// One message may be larger than all the room: then it has all of it.
func TestAVeryLargeRequestTakesAllTheRoom(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		w.inbox.takes = time.Second
		var all sync.WaitGroup
		for n := range 4 {
			p := w.site(fmt.Sprint("plant-", n))
			all.Go(func() {
				m := message(n)
				m.Kind, m.Payload = holdfast.Signal, []byte(strconv.Quote(strings.Repeat("x", 5<<20)))
				if _, err := p.Deliver(t.Context(), m); err != nil {
					t.Errorf("site %d: %v", n, err)
				}
			})
		}
		all.Wait()
		if w.inbox.most != 1 {
			t.Errorf("%d requests of 5 MiB at once in room for 4 MiB, want one", w.inbox.most)
		}
	}, func(c *link.CentralConfig) { c.AtWork, c.MaxPayload = 4, 8<<20 })
}

// A body that came at once keeps its room until the work on it is done, however long
// the store takes: that is no fault of the site.
func TestASlowStoreMakesNoSiteSlow(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		w.inbox.takes = 3 * time.Second
		var all sync.WaitGroup
		for n := range 2 {
			p := w.site(fmt.Sprint("plant-", n))
			all.Go(func() {
				m := message(n)
				m.Payload = []byte(strconv.Quote(strings.Repeat("x", 900<<10)))
				if _, err := p.Deliver(t.Context(), m); err != nil {
					t.Errorf("site %d: %v", n, err)
				}
			})
		}
		all.Wait()
		if w.inbox.most != 1 {
			t.Errorf("%d requests of 900 KiB at work in room for 1 MiB, want one", w.inbox.most)
		}
	}, func(c *link.CentralConfig) { c.AtWork = 1 })
}

// F1-12, F1-20: what a hostile site says of its messages and of itself is
// bounded and shown as text, and its pages can be followed.
func TestAHostileSiteSaysNothingRaw(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		c := w.caller(credentialOf(t, w.enroll("plant-7")))
		row := func(seq int) string {
			return fmt.Sprintf(`{"seq":%d,"id":"a%s","source":"%[2]s","destination":"d%[2]s","endpoint":"e","kind":"Signal","orderingKey":%q,
				"headers":{"h%[2]s":"v%[2]s"},"state":"parked","reason":"r%[2]s","tries":-1,"failures":-2,"retry":{"first":-1,"attempts":-7},"size":-3,"lastError":"%[2]s",
				"history":[{"kind":2,"state":"parked","outcome":2,"code":"c%[2]s","actor":"x%[2]s","error":"%[2]s%[3]s","cycle":-1,"attempt":-2,"tookNs":-3}]}`,
				seq, `\u001b[2J\u202e`, strings.Repeat("k", 10000))
		}
		for name, is := range map[string]struct{ page, problem string }{
			"right":            {`{"records":[` + row(2) + `,` + row(1) + `],"next":"1"}`, ""},
			"more than asked":  {`{"records":[` + row(4) + `,` + row(3) + `,` + row(2) + `]}`, "more than the requested 2"},
			"no order":         {`{"records":[` + row(1) + `,` + row(1) + `]}`, "out of order"},
			"nothing, and on":  {`{"records":[],"next":"7"}`, "next page"},
			"a next that acts": {`{"records":[` + row(1) + `],"next":"\u001b[2J"}`, "next page"},
			"a long next":      {`{"records":[` + row(1) + `],"next":"` + strings.Repeat("n", 300) + `"}`, "next page"},
		} {
			page, err := w.answered(c, is.page)
			if is.problem != "" {
				if err == nil || !strings.Contains(err.Error(), is.problem) {
					t.Errorf("%s: got %v, want %q", name, err, is.problem)
				}
				continue
			}
			if err != nil {
				w.t.Fatal(err)
			}
			text := fmt.Sprintf("%+v", page)
			if strings.ContainsFunc(text, shown.Acts) || len(text) > 6000 {
				t.Errorf("%s: got %q of %d bytes", name, text[:min(len(text), 300)], len(text))
			}
			if r := page.Records[0]; r.Tries != 0 || r.Failures != 0 || r.Size != 0 || r.Message.Retry != nil {
				t.Errorf("%s: got %d tries, %d failures, size %d, retries of its own %v, want none below zero", name, r.Tries, r.Failures, r.Size, r.Message.Retry)
			}
			if e := page.Records[0].History[0]; e.Cycle != 0 || e.Attempt != 0 || e.Took != 0 || len(e.Error) > 1000+len("…") {
				t.Errorf("%s: got cycle %d, attempt %d, %s, an error of %d bytes; want none below zero, and a bound", name, e.Cycle, e.Attempt, e.Took, len(e.Error))
			}
		}
		infos, err := w.central.Sites(w.t.Context())
		if err != nil || len(infos) != 1 || infos[0].Health().Depth != 0 || infos[0].Health().Oldest != 0 {
			t.Errorf("got %+v, %v, want a health that is not below zero", infos, err)
		}
	})
}

// answered asks the site for two messages and lets it answer so.
func (w *world) answered(c *caller, body string) (page holdfast.Page, err error) {
	w.t.Helper()
	var wg sync.WaitGroup
	const poll = `{"version":"1","depth":-5,"parked":-6,"oldestNs":-7,"waitMs":10000}`
	wg.Go(func() {
		var got struct {
			Commands []struct {
				ID string `json:"id"`
			} `json:"commands"`
		}
		_, _, text := c.post(link.PollPath, "application/json", strings.NewReader(poll))
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Commands) != 1 {
			w.t.Errorf("got %q, %v, want a command", text, err)
			return
		}
		c.post(link.AnswersPath, "application/json", strings.NewReader(fmt.Sprintf(`{"answers":[{"id":%q,"body":%s}]}`, got.Commands[0].ID, body)))
	})
	w.eventually(10*time.Second, "a poll", func() bool {
		page, err = w.central.Outbox("plant-7").List(w.t.Context(), holdfast.Query{Limit: 2})
		_, away := errors.AsType[*link.ErrNotReachable](err)
		return !away
	})
	wg.Wait()
	return page, err
}
