package link_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

func TestEnrolmentExchangesATokenForACredential(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		token, err := w.central.Add(t.Context(), "plant-7", "")
		if err != nil {
			t.Fatal(err)
		}
		conf := link.EnrollConfig{URL: address, Token: token, File: filepath.Join(t.TempDir(), "credential"), Dial: w.connect}
		id, err := link.Enroll(t.Context(), conf)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(conf.File)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
		}
		if got, err := link.ReadIdentity(conf.File); err != nil || got != id || got.Site != "plant-7" {
			t.Errorf("got %+v, %v; want %+v", got, err, id)
		}
		if left, _ := filepath.Glob(conf.File + ".*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		name, err := nodestore.New(w.db, nil).Sites.FindSite(t.Context(), bearer.Hash(id.Credential))
		if err != nil || name != "plant-7" {
			t.Errorf("got %q, %v", name, err)
		}
		// The file is not written over, and the token is spent.
		if _, err := link.Enroll(t.Context(), conf); !errors.Is(err, link.ErrEnrolled) || !strings.Contains(err.Error(), "plant-7") {
			t.Errorf("got %v, want that it is enrolled", err)
		}
		conf.Force = true
		if _, err := link.Enroll(t.Context(), conf); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("got %v, want a refusal without the token", err)
		}
		if got, err := link.ReadIdentity(conf.File); err != nil || got != id {
			t.Errorf("got %+v, %v; want the credential that works", got, err)
		}
	})
}

// The answer is lost: the same token works again, with the credential that
// central knows by then.
func TestEnrolmentMayBeRepeatedWhenItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	for limit := 0; limit < 400; limit += 40 {
		within(t, func(w *world) {
			t := w.t
			token, err := w.central.Add(t.Context(), "plant-7", "")
			if err != nil {
				t.Fatal(err)
			}
			cut := transporttest.Cutter{Under: w.direct, Plan: func(n int) transporttest.Limit {
				if n < 2 {
					return transporttest.Limit{Written: -1, Read: limit}
				}
				return transporttest.Whole()
			}}
			conf := link.EnrollConfig{URL: address, Token: token, File: filepath.Join(t.TempDir(), "credential"), Dial: cut.Dial}
			var id link.Identity
			for try := 0; ; try++ {
				if id, err = link.Enroll(t.Context(), conf); err == nil {
					break
				}
				if try == 3 {
					t.Fatalf("cut after %d bytes: %v", limit, err)
				}
			}
			if name, err := nodestore.New(w.db, nil).Sites.FindSite(t.Context(), bearer.Hash(id.Credential)); err != nil || name != "plant-7" {
				t.Errorf("cut after %d bytes: got %q, %v", limit, name, err)
			}
			for _, entry := range []string{conf.File + ".enrolling"} {
				if _, err := os.Stat(entry); err == nil {
					t.Errorf("%s is left", entry)
				}
			}
		})
	}
}

// What was kept of an enrolment whose answer was lost is for its own token: with the
// token of another site the machine becomes that one.
func TestALostEnrolmentDoesNotStandInTheWayOfAnother(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		conf := link.EnrollConfig{URL: address, File: filepath.Join(t.TempDir(), "credential")}
		for _, c := range []struct {
			name string
			read int // bytes of the answer that arrive
			lost bool
		}{{"plant-7", 20, true}, {"plant-8", -1, false}} {
			token, err := w.central.Add(t.Context(), c.name, "")
			if err != nil {
				t.Fatal(err)
			}
			cut := transporttest.Cutter{Under: w.direct, Plan: func(int) transporttest.Limit { return transporttest.Limit{Written: -1, Read: c.read} }}
			conf.Token, conf.Dial = token, cut.Dial
			if id, err := link.Enroll(t.Context(), conf); c.lost != (err != nil) || err == nil && id.Site != c.name {
				t.Errorf("%s: got %+v, %v; its answer lost: %v", c.name, id.Site, err, c.lost)
			}
		}
		if infos, err := w.central.Sites(t.Context()); err != nil || len(infos) != 2 || infos[0].Enrolled.IsZero() || infos[1].Enrolled.IsZero() {
			t.Errorf("got %+v, %v; want both enrolled at central", infos, err)
		}
	})
}

