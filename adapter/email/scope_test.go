package email_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
)

// What is wrong with how we come, and not with whom we write to, holds the
// channel, also where a server says so as late as at a recipient (NO-09).
func TestServerThatWantsCredentialsLate(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"530 5.7.0 authenticate first", "538 5.7.11 encrypt"} {
		for _, phase := range []string{"MAIL", "RCPT"} {
			got := told(send(t, with(nil), &server{answer: on(map[string]string{phase: reply})}, people("a@x.test")))
			if want := "waiting; lane_fault " + reply[:strings.LastIndex(reply, ".")]; !strings.HasPrefix(got, want) {
				t.Errorf("%s: got %q, want %q", phase, got, want)
			}
		}
	}
}

// Each 2xx after the last dot means that the mail was taken: to send it again
// would make a duplicate (A4).
func TestOtherSuccessAfterTheLastDot(t *testing.T) {
	t.Parallel()
	r := send(t, with(nil), &server{answer: on(map[string]string{".": "252 2.0.0 queued as Q9"})}, people("a@x.test"))
	if got := told(r); got != "accepted" || !strings.Contains(r.To[0].Receipt, "Q9") {
		t.Errorf("got %q with receipt %q", got, r.To[0].Receipt)
	}
}

// An outage after somebody was put off counts as an attempt, or it would be
// made for ever.
func TestOutageAfterADeferralCounts(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(connection int, line string) string {
		switch {
		case connection > 1 && strings.HasPrefix(line, "EHLO"):
			return hangUp
		case line == ".":
			return "421 4.3.2 closing"
		}
		return ""
	}}
	got := told(send(t, with(object{"recipientsPerMail": 1}), s, people("a@x.test", "b@x.test")))
	if want := "deferred 421 4.3.2; waiting; transient connection_lost"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// E56: a server that repeats a secret in what is no reply does not make us
// tell it either.
func TestSecretInGarbageIsNotTold(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for _, phase := range []string{"AUTH", "MAIL", "RCPT", "DATA", "."} {
		s := &server{extensions: []string{auth}, answer: on(map[string]string{phase: "x " + secret})}
		m := openWith(t, with(plain()), s, secrets(object{"smtp": secret}), nil)
		r := m.Send(t.Context(), example(), people("a@x.test"), nil)
		m.Close()
		s.ending.Wait()
		text := r.To[0].Text
		if r.Fault != nil {
			text += r.Fault.Error()
		}
		if strings.Contains(text, secret) || text == "" {
			t.Errorf("%s: told %q", phase, text)
		}
	}
}

// An address that is none is a fault of its field, for lists; in a report,
// which is logged, the address is not repeated.
func TestBadAddressIsAFieldError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Doe, Jane <j@x.test>", "jane", `"jane doe" x`, "jane@x.test extra"} {
		_, err := email.ParseAddress(text)
		if f, ok := errors.AsType[*holdfast.FieldError](err); !ok || f.Field != "address" {
			t.Errorf("%q: got %v", text, err)
		}
		r := send(t, with(nil), &server{}, people(text))
		if got := told(r); got != "refused bad_address" || strings.Contains(strings.ToLower(r.To[0].Text), "jane") {
			t.Errorf("%q: got %q, told %q", text, got, r.To[0].Text)
		}
	}
}

// Facts A3, A4: a server that puts off recipients does its work, and is no
// reason to slow the channel down; one that is unwell, or breaks off, is.
func TestWhoIsPutOffByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]string
		want    bool
	}{
		"taken":                    {nil, true},
		"one full mailbox":         {map[string]string{"RCPT TO:<b": "452 4.2.2 full"}, true},
		"all greylisted":           {map[string]string{"RCPT": "450 4.7.1 greylisted"}, true},
		"all greylisted, no code":  {map[string]string{"RCPT": "450 come again"}, true},
		"greylisted after the dot": {map[string]string{".": "451 4.7.1 greylisted"}, true},
		"full after the dot":       {map[string]string{".": "452 4.2.2 full"}, true},
		"refused after the dot":    {map[string]string{".": "550 5.7.1 spam"}, true},
		"unwell at RCPT":           {map[string]string{"RCPT": "451 4.3.0 not now"}, false},
		"no network at RCPT":       {map[string]string{"RCPT": "451 4.4.3 no name server"}, false},
		"unwell after the dot":     {map[string]string{".": "452 4.3.1 disk full"}, false},
		"unwell, no code":          {map[string]string{".": "451 not now"}, false},
		"sender put off":           {map[string]string{"MAIL": "451 4.7.1 not now"}, false},
		"closing":                  {map[string]string{"RCPT": "421 4.3.2 closing"}, false},
		"broken off":               {map[string]string{"RCPT TO:<b": "450 4.7.1 greylisted", "DATA": hangUp}, false},
		"answer lost":              {map[string]string{".": hangUp}, false},
	} {
		r := send(t, with(nil), &server{answer: on(c.answers)}, three())
		if r.Served != c.want {
			t.Errorf("%s: served %t (%s)", name, r.Served, told(r))
		}
	}
}
