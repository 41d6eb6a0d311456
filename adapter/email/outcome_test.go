package email_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

const auth = "AUTH PLAIN LOGIN XOAUTH2 OAUTHBEARER"

func plain() object {
	return object{"allowInsecureAuth": true, "auth": object{"mechanism": "plain", "user": "u", "password": named("smtp")}}
}

// Each row of the table of reference A4 that one server can bring about (NO-09).
func TestRepliesAreClassified(t *testing.T) {
	t.Parallel()
	const all = "waiting; waiting; waiting; "
	for name, c := range map[string]struct {
		settings object
		server   *server
		want     string
	}{
		"greeting 421":           {nil, &server{greeting: "421 4.3.2 later"}, all + "unreachable 421 4.3.2"},
		"greeting 450":           {nil, &server{greeting: "450 busy, try again in 2 minutes"}, all + "unreachable 450 in 2m0s"},
		"greeting 554":           {nil, &server{greeting: "554 no"}, all + "unreachable 554"}, // the first time
		"greeting of IMAP, E38":  {nil, &server{greeting: "* OK IMAP4rev1 ready"}, all + "lane_fault not_smtp"},
		"end after dial, E37":    {nil, &server{greeting: hangUp}, all + "unreachable connection_lost"},
		"silence, E32":           {nil, &server{greeting: silent}, all + "unreachable connect_timeout"},
		"end after EHLO, E37":    {nil, &server{answer: on(map[string]string{"EHLO": hangUp})}, all + "unreachable connection_lost"},
		"EHLO 421":               {nil, &server{answer: on(map[string]string{"EHLO": "421 later"})}, all + "unreachable 421"},
		"EHLO 550":               {nil, &server{answer: on(map[string]string{"EHLO": "550 5.7.1 who?"})}, all + "lane_fault 550 5.7.1"},
		"EHLO unknown":           {nil, &server{answer: on(map[string]string{"EHLO": "500 what?"})}, "accepted; accepted; accepted"},
		"endless greeting":       {nil, &server{greeting: strings.Repeat("220-la\n", 20000) + "220 la"}, all + "lane_fault not_smtp"},
		"endless EHLO":           {nil, &server{answer: on(map[string]string{"EHLO": strings.Repeat("250-LA\n", 20000) + "250 la"})}, all + "lane_fault not_smtp"},
		"two greetings":          {nil, &server{greeting: "220 a\n250 b"}, all + "lane_fault not_smtp"},
		"no STARTTLS, E21":       {object{"tls": "starttls"}, &server{}, all + "lane_fault starttls_missing"},
		"STARTTLS 454":           {object{"tls": "starttls"}, &server{extensions: []string{"STARTTLS"}, answer: on(map[string]string{"STARTTLS": "454 4.7.0 no"})}, all + "unreachable 454 4.7.0"},
		"STARTTLS 501":           {object{"tls": "starttls"}, &server{extensions: []string{"STARTTLS"}, answer: on(map[string]string{"STARTTLS": "501 no"})}, all + "lane_fault 501"},
		"STARTTLS silent, E32":   {object{"tls": "starttls"}, &server{extensions: []string{"STARTTLS"}, answer: on(map[string]string{"STARTTLS": silent})}, all + "unreachable connect_timeout"},
		"hangs in TLS, E32":      {object{"tls": "implicit"}, &server{greeting: silent}, all + "unreachable connect_timeout"},
		"AUTH 454":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "454 4.7.0 later"})}, all + "unreachable 454 4.7.0"},
		"AUTH 432":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "432 4.7.12 transition"})}, all + "unreachable 432 4.7.12"},
		"AUTH 421":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "421 bye"})}, all + "unreachable 421"},
		"AUTH silent":            {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": silent})}, all + "unreachable connect_timeout"},
		"AUTH 535, E14":          {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "535 5.7.8 no"})}, all + "lane_fault 535 5.7.8"},
		"AUTH 534":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "534 5.7.9 too weak"})}, all + "lane_fault 534 5.7.9"},
		"AUTH 538":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "538 5.7.11 encrypt"})}, all + "lane_fault 538 5.7.11"},
		"AUTH 530":               {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "530 5.7.0 no"})}, all + "lane_fault 530 5.7.0"},
		"AUTH 550 5.7.30, E16":   {plain(), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "550 5.7.30 no"})}, all + "lane_fault 550 5.7.30"},
		"AUTH not offered":       {plain(), &server{}, all + "lane_fault auth_not_offered"},
		"AUTH other mechanism":   {plain(), &server{extensions: []string{"AUTH GSSAPI"}}, all + "lane_fault auth_not_offered"},
		"MAIL 451":               {nil, &server{answer: on(map[string]string{"MAIL": "451 4.3.0 later"})}, all + "unreachable 451 4.3.0"},
		"MAIL 452, E58":          {nil, &server{answer: on(map[string]string{"MAIL": "452 4.3.1 full"})}, all + "unreachable 452 4.3.1"},
		"MAIL 552":               {nil, &server{answer: on(map[string]string{"MAIL": "552 5.3.4 too big"})}, all + "permanent 552 5.3.4"},
		"MAIL 550 5.7.60":        {nil, &server{answer: on(map[string]string{"MAIL": "550 5.7.60 not yours"})}, all + "permanent 550 5.7.60"},
		"MAIL 530":               {nil, &server{answer: on(map[string]string{"MAIL": "530 5.7.0 authenticate"})}, all + "lane_fault 530 5.7.0"},
		"MAIL 421":               {nil, &server{answer: on(map[string]string{"MAIL": "421 4.7.0 too many connections"})}, all + "unreachable 421 4.7.0"},
		"MAIL lost":              {nil, &server{answer: on(map[string]string{"MAIL": hangUp})}, all + "transient connection_lost"},
		"RCPT 251 and 252":       {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "251 2.1.5 will forward", "RCPT TO:<b": "252 cannot verify"})}, "accepted; accepted; accepted"},
		"RCPT 550, E1":           {nil, &server{answer: on(map[string]string{"RCPT TO:<b": "550 5.1.1 no such user"})}, "accepted; refused 550 5.1.1; accepted"},
		"RCPT 450 then 550, E2":  {nil, &server{answer: on(map[string]string{"RCPT TO:<b": "450 4.7.1 grey", "RCPT TO:<c": "550 5.1.1 no"})}, "accepted; deferred 450 4.7.1; refused 550 5.1.1"},
		"RCPT 550 then 450, E2":  {nil, &server{answer: on(map[string]string{"RCPT TO:<b": "550 5.1.1 no", "RCPT TO:<c": "450 4.7.1 grey"})}, "accepted; refused 550 5.1.1; deferred 450 4.7.1"},
		"all RCPT refused, E4":   {nil, &server{answer: on(map[string]string{"RCPT": "550 5.1.1 no"})}, "refused 550 5.1.1; refused 550 5.1.1; refused 550 5.1.1"},
		"RCPT codes":             {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "556 5.1.10 no mail", "RCPT TO:<b": "553 5.6.7 no", "RCPT TO:<c": "452 4.2.2 full"})}, "refused 556 5.1.10; refused 553 5.6.7; deferred 452 4.2.2"},
		"RCPT says when, E13":    {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "450 4.7.1 Greylisted, try again in 300 seconds", "RCPT TO:<b": "450 wait 5 hours"})}, "deferred 450 4.7.1 in 5m0s; deferred 450 in 1h0m0s; accepted"},
		"RCPT 5xx with a time":   {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "550 5.1.1 gone 300 seconds ago"})}, "refused 550 5.1.1; accepted; accepted"},
		"codes disagree":         {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "550 4.7.1 later", "RCPT TO:<b": "450 5.1.1 never"})}, "refused 550 4.7.1; deferred 450 5.1.1; accepted"},
		"RCPT silent, E8":        {nil, &server{answer: on(map[string]string{"RCPT TO:<b": silent})}, all + "transient timeout"},
		"RCPT 421":               {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "550 5.1.1 no", "RCPT TO:<c": "421 bye"})}, "refused 550 5.1.1; waiting; waiting; transient 421"},
		"only 552, E6":           {nil, &server{answer: on(map[string]string{"RCPT": "552 5.5.3 too many recipients"})}, "deferred 552 5.5.3; deferred 552 5.5.3; deferred 552 5.5.3"},
		"a full mailbox, 552":    {nil, &server{answer: on(map[string]string{"RCPT TO:<b": "552 5.2.2 recipient over quota"})}, "accepted; refused 552 5.2.2; accepted"},
		"DATA 451":               {nil, &server{answer: on(map[string]string{"DATA": "451 4.3.0 later"})}, all + "transient 451 4.3.0"},
		"DATA 554":               {nil, &server{answer: on(map[string]string{"DATA": "554 5.5.1 no valid recipients"})}, all + "permanent 554 5.5.1"},
		"DATA lost":              {nil, &server{answer: on(map[string]string{"DATA": hangUp})}, all + "transient connection_lost"},
		"dot 451, E12":           {nil, &server{answer: on(map[string]string{".": "451 4.7.1 later"})}, "deferred 451 4.7.1; deferred 451 4.7.1; deferred 451 4.7.1"},
		"dot 550, E9":            {nil, &server{answer: on(map[string]string{".": "550 5.7.1 spam"})}, "refused 550 5.7.1; refused 550 5.7.1; refused 550 5.7.1"},
		"dot 550 as a joke, E10": {nil, &server{answer: on(map[string]string{".": "550 temporary, try again in 5 minutes"})}, "refused 550; refused 550; refused 550"},
		"dot lost, E34":          {nil, &server{answer: on(map[string]string{".": hangUp})}, "deferred answer_lost maybe; deferred answer_lost maybe; deferred answer_lost maybe"},
		"dot silent, E34":        {nil, &server{answer: on(map[string]string{".": silent})}, "deferred answer_lost maybe; deferred answer_lost maybe; deferred answer_lost maybe"},
		"QUIT refused, E36":      {object{"perConnection": 1}, &server{answer: on(map[string]string{"QUIT": "500 no", "RSET": "500 no"})}, "accepted; accepted; accepted"},
		"QUIT lost, E36":         {object{"perConnection": 1}, &server{answer: on(map[string]string{"QUIT": hangUp})}, "accepted; accepted; accepted"},
		"unknown digits":         {nil, &server{answer: on(map[string]string{"RCPT TO:<a": "499 what", "RCPT TO:<b": "599 what"})}, "deferred 499; refused 599; accepted"},
		"too large, E57":         {nil, &server{extensions: []string{"SIZE 100"}}, all + "permanent too_large"},
		"no limit of size":       {nil, &server{extensions: []string{"SIZE 0"}}, "accepted; accepted; accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				r := send(t, with(c.settings), c.server, three())
				if got := told(r); got != c.want {
					t.Errorf("got  %s\nwant %s\n%+v", got, c.want, r)
				}
				for _, d := range r.To {
					if (d.Outcome == notify.Deferred || d.Outcome == notify.Refused) && d.Text == "" {
						t.Errorf("no word for people: %+v", d)
					}
				}
				if strings.HasSuffix(c.want, "too_large") && len(c.server.got("MAIL")) > 0 {
					t.Error("a mail that is too large was begun")
				}
			})
		})
	}
}