// A token is worth a day; a wrong one, or none, is refused, and guesses are
// told to wait (as OI-18 has it of signatures).
func TestWrongTokensAreRefused(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		conf := link.EnrollConfig{URL: address, File: filepath.Join(t.TempDir(), "credential"), Dial: w.connect}
		for _, wrong := range []string{"", "hfe_short", bearer.New("hf_")} {
			conf.Token = wrong
			if _, err := link.Enroll(t.Context(), conf); !errors.Is(err, link.ErrToken) {
				t.Errorf("%q: got %v", wrong, err)
			}
		}
		late, err := w.central.Add(t.Context(), "plant-7", "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(sites.TokenFor + time.Second)
		conf.Token = late
		if _, err := link.Enroll(t.Context(), conf); err == nil {
			t.Error("a token of yesterday was taken")
		}
		for range 100 {
			conf.Token = bearer.New("hfe_")
			if _, err := link.Enroll(t.Context(), conf); err == nil {
				t.Fatal("a guess was taken")
			}
		}
		token, err := w.central.Rotate(t.Context(), "plant-7", false, "")
		if err != nil {
			t.Fatal(err)
		}
		conf.Token = token // a good one always passes
		if _, err := link.Enroll(t.Context(), conf); err != nil {
			t.Error(err)
		}
	})
}

// What answers in central's place may quote what it was sent: neither the token
// nor the credential that the site would have is shown.
func TestEnrolmentQuotesNoSecret(t *testing.T) {
	t.Parallel()
	var sent []byte
	status := http.StatusUnprocessableEntity
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
		said := r.Header.Get("Authorization") + string(sent)
		reply := wire.Reply{Outcome: holdfast.Permanent.String(), Code: "invalid", Error: said}
		site, _ := json.Marshal(said)
		_, _ = fmt.Fprintf(w, `{"site":%s,%s`, site, reply.AppendTo(nil)[1:])
	}))
	defer srv.Close()
	for _, status = range []int{http.StatusUnprocessableEntity, http.StatusOK} {
		token := bearer.New("hfe_")
		_, err := link.Enroll(t.Context(), link.EnrollConfig{URL: srv.URL, Token: token, File: filepath.Join(t.TempDir(), "credential")})
		var body struct {
			Credential string `json:"credential"`
		}
		if bad := json.Unmarshal(sent, &body); bad != nil || len(body.Credential) < 40 {
			t.Fatalf("the site has sent %s: %v", sent, bad)
		}
		if err == nil || strings.Contains(err.Error(), token[5:21]) || strings.Contains(err.Error(), body.Credential[5:21]) || !strings.Contains(err.Error(), "[secret]") {
			t.Errorf("status %d: got %v", status, err)
		}
	}
}

// A secret goes over TLS, or stays on the machine.
func TestNoSecretGoesOverPlainHTTP(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		for _, url := range []string{"http://central.example", "http://10.0.0.1", "http://localhost.example"} {
			_, err := link.Enroll(t.Context(), link.EnrollConfig{URL: url, Token: bearer.New("hfe_"), File: filepath.Join(t.TempDir(), "c"), Dial: w.connect})
			if err == nil || !strings.Contains(err.Error(), "TLS") {
				t.Errorf("%s: got %v, want it to ask for TLS", url, err)
			}
			conf := p.conf
			conf.URL = url
			if _, err := link.NewSite(conf); err == nil || !strings.Contains(err.Error(), "TLS") {
				t.Errorf("%s: got %v, want it to ask for TLS", url, err)
			}
		}
	})
}

// A site that is not enrolled, or whose credential others may read, holds its
// lane, and goes on when that is repaired.
func TestACredentialMayComeLater(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		moved := p.conf.File + ".away"
		if err := os.Rename(p.conf.File, moved); err != nil {
			t.Fatal(err)
		}
		_, err := p.Deliver(t.Context(), message(1))
		if f := holdfast.AsFailure(err); f.Outcome != holdfast.LaneFault || !strings.Contains(err.Error(), "holdfast enroll") {
			t.Errorf("got %v, want a lane fault that says what to do", err)
		}
		if err := os.Rename(moved, p.conf.File); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" {
			if err := os.Chmod(p.conf.File, 0o640); err != nil {
				t.Fatal(err)
			}
			_, err := p.Deliver(t.Context(), message(1))
			if f := holdfast.AsFailure(err); f.Outcome != holdfast.LaneFault || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("got %v, want a lane fault that says what to do", err)
			}
			if err := os.Chmod(p.conf.File, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Deliver(t.Context(), message(1)); err != nil {
			t.Error(err)
		}
	})
}

// Both credentials are good for a day after a rotation; a site that runs takes
// the new one without a restart.
func TestARotationInterruptsNothing(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day of polls")
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		old, err := link.ReadIdentity(p.conf.File)
		if err != nil {
			t.Fatal(err)
		}
		token, err := w.central.Rotate(t.Context(), "plant-7", false, "")
		if err != nil {
			t.Fatal(err)
		}
		p.put(0, 10)
		p.delivered(time.Minute)
		id, err := link.Enroll(t.Context(), link.EnrollConfig{URL: address, Token: token, File: p.conf.File, Force: true, Dial: w.connect})
		if err != nil || id.Credential == old.Credential {
			t.Fatalf("got %v", err)
		}
		p.put(10, 20)
		p.delivered(time.Minute)
		if _, err := nodestore.New(w.db, nil).Sites.FindSite(t.Context(), bearer.Hash(old.Credential)); err != nil {
			t.Errorf("the former credential: %v", err)
		}
		time.Sleep(sites.OverlapFor + time.Minute)
		if _, err := nodestore.New(w.db, nil).Sites.FindSite(t.Context(), bearer.Hash(old.Credential)); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("the former credential, a day later: %v", err)
		}
		p.put(20, 30)
		p.delivered(time.Minute)
		if s := p.Status(); !s.Connected {
			t.Errorf("got %+v", s)
		}
	})
}

