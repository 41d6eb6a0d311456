package email_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// count is how many lines of a connection began so, this one included.
type count map[string]int

func (c count) of(connection int, line, prefix string) int {
	key := fmt.Sprint(connection, prefix)
	if strings.HasPrefix(line, prefix) {
		c[key]++
	}
	return c[key]
}

// F1-60: whatever a server says to a mail over a connection that was used
// before, it is asked once more over a new one, and nothing is judged: not the
// notification, not the sender, not the channel.
func TestWhatIsSaidToAUsedConnectionIsNotJudged(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{
		"451 4.7.0 too many messages", "452 4.5.3 too many messages", "421 4.7.0 enough", "450 later", "550 5.7.1 too many messages", "554 5.7.1 no",
		"530 5.7.0 authenticate first", "552 5.3.4 too big", "503 5.5.1 in the middle of another mail", "550 5.7.60 not yours", hangUp,
	} {
		racetest.Bubble(t, func(t *testing.T) {
			mails := count{}
			s := &server{extensions: []string{"PIPELINING"}, answer: func(n int, line string) string {
				if mails.of(n, line, "MAIL") > 3 && strings.HasPrefix(line, "MAIL") {
					return refusal
				}
				return ""
			}}
			m := open(t, with(object{"connections": 1}), s)
			for range 10 {
				if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
					t.Errorf("%s: %s", refusal, got)
				}
			}
			if got, _, dials := s.seen(); len(got) != 10 || dials != 4 || len(s.got("EHLO")) != dials {
				t.Errorf("%s: %d mails over %d connections, %d times EHLO", refusal, len(got), dials, len(s.got("EHLO")))
			}
			m.Close()
			s.ending.Wait()
		})
	}
}

// F1-60: the other connection is a new one, though there are others that rest;
// and never are there more than the cap.
func TestTheOtherConnectionIsNew(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		stale := false
		s := &server{answer: func(n int, line string) string {
			switch {
			case n <= 3 && stale && strings.HasPrefix(line, "MAIL"):
				return "451 4.3.0 I have forgotten you"
			case line == "." && !stale:
				time.Sleep(time.Second)
			}
			return ""
		}}
		m := open(t, with(object{"connections": 3}), s)
		ends := make(chan string)
		for range 3 {
			go func() { ends <- told(m.Send(t.Context(), example(), people("a@x.test"), nil)) }()
		}
		for range 3 {
			if got := <-ends; got != "accepted" {
				t.Error(got)
			}
		}
		stale = true
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" || s.dials != 4 || len(s.got("MAIL")) != 5 || len(s.got("QUIT")) != 1 || s.peak > 3 {
			t.Errorf("%s after %d dials, %d at once, %d times MAIL, %d goodbyes", got, s.dials, s.peak, len(s.got("MAIL")), len(s.got("QUIT")))
		}
		m.Close()
		s.ending.Wait()
	})
}

// F1-60: what a new connection is told counts, and the connection is not kept: the
// next attempt has another.
func TestWhatIsSaidToANewConnectionCounts(t *testing.T) {
	t.Parallel()
	for refusal, want := range map[string]string{
		"451 4.7.0 too many messages": "waiting; unreachable 451 4.7.0", "421 4.3.2 closing": "waiting; unreachable 421 4.3.2", "550 5.7.1 no": "waiting; permanent 550 5.7.1",
	} {
		racetest.Bubble(t, func(t *testing.T) {
			s := &server{answer: on(map[string]string{"MAIL": refusal})}
			m := open(t, with(nil), s)
			for i := range 3 {
				if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != want || s.dials != i+1 || s.open != 0 {
					t.Errorf("%s after %d dials, %d open", got, s.dials, s.open)
				}
			}
			m.Close()
			s.ending.Wait()
		})
	}
}

// F1-60, F1-61: a mail that a server of few words refuses for all is followed by
// RSET, and by no EHLO; the next one has the same connection.
func TestNoEHLOBetweenMails(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{greeting: "220", answer: func(_ int, line string) string {
			switch {
			case strings.HasPrefix(line, "RCPT TO:<gone"):
				return "550"
			case line == "DATA":
				return "354"
			}
			return "250"
		}}
		m := open(t, with(nil), s)
		for range 10 {
			if got := told(m.Send(t.Context(), example(), people("gone@x.test"), nil)); got != "refused 550" {
				t.Error(got)
			}
			if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
				t.Error(got)
			}
		}
		if s.dials != 1 || len(s.got("EHLO")) != 1 || len(s.got("RSET")) != 10 {
			t.Errorf("%d connections, %d times EHLO, %d times RSET", s.dials, len(s.got("EHLO")), len(s.got("RSET")))
		}
		m.Close()
		s.ending.Wait()
	})
}