// A5: the words of a reply that contradicts itself say which of the two counted.
func TestContradictionsAreNamed(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		r := send(t, with(nil), &server{answer: on(map[string]string{"RCPT": "550-4.7.1 not\n550 4.7.1 now"})}, people("a@x.test"))
		if got := r.To[0].Text; got != "RCPT: not now (550 counts, not 4.7.1)" {
			t.Errorf("got %q", got)
		}
	})
}

// A4: what may be a moment's confusion at the door holds the channel the third
// time in a row.
func TestTheDoorHoldsAtTheThirdTime(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{greeting: "554 5.3.2 no"}
		m := open(t, with(nil), s)
		for i, want := range []string{"unreachable", "unreachable", "lane_fault", "lane_fault"} {
			r := m.Send(t.Context(), example(), people("a@x.test"), nil)
			if got := r.Fault.Outcome.String(); got != want {
				t.Errorf("attempt %d: got %s, want %s", i+1, got, want)
			}
		}
		s.greeting = ""
		if r := m.Send(t.Context(), example(), people("a@x.test"), nil); told(r) != "accepted" {
			t.Errorf("it did not recover: %s", told(r))
		}
		s.greeting = "554 5.3.2 no"
		m.Close()
		if r := m.Send(t.Context(), example(), people("a@x.test"), nil); told(r) != "waiting; unreachable 554 5.3.2" {
			t.Errorf("a welcome in between was not counted: %s", told(r))
		}
		m.Close()
		s.ending.Wait()
	})
}