// Who is revoked is out at once, also in the middle of a poll; what waits at
// the site waits on.
func TestARevokedSiteIsOut(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		p.put(0, 5)
		p.delivered(time.Minute)
		if err := w.central.Revoke(t.Context(), "plant-7", ""); err != nil {
			t.Fatal(err)
		}
		p.put(5, 10)
		w.eventually(time.Minute, "out", func() bool { return !p.Status().Connected })
		time.Sleep(time.Hour)
		if got := len(w.kept()); got != 5 {
			t.Errorf("central has %d messages, want 5", got)
		}
		if n := p.db.Counts(); n.Pending != 5 || n.Parked != 0 {
			t.Errorf("got %+v, want all waiting", n)
		}
		if r := p.is("m-5", holdfast.Pending); r.Failures != 0 {
			t.Errorf("charged %d failures: it is not the message's fault", r.Failures)
		}
		if _, err := w.central.Outbox("plant-7").List(t.Context(), holdfast.Query{}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want that there is no such site", err)
		}
	})
}

// SF-28: who is shut out, polls again, or stops, leaves no poll waiting, also when it is done twice;
// what came to a revoked site's name before is nothing to who has it next.
func TestAPollIsSentAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by     func(w *world, site *caller) error
		status int // of the next poll
		stays  bool
	}{
		"revoked": {by: func(w *world, _ *caller) error { return w.central.Revoke(w.t.Context(), "plant-7", "") }, status: http.StatusUnauthorized},
		"rotated now": {by: func(w *world, _ *caller) error {
			_, err := w.central.Rotate(w.t.Context(), "plant-7", true, "")
			return err
		}, status: http.StatusUnauthorized},
		"rotated": {by: func(w *world, _ *caller) error {
			_, err := w.central.Rotate(w.t.Context(), "plant-7", false, "")
			return err
		}, status: http.StatusOK, stays: true},
		"replaced": {by: func(_ *world, site *caller) error {
			site.post(link.PollPath, wire.MessageType, strings.NewReader(`{}`))
			return nil
		}, status: http.StatusOK},
		"closed": {by: func(w *world, _ *caller) error { w.central.Close(); w.central.Close(); return nil }, status: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				t := w.t
				site := w.caller(credentialOf(t, w.enroll("plant-7")))
				began := time.Now()
				ended := make(chan string, 1)
				go func() {
					status, _, text := site.post(link.PollPath, wire.MessageType, strings.NewReader(`{"waitMs":20000}`))
					ended <- fmt.Sprintf("%d after %s, replaced %v", status, time.Since(began), strings.Contains(text, `"replaced":true`))
				}()
				time.Sleep(5 * time.Second)
				if err := c.by(w, site); err != nil {
					t.Fatal(err)
				}
				want := "200 after 5s, replaced true"
				if c.stays {
					want = "200 after 20s, replaced false"
				}
				if got := <-ended; got != want {
					t.Errorf("the poll got %s, want %s", got, want)
				}
				if status, _, text := site.post(link.PollPath, wire.MessageType, strings.NewReader(`{}`)); status != c.status {
					t.Errorf("the next poll: got %d %s, want %d", status, text, c.status)
				}
			})
		})
	}
}

// A site that is let in again under its name is known at once, with its version.
func TestASiteThatIsLetInAgainIsKnown(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(false)
		defer p.stop()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		if err := w.central.Revoke(t.Context(), "plant-7", ""); err != nil {
			t.Fatal(err)
		}
		w.eventually(time.Minute, "out", func() bool { return !p.Status().Connected })
		token, err := w.central.Add(t.Context(), "plant-7", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: w.url, TLS: w.tls, Token: token, File: p.conf.File, Force: true, Dial: w.connect}); err != nil {
			t.Fatal(err)
		}
		w.eventually(30*time.Second, "known", func() bool {
			sites, err := w.central.Sites(t.Context())
			return err == nil && len(sites) > 0 && sites[len(sites)-1].Connected && sites[len(sites)-1].Version == "1.2.3"
		})
	})
}

func TestNamesOfSitesAreChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "plant-7", "Plant_7.b", strings.Repeat("x", 64)} {
		if err := link.CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "-a", "$unknown-site", "a b", "a/b", "ä", "a\n", strings.Repeat("x", 65)} {
		if link.CheckName(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