// F1-62: where a server says two things about one recipient, nobody knows which
// is whose: nobody is refused by another's words.
func TestNobodyIsRefusedByAnothersWords(t *testing.T) {
	t.Parallel()
	for name, extensions := range map[string][]string{"one by one": nil, "pipelined": {"PIPELINING"}} {
		for _, twice := range []string{"250 2.1.5 fine\n550 5.1.1 somebody is unknown", "550 5.1.1 unknown\n550 5.1.1 really"} {
			racetest.Bubble(t, func(t *testing.T) {
				s := &server{extensions: extensions, answer: func(n int, line string) string {
					if n == 1 && strings.HasPrefix(line, "RCPT TO:<a") {
						return twice
					}
					return ""
				}}
				m := open(t, with(nil), s)
				if got := told(m.Send(t.Context(), example(), three(), nil)); got != "waiting; waiting; waiting; transient connection_lost" {
					t.Errorf("%s: %s", name, got)
				}
				if got := told(m.Send(t.Context(), example(), three(), nil)); got != "accepted; accepted; accepted" || s.dials != 2 {
					t.Errorf("%s: %s after %d dials", name, got, s.dials)
				}
				m.Close()
				s.ending.Wait()
			})
		}
	}
}

// F1-63: a server that ends the connection after so many unknown recipients, as
// Postfix does after 20, is asked about the others over another one, in the same
// attempt.
func TestAnAttemptGoesOnAfterManyRefusals(t *testing.T) {
	t.Parallel()
	var dead, good []string
	for i := range 70 {
		dead = append(dead, fmt.Sprintf("dead%d@x.test", i))
	}
	for i := range 5 {
		good = append(good, fmt.Sprintf("good%d@x.test", i))
	}
	for name, to := range map[string][]string{"the good ones last": slices.Concat(dead, good), "the good ones first": slices.Concat(good, dead)} {
		for _, extensions := range [][]string{nil, {"PIPELINING"}} {
			racetest.Bubble(t, func(t *testing.T) {
				refused := count{}
				s := &server{extensions: extensions, answer: func(n int, line string) string {
					if !strings.HasPrefix(line, "RCPT TO:<dead") {
						return ""
					}
					if refused.of(n, line, "RCPT") > 20 {
						return "421 4.7.0 mail.test Error: too many errors"
					}
					return "550 5.1.1 User unknown"
				}}
				parts := 0
				m := open(t, with(nil), s)
				r := m.Send(t.Context(), example(), people(to...), func(notify.Part) bool {
					parts++
					return true
				})
				m.Close()
				s.ending.Wait()
				got := told(r)
				if strings.Count(got, "accepted") != 5 || strings.Count(got, "refused 550 5.1.1") != 70 || r.Fault != nil || parts == 0 {
					t.Errorf("%s: %s", name, got)
				}
				if mails, _, _ := s.seen(); len(mails) != 1 {
					t.Errorf("%s: %d mails", name, len(mails))
				}
			})
		}
	}
}

// F1-63: without anybody whose end is known, the attempt ends: it makes no loop.
func TestAnAttemptWithoutProgressEnds(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: on(map[string]string{"RCPT TO:<a": "550 5.1.1 no", "RCPT TO:<b": "421 4.7.0 enough"})}
		r := send(t, with(nil), s, three())
		if got := told(r); got != "refused 550 5.1.1; waiting; waiting; transient 421 4.7.0" || s.dials != 2 {
			t.Errorf("%s after %d dials", got, s.dials)
		}
	})
}

// F1-64: a server that drops mails whose Message-ID it knows has all of a list,
// whatever becomes of its parts.
func TestAServerThatDropsKnownIDsHasThemAll(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: func(n int, line string) string {
			switch {
			case n == 1 && strings.HasPrefix(line, "RCPT TO:<r7@"): // put off, and taken the next time
				return "450 4.7.1 later"
			case n == 2 && line == ".":
				return hangUp
			}
			return ""
		}}
		var to []string
		for i := range 150 {
			to = append(to, fmt.Sprintf("r%d@x.test", i))
		}
		m := open(t, with(object{"recipientsPerMail": 100, "perConnection": 1}), s)
		for _, want := range []int{99, 51} {
			r := m.Send(t.Context(), example(), people(to...), nil)
			to = slices.DeleteFunc(slices.Clone(to), func(a string) bool {
				return r.To[slices.Index(to, a)].Outcome == notify.Accepted
			})
			if got := strings.Count(told(r), "accepted"); got != want {
				t.Fatalf("%d of %d accepted: %s", got, want, told(r))
			}
		}
		m.Close()
		s.ending.Wait()
		mails, _, _ := s.seen()
		ids := map[string]int{}
		for _, mail := range mails {
			ids[parse(t, mail).header.Get("Message-Id")]++
		}
		// The first hundred but one; fifty twice, as their answer was lost: with the
		// one left from before their set is another.
		if len(mails) != 3 || len(ids) != 3 {
			t.Errorf("%d mails have %d ids: %v", len(mails), len(ids), ids)
		}
	})
}