// A4: names that do not exist, and nobody who listens.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	fail := error(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}})
	m := openDial(t, with(nil), func(context.Context, string, string) (net.Conn, error) { return nil, fail })
	for i, want := range []string{"unreachable no_such_host", "unreachable no_such_host", "lane_fault no_such_host"} {
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "waiting; "+want {
			t.Errorf("attempt %d: got %s", i+1, got)
		}
	}
	fail = &net.OpError{Op: "dial", Err: &net.DNSError{Err: "timeout", IsTimeout: true, IsTemporary: true}}
	if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "waiting; unreachable dns_failed" {
		t.Errorf("got %s", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	r := openDial(t, with(object{"port": port}), nil).Send(t.Context(), example(), people("a@x.test"), nil)
	if got := told(r); got != "waiting; unreachable connection_refused" {
		t.Errorf("got %s", got)
	}
}

// E5, E6: a server that takes no more recipients in one mail gets several, in
// the same attempt, and the next attempt begins with as many as it took.
func TestTooManyRecipientsAreSeveralMails(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"452 4.5.3 too many recipients", "552 5.5.3 too many", "452 Too many recipients received", "552 too many recipients"} {
		racetest.Bubble(t, func(t *testing.T) {
			count := 0
			s := &server{answer: func(_ int, line string) string {
				switch {
				case strings.HasPrefix(line, "MAIL"):
					count = 0
				case strings.HasPrefix(line, "RCPT"):
					if count++; count > 50 {
						return refusal
					}
				}
				return ""
			}}
			var to []string
			for i := range 120 {
				to = append(to, fmt.Sprintf("r%d@x.test", i))
			}
			m := open(t, with(nil), s)
			for attempt := range 2 {
				r := m.Send(t.Context(), example(), people(to...), nil)
				if got := told(r); got != strings.TrimSuffix(strings.Repeat("accepted; ", 120), "; ") {
					t.Fatalf("%s: %s", refusal, got)
				}
				mails, _, _ := s.seen()
				if len(mails) != 3*(attempt+1) {
					t.Errorf("%s: %d mails", refusal, len(mails))
				}
			}
			if got := len(s.got("RCPT")); got != 121+120 { // one was refused, once
				t.Errorf("%s: %d recipients named", refusal, got)
			}
			m.Close()
			s.ending.Wait()
		})
	}
}

