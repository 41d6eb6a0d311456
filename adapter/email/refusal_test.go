package email_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-69: credentials that the server refuses are shown to it less and less
// often, up to once an hour; a changed secret, and a new Mailer, which a resumed
// channel has, at once.
func TestRefusedCredentialsAreTriedLessAndLess(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		now := "old"
		s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
			if strings.HasPrefix(line, "AUTH") && !strings.HasSuffix(line, encoded("\x00u\x00good")) {
				return "535 5.7.8 no"
			}
			return ""
		}}
		secret := func(notify.SecretUse) ([]byte, error) { return []byte(now), nil }
		m := openWith(t, with(plain()), s, secret, nil)
		var at []time.Duration
		begun := time.Now()
		for range 6 * 60 { // the lane's probes
			r := m.Send(t.Context(), example(), people("a@x.test"), nil)
			if got := told(r); got != "waiting; lane_fault 535 5.7.8" {
				t.Fatal(got)
			}
			if n := len(s.got("AUTH")); n > len(at) {
				at = append(at, time.Since(begun))
			} else if !strings.Contains(r.Fault.Error(), "not tried again before") {
				t.Errorf("nobody is told: %v", r.Fault)
			}
			time.Sleep(time.Minute)
		}
		if got := fmt.Sprint(at); got != "[0s 1m0s 3m0s 7m0s 15m0s 31m0s 1h3m0s 2h3m0s 3h3m0s 4h3m0s 5h3m0s]" {
			t.Errorf("tried at %s", got)
		}
		tried := len(s.got("AUTH"))
		now = "other"
		m.Send(t.Context(), example(), people("a@x.test"), nil)
		if n := len(s.got("AUTH")); n != tried+1 {
			t.Error("a changed secret was not tried at once")
		}
		resumed := openWith(t, with(plain()), s, secret, nil)
		resumed.Send(t.Context(), example(), people("a@x.test"), nil)
		if n := len(s.got("AUTH")); n != tried+2 {
			t.Error("a new Mailer did not try at once")
		}
		now = "good"
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
			t.Error(got)
		}
		resumed.Close()
		m.Close()
		s.ending.Wait()
	})
}

// F1-69: a token that the server never took is shown to it once; another one
// would fare no better.
func TestATokenThatNeverWorkedIsTriedOnce(t *testing.T) {
	t.Parallel()
	url, asked := tokenServer(t, func(n int32, w http.ResponseWriter) {
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600}`, n)
	})
	s := &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": "535 5.7.3 no"})}
	m := open(t, oauth(url), s)
	for range 10 {
		if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "waiting; lane_fault 535 5.7.3" {
			t.Error(got)
		}
	}
	if n := len(s.got("AUTH")); n != 1 || asked.Load() != 1 {
		t.Errorf("%d tries with %d tokens", n, asked.Load())
	}
	m.Close()
	s.ending.Wait()
}
