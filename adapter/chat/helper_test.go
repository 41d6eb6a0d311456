package chat_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/notify"
)

// secrets are those of a node, which may change while it runs.
type secrets struct {
	mu  sync.Mutex
	all map[string]string
}

func (s *secrets) read(use notify.SecretUse) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.all[use.Secret]
	if !ok {
		return nil, errors.New("no such file")
	}
	return []byte(text), nil
}

func (s *secrets) put(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = text
}

const (
	signing  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	urlToken = "Xs3cr3tPathT0ken"
	token    = "tk_hunter2hunter2"
)

// keep makes the secrets of a channel whose server is at a URL.
func keep(at string) *secrets {
	return &secrets{all: map[string]string{"url": at + "/hooks/" + urlToken + "?sig=Sig" + urlToken + "\n", "token": token + "\r\n", "sign": signing + "\n"}}
}

// own are settings with one target, by kind.
func own(kind, at string) object {
	switch kind {
	case "webhook":
		return object{"url": named("url"), "signing": []object{named("sign")}}
	case "teams", "slack":
		return object{"url": named("url")}
	case "ntfy":
		return object{"url": at, "token": named("token"), "topic": "ops"}
	}
	return object{"url": at, "token": named("token")}
}

type object = map[string]any

func named(secret string) object { return object{"secret": secret} }

// room is a channel under test, with all that it says.
type room struct {
	*chat.Poster
	log *bytes.Buffer
}

func open(t *testing.T, kind string, settings object, s *secrets, dial dialer) room {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	r := room{log: &bytes.Buffer{}}
	r.Poster, err = chat.New(kind, raw, chat.Options{
		Secret: s.read, DialContext: dial,
		Logger: slog.New(slog.NewTextHandler(&locked{w: r.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// said is all that a report and the log show to anybody.
func (r room) said(report notify.Report) string {
	fault := ""
	if f := report.Fault; f != nil {
		fault = fmt.Sprintf("%s %s %v %+v", f.Code, f.Outcome, f.Err, errors.Unwrap(f))
	}
	return fmt.Sprintf("%+v %s %s", report, fault, r.log)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// answer is a handler that reads the request and says this.
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// example is a notification as scripts send it.
func example() *notify.Notification {
	return &notify.Notification{
		ID: "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11", Type: "batch.failed", List: "ops", Subject: "Batch 7 failed",
		Body: "Press 5 stopped.\nCall <maintenance> & ask.", Data: json.RawMessage(`{"batch":7}`),
		Origin: notify.Origin{
			Site: "plant-7", Instance: "plant-7-a", Script: "press_5", Execution: "e-1", ParentExecution: "e-0",
			Enqueued: time.Date(2026, 11, 28, 13, 5, 0, 0, time.UTC),
		},
	}
}

func to(addresses ...string) (list []notify.Recipient) {
	for _, a := range addresses {
		list = append(list, notify.Recipient{Channel: "c", Address: a})
	}
	return list
}

// verdict is how a report with one recipient stands, on one line.
func verdict(r notify.Report, i int) string {
	d := r.To[i]
	switch {
	case d.Outcome == notify.Accepted:
		return "accepted"
	case d.Outcome == notify.Deferred && d.Maybe:
		return "deferred, maybe, " + d.Code
	case d.Outcome == notify.Deferred:
		return "deferred, " + d.Code
	case d.Outcome == notify.Refused:
		return "refused, " + d.Code
	case r.Fault != nil:
		return r.Fault.Outcome.String() + ", " + r.Fault.Code
	}
	return "nothing"
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got %q, want %q in it", what, text, part)
		}
	}
}

// serverTLS shows a certificate, and wants one of the same authority.
func serverTLS(t *testing.T, files certtest.Files) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(files.PEM)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
}