// A server's limit is as many as it answered, those whom it refused included,
// and holds for an hour: after that it is asked for more again.
func TestALimitOfRecipientsIsNotForEver(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		count, limit, longest := 0, 10, 0
		s := &server{answer: func(_ int, line string) string {
			switch {
			case strings.HasPrefix(line, "MAIL"):
				count = 0
			case strings.HasPrefix(line, "RCPT"):
				if count++; count > limit {
					return "452 4.5.3 too many recipients"
				}
				longest = max(longest, count)
				if strings.HasPrefix(line, "RCPT TO:<gone") {
					return "550 5.1.1 no"
				}
			}
			return ""
		}}
		var to []string
		for i := range 30 {
			name := "r"
			if i < 9 || i >= 20 { // nine of the first mail, and all of the last
				name = "gone"
			}
			to = append(to, fmt.Sprintf("%s%d@x.test", name, i))
		}
		m := open(t, with(nil), s)
		mails := func() int {
			t.Helper()
			before := len(s.got("MAIL"))
			longest = 0
			r := m.Send(t.Context(), example(), people(to...), nil)
			if got := told(r); strings.Count(got, "accepted") != 11 || strings.Count(got, "refused") != 19 || r.Fault != nil {
				t.Error(got)
			}
			return len(s.got("MAIL")) - before
		}
		if n := mails(); n != 3 {
			t.Errorf("30 recipients, ten at a time, took %d mails", n)
		}
		limit = 30
		time.Sleep(30 * time.Minute)
		if n := mails(); n != 3 || longest != 10 {
			t.Errorf("half an hour later it took %d mails of up to %d", n, longest)
		}
		time.Sleep(31 * time.Minute)
		if n := mails(); n != 1 || longest != 30 {
			t.Errorf("an hour later it took %d mails of up to %d", n, longest)
		}
		m.Close()
		s.ending.Wait()
	})
}

// NO-20: what became of the recipients of one mail is told before the next one
// begins, and where that cannot be recorded no other begins.
func TestEachMailIsToldBeforeTheNext(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var to []string
		for i := range 20 {
			to = append(to, fmt.Sprintf("r%d@x.test", i))
		}
		for _, taken := range []int{10, 3} { // as many parts as are recorded
			s := &server{answer: on(map[string]string{"RCPT TO:<r1@": "550 5.1.1 no"})}
			m := open(t, with(object{"recipientsPerMail": 2}), s)
			told, parts := map[int]notify.Delivery{}, 0
			r := m.Send(t.Context(), example(), people(to...), func(p notify.Part) bool {
				parts++
				if mails, _, _ := s.seen(); len(mails) != parts || len(p.Ends) != 2 || p.Server == "" {
					t.Errorf("part %d with %d ends came after %d mails", parts, len(p.Ends), len(mails))
				}
				maps.Copy(told, p.Ends)
				return parts < taken
			})
			if told[0].Outcome != notify.Accepted || told[1].Outcome != notify.Refused {
				t.Errorf("told %+v", told)
			}
			mails, _, _ := s.seen()
			if len(mails) != taken || taken < 10 && (r.Fault == nil || r.Fault.Outcome != holdfast.NotStarted || r.To[6].Outcome != notify.Waiting) {
				t.Errorf("%d mails were sent, want %d: %+v", len(mails), taken, r.Fault)
			}
			m.Close()
			s.ending.Wait()
		}
	})
}

