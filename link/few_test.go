package link_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// broken is a store that answers nobody.
type broken struct{ sites.Store }

var errBroken = errors.New("disk I/O error")

func (broken) FindSite(context.Context, [32]byte) (string, error)  { return "", errBroken }
func (broken) TokenSite(context.Context, [32]byte) (string, error) { return "", errBroken }
func (broken) EnrollSite(context.Context, [32]byte, [32]byte) (string, error) {
	return "", errBroken
}

// F1-03: a store that fails is not written of once for each made-up token or
// credential.
func TestAStoreThatFailsFillsNoLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		certs      link.ClientCerts
		path, from string
		line       string
	}{
		"enrolment":                    {link.NoCert, link.EnrollPath, "hfe_", "site not enrolled"},
		"enrolment with a certificate": {link.SiteCert, link.EnrollPath, "hfe_", "site of a token not read"},
		"messages":                     {link.NoCert, link.MessagesPath, "hfs_", "caller not looked up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				var out bytes.Buffer
				central, err := link.NewCentral(link.CentralConfig{
					Store: broken{}, Receiver: &transporttest.Recorder{}, ClientCerts: c.certs, Logger: slog.New(slog.NewTextHandler(&out, nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				handler := central.Handler()
				for range 500 {
					r := httptest.NewRequestWithContext(t.Context(), "POST", c.path, strings.NewReader(fmt.Sprintf(`{"credential":%q}`, bearer.New("hfs_"))))
					r.Header.Set("Authorization", "Bearer "+bearer.New(c.from))
					r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}
					w := httptest.NewRecorder()
					if handler.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
						t.Fatalf("got %d %s", w.Code, w.Body)
					}
				}
				if lines := strings.Count(out.String(), c.line); lines != 200 || lines != strings.Count(out.String(), "\n") || !strings.Contains(out.String(), "remote=192.0.2.1 ") {
					t.Errorf("got %d lines, want 200:\n%.500s", lines, out.String())
				}
			})
		})
	}
}