// F1-70: one mailbox is named once, however it is written, and each of its forms
// has the same end; as a part, too.
func TestOneMailboxGetsOneMail(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: on(map[string]string{"RCPT TO:<gone": "550 5.1.1 no"})}
		m := open(t, with(object{"recipientsPerMail": 1}), s)
		to := people("jane@bücher.example", "gone@x.test", "Jane@xn--bcher-kva.example", `"jane"@BÜCHER.example`, "GONE@X.test", "b@x.test")
		told := map[int]notify.Result{}
		r := m.Send(t.Context(), example(), to, func(p notify.Part) bool {
			for i, d := range p.Ends {
				told[i] = d.Outcome
			}
			return true
		})
		m.Close()
		s.ending.Wait()
		for i, want := range []notify.Result{notify.Accepted, notify.Refused, notify.Accepted, notify.Accepted, notify.Refused, notify.Accepted} {
			if r.To[i].Outcome != want || i < 5 && told[i] != want {
				t.Errorf("%s: %v, told %v, want %v", to[i].Address, r.To[i].Outcome, told[i], want)
			}
		}
		if got := s.got("RCPT"); len(got) != 3 {
			t.Errorf("named were %q", got)
		}
	})
}

// F1-70: where the way to the server and its port do not fit, people read which
// setting decides.
func TestTheSettingOfThePortIsNamed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "starttls", "opportunistic"} {
		racetest.Bubble(t, func(t *testing.T) {
			r := send(t, with(object{"tls": mode}), &server{greeting: silent}, people("a@x.test"))
			if r.Fault == nil || r.Fault.Code != "connect_timeout" || !strings.Contains(r.Fault.Error(), "setting tls may have to be implicit") {
				t.Errorf("%s: got %v", mode, r.Fault)
			}
		})
	}
	for name, c := range map[string]struct{ mode, greeting string }{"a lost connection": {"none", hangUp}, "TLS from the first byte on": {"implicit", silent}} {
		racetest.Bubble(t, func(t *testing.T) {
			r := send(t, with(object{"tls": c.mode}), &server{greeting: c.greeting}, people("a@x.test"))
			if r.Fault == nil || strings.Contains(r.Fault.Error(), "setting tls") {
				t.Errorf("%s: got %v, want no word about the setting, which is not at fault", name, r.Fault)
			}
		})
	}
	s := &server{}
	m := openDial(t, with(object{"tls": "implicit", "port": s.listen(t)}), nil)
	defer m.Close()
	if r := m.Send(t.Context(), example(), people("a@x.test"), nil); r.Fault == nil || r.Fault.Code != "tls_failed" || !strings.Contains(r.Fault.Error(), "setting tls may have to be starttls") {
		t.Errorf("got %v", r.Fault)
	}
}

// F1-64: where the answer to some was lost, and another was put off, all of them
// get a mail that the server does not know yet: rather twice than not at all.
func TestWhoWasPutOffGetsAnotherID(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: func(n int, line string) string {
			switch {
			case n == 1 && strings.HasPrefix(line, "RCPT TO:<b"):
				return "450 4.7.1 later"
			case n == 1 && line == ".":
				return hangUp
			}
			return ""
		}}
		m := open(t, with(nil), s)
		for _, want := range []string{"deferred answer_lost maybe; deferred 450 4.7.1", "accepted; accepted"} {
			if got := told(m.Send(t.Context(), example(), people("a@x.test", "b@x.test"), nil)); got != want {
				t.Error(got)
			}
		}
		m.Close()
		s.ending.Wait()
		mails, _, _ := s.seen()
		if len(mails) != 2 || parse(t, mails[0]).header.Get("Message-Id") == parse(t, mails[1]).header.Get("Message-Id") {
			t.Errorf("%d mails with one id", len(mails))
		}
	})
}