// E62: who has no address is refused at once, the others get their mail.
func TestAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{}
		r := send(t, with(nil), s, people("a@x.test", "nobody", "x@y.test>\r\nRCPT TO:<evil@z.test", "Doe, Jane <j@x.test>"))
		if got := told(r); got != "accepted; refused bad_address; refused bad_address; refused bad_address" {
			t.Error(got)
		}
		if got := s.got("RCPT"); len(got) != 1 {
			t.Errorf("named were %q", got)
		}
		s = &server{}
		if got := told(send(t, with(nil), s, people("nobody"))); got != "refused bad_address" || s.dials != 0 { // E54
			t.Errorf("%s after %d dials", got, s.dials)
		}
	})
}

// E48, E49, E50: SMTPUTF8 is asked for where an address needs it, and only
// there; a server without it gets no such address; a domain is written in ASCII.
func TestOtherLettersThanASCII(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{extensions: []string{"8BITMIME"}}
		r := send(t, with(nil), s, people("jürgen@x.test", "b@bücher.example"))
		if got := told(r); got != "refused 553 5.6.7; accepted" {
			t.Error(got)
		}
		if got := s.got("RCPT"); len(got) != 1 || got[0] != "RCPT TO:<b@xn--bcher-kva.example>" {
			t.Errorf("got %q", got)
		}
		_, raw, _ := s.seen()
		if strings.ContainsFunc(raw, func(r rune) bool { return r > 0x7f }) {
			t.Error("more than ASCII went over the wire")
		}
		s = &server{extensions: []string{"SMTPUTF8", "8BITMIME"}}
		send(t, with(nil), s, people("a@x.test"))
		send(t, with(nil), s, people("jürgen@bücher.example"))
		if got := s.got("MAIL"); len(got) != 2 || strings.Contains(got[0], "SMTPUTF8") || !strings.HasSuffix(got[1], " SMTPUTF8") {
			t.Errorf("got %q", got)
		}
		if got := s.got("RCPT"); got[1] != "RCPT TO:<jürgen@xn--bcher-kva.example>" {
			t.Errorf("got %q", got)
		}
		s = &server{}
		if got := told(send(t, with(nil), s, people("ü@x.test"))); got != "refused 553 5.6.7" || len(s.got("MAIL")) != 0 {
			t.Error(got)
		}
	})
}

// E33: a large mail over a slow line takes longer than any time-out, and
// arrives; a line that stands still does not.
func TestSlowLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rest time.Duration // between two pieces
		want string
	}{{40 * time.Second, "accepted"}, {70 * time.Second, "waiting; transient timeout"}} {
		racetest.Bubble(t, func(t *testing.T) {
			slow := &server{}
			m := openDial(t, with(nil), func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := slow.dial(ctx, network, address)
				return crawling{conn, c.rest}, err
			})
			n := example()
			n.Body = strings.Repeat("a line of a long text\n", 5000)
			begun := time.Now()
			r := m.Send(t.Context(), n, people("a@x.test"), nil)
			if got := told(r); got != c.want {
				t.Errorf("got %s after %v", got, time.Since(begun))
			}
			m.Close()
			slow.ending.Wait()
		})
	}
}

// crawling needs a while for each piece that is longer than a command.
type crawling struct {
	net.Conn
	rest time.Duration
}

func (c crawling) Write(p []byte) (int, error) {
	if len(p) < 1000 {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:500])
	if err != nil {
		return n, err
	}
	time.Sleep(c.rest)
	more, err := c.Conn.Write(p[500:])
	return n + more, err
}

// A4: a mail whose last dot has not left is certainly not delivered.
func TestALastDotThatHasNotLeft(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{}
		m := openDial(t, with(nil), func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.dial(ctx, network, address)
			return dotless{conn}, err
		})
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "waiting; transient connection_lost" {
			t.Error(got)
		}
		m.Close()
		s.ending.Wait()
	})
}

// dotless breaks where the end of a mail is written.
type dotless struct{ net.Conn }

func (c dotless) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, []byte("\r\n.\r\n")) {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

// NO-12: a stop cuts what was not sent whole, and nobody is charged; between
// the last dot and its answer it waits for half a minute.
func TestStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		greeting string
		line     string        // at which the stop comes
		answer   time.Duration // after which the server answers to that; zero: never
		want     string
		took     time.Duration
	}{
		"in the greeting":            {silent, "", 0, "waiting; not_started canceled", 0},
		"at EHLO":                    {"", "EHLO", 0, "waiting; not_started canceled", 0},
		"at MAIL":                    {"", "MAIL", 0, "waiting; not_started canceled", 0},
		"at RCPT":                    {"", "RCPT", 0, "waiting; not_started canceled", 0},
		"at DATA":                    {"", "DATA", 0, "waiting; not_started canceled", 0},
		"after the dot, answered":    {"", ".", 20 * time.Second, "accepted", 20 * time.Second},
		"after the dot, no answer":   {"", ".", 0, "deferred answer_lost maybe", 30 * time.Second},
		"after the dot, long answer": {"", ".", 40 * time.Second, "deferred answer_lost maybe", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				s := &server{greeting: c.greeting, answer: func(_ int, line string) string {
					if c.line == "" || !strings.HasPrefix(line, c.line) {
						return ""
					}
					stop()
					if c.answer == 0 {
						return silent
					}
					time.Sleep(c.answer)
					return ""
				}}
				if c.line == "" {
					time.AfterFunc(time.Second, stop)
				}
				m := open(t, with(nil), s)
				begun := time.Now()
				r := m.Send(ctx, example(), people("a@x.test"), nil)
				if got := told(r); got != c.want {
					t.Errorf("got %s, want %s: %v", got, c.want, r.Fault)
				}
				if took := time.Since(begun); took > c.took+time.Second {
					t.Errorf("it took %v", took)
				}
				if r := m.Send(ctx, example(), people("a@x.test"), nil); told(r) != "waiting; not_started canceled" {
					t.Errorf("after the stop: %s", told(r))
				}
				m.Close()
				s.ending.Wait()
			})
		})
	}
}

// E34: after a lost answer nobody else is asked in this attempt; the same
// ones get the same Message-ID the next time (E52).
func TestALostAnswerEndsTheAttempt(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: func(n int, line string) string {
			if n == 1 && line == "." {
				return hangUp
			}
			return ""
		}}
		m := open(t, with(object{"recipientsPerMail": 2}), s)
		if got := told(m.Send(t.Context(), example(), three(), nil)); got != "deferred answer_lost maybe; deferred answer_lost maybe; waiting; transient connection_lost" {
			t.Error(got)
		}
		time.Sleep(time.Hour)
		if got := told(m.Send(t.Context(), example(), three(), nil)); got != "accepted; accepted; accepted" {
			t.Error(got)
		}
		mails, _, _ := s.seen()
		ids := map[string]bool{}
		for _, mail := range mails {
			_, after, _ := strings.Cut(mail, "Message-Id: ")
			id, _, _ := strings.Cut(after, "\r\n")
			ids[id] = true
		}
		if len(mails) != 3 || len(ids) != 2 { // one for the two, one for the third
			t.Errorf("%d mails have the ids %v", len(mails), ids)
		}
		m.Close()
		s.ending.Wait()
	})
}

// A server may say what it likes; what is kept of it is short and clean.
func TestHostileWordsAreCleaned(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: on(map[string]string{
			"RCPT TO:<a": "550 5.1.1 \x1b[31mred\x00 \xff" + strings.Repeat("é", 900),
			"RCPT TO:<b": strings.Repeat("550-5.1.1 "+strings.Repeat("x", 500)+"\n", 20) + "550 5.1.1 end",
			".":          "250 2.0.0 \x07ok\tQ-1 " + strings.Repeat("q", 1900),
		})}
		r := send(t, with(nil), s, three())
		for i, d := range r.To {
			text := d.Text + d.Receipt
			if len(text) > 2<<10 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) || !strings.Contains(text, "…") && i == 1 {
				t.Errorf("recipient %d: %d bytes %q", i, len(text), text)
			}
		}
		if got := told(r); got != "refused 550 5.1.1; refused 550 5.1.1; accepted" {
			t.Error(got)
		}
	})
}
