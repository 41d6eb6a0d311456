package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log" //nolint:depguard // http.Server wants one
	"net"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

func TestDialErrorsAreClassified(t *testing.T) {
	t.Parallel()
	op := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, c := range map[string]struct {
		err  error
		want holdfast.Failure
	}{
		"refused":      {op(syscall.ECONNREFUSED), holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused"}},
		"no host":      {op(syscall.EHOSTUNREACH), holdfast.Failure{Outcome: holdfast.Unreachable, Code: "no_route"}},
		"no network":   {op(syscall.ENETUNREACH), holdfast.Failure{Outcome: holdfast.Unreachable, Code: "no_route"}},
		"timed out":    {op(syscall.ETIMEDOUT), holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connect_timeout"}},
		"no such name": {&net.DNSError{Err: "x", Name: "peer.test", IsNotFound: true}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "no_such_host"}},
		"DNS away":     {&net.DNSError{Err: "x", Name: "peer.test", IsTemporary: true}, holdfast.Failure{Outcome: holdfast.Unreachable, Code: "dns_failed"}},
		"DNS timeout":  {&net.DNSError{Err: "x", Name: "peer.test", IsTimeout: true}, holdfast.Failure{Outcome: holdfast.Unreachable, Code: "dns_failed"}},
		"forbidden":    {op(syscall.EACCES), holdfast.Failure{Outcome: holdfast.LaneFault, Code: "access_denied"}},
		"unknown":      {errors.New("certificate has expired"), holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connect_failed"}}, // text does not count
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, transport.ClientConfig{
				URL: "http://peer.test", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, c.err },
			})
			_, err := client.Deliver(t.Context(), transporttest.Message())
			if got := classified(t, err); got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func TestTimeOutsInVirtualTime(t *testing.T) {
	t.Parallel()
	black := func(answer bool) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			if !answer {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			here, there := net.Pipe()
			go io.Copy(io.Discard, there) //nolint:errcheck // accepts, never replies
			return here, nil
		}
	}
	for name, c := range map[string]struct {
		accepts bool
		want    holdfast.Failure
	}{
		"nobody picks up":     {false, holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connect_timeout"}},
		"accepts, no replies": {true, holdfast.Failure{Code: "timeout", MaybeDelivered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				client := newClient(t, transport.ClientConfig{URL: "http://peer.test", Dial: black(c.accepts)})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				start := time.Now()
				_, err := client.Deliver(ctx, transporttest.Message())
				if got := classified(t, err); got != c.want {
					t.Errorf("got %+v (%v), want %+v", got, err, c.want)
				}
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("got an end after %s, want 30s", took)
				}
			})
		})
	}
}

func TestCancelledWhileDialingIsNotStarted(t *testing.T) {
	t.Parallel()
	dialing := make(chan struct{})
	client := newClient(t, transport.ClientConfig{URL: "http://peer.test", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-dialing
		cancel()
	}()
	_, err := client.Deliver(ctx, transporttest.Message())
	if got, want := classified(t, err), (holdfast.Failure{Outcome: holdfast.NotStarted, Code: "canceled"}); got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

func TestCutConnectionsMayHaveDelivered(t *testing.T) {
	t.Parallel()
	inbox := &transporttest.Inbox{}
	url := listen(t, newServer(t, transport.ServerConfig{Receiver: inbox}))
	for name, limit := range map[string]transporttest.Limit{
		"in the request's head": {Written: 20, Read: -1},
		"in the request's body": {Written: 600, Read: -1},
		"before the reply":      {Written: -1, Read: 0},
		"in the reply's head":   {Written: -1, Read: 20},
		"in the reply's body":   {Written: -1, Read: 240},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutter := &transporttest.Cutter{Plan: func(n int) transporttest.Limit {
				if n == 0 {
					return limit
				}
				return transporttest.Whole()
			}}
			client := newClient(t, transport.ClientConfig{URL: url, Dial: cutter.Dial, Secrets: []*wire.Secret{secret(t, "k")}})
			m := transporttest.Message()
			_, err := client.Deliver(t.Context(), m)
			if got, want := classified(t, err), (holdfast.Failure{Code: "connection_lost", MaybeDelivered: true}); got != want {
				t.Errorf("got %+v (%v), want %+v", got, err, want)
			}
			if _, err := client.Deliver(t.Context(), m); err != nil {
				t.Errorf("next attempt: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if got := inbox.Effects(); got != 5 {
			t.Errorf("got %d effects, want 5", got)
		}
	})
}

// F1-30: a request that got no answer is an attempt, whatever became of the
// connection before; net/http would make it again.
func TestAWarmConnectionThatIsClosedCostsOneAttempt(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, newServer(t, transport.ServerConfig{Receiver: &transporttest.Inbox{}, Insecure: true}))
	client := newClient(t, transport.ClientConfig{URL: s.URL})
	s.Warm(8, func() { _, _ = client.Deliver(t.Context(), transporttest.Message()) })
	for n := range 8 {
		_, err := client.Deliver(t.Context(), transporttest.Message())
		if got, want := classified(t, err), (holdfast.Failure{Code: "connection_lost", MaybeDelivered: true}); got != want || s.Requests() != 9+n {
			t.Errorf("got %+v (%v) and %d requests, want %+v and %d", got, err, s.Requests(), want, 9+n)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	h := newServer(t, transport.ServerConfig{Receiver: &transporttest.Inbox{}, Insecure: true})
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	mutual := httptest.NewUnstartedServer(h)
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	mutual.Config.ErrorLog = log.New(io.Discard, "", 0)
	mutual.StartTLS()
	t.Cleanup(mutual.Close)

	plain := listen(t, h)
	elsewhere := func(to string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, to)
		}
	}
	for name, c := range map[string]struct {
		conf transport.ClientConfig
		want holdfast.Failure
	}{
		"trusted":              {transport.ClientConfig{URL: server.URL, CA: ca}, holdfast.Failure{Outcome: holdfast.Succeeded}},
		"unknown authority":    {transport.ClientConfig{URL: server.URL}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "tls_certificate"}},
		"another name":         {transport.ClientConfig{URL: "https://other.test", CA: ca, Dial: elsewhere(server.Listener.Addr().String())}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "tls_certificate"}},
		"our certificate":      {transport.ClientConfig{URL: mutual.URL, CA: ca}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "tls_client_refused"}},
		"a plain server":       {transport.ClientConfig{URL: "https" + plain[len("http"):], CA: ca}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "tls_failed"}},
		"no version in common": {transport.ClientConfig{URL: server.URL, CA: ca, TLS: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}}, holdfast.Failure{Outcome: holdfast.LaneFault, Code: "tls_failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, c.conf).Deliver(t.Context(), transporttest.Message())
			if c.want.Outcome == holdfast.Succeeded {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if got := classified(t, err); got != c.want {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

// A socket file that nobody listens on, or that is not there.
func TestUnixSocketWithoutAServer(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	client := newClient(t, transport.ClientConfig{URL: "unix://" + path})
	want := holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused"}
	_, err := client.Deliver(t.Context(), transporttest.Message())
	if got := classified(t, err); got != want {
		t.Errorf("without a file: got %+v (%v), want %+v", got, err, want)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	_, err = client.Deliver(t.Context(), transporttest.Message())
	if got := classified(t, err); got != want {
		t.Errorf("with the file of a dead process: got %+v (%v), want %+v", got, err, want)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	cutter := &transporttest.Cutter{Plan: func(int) transporttest.Limit { return transporttest.Whole() }}
	var failing atomic.Bool
	url := listen(t, newServer(t, transport.ServerConfig{Insecure: true, Receiver: &transporttest.Recorder{
		Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			if failing.Load() {
				return holdfast.Receipt{}, errors.New("handler")
			}
			return holdfast.Receipt{}, nil
		},
	}}))
	client := newClient(t, transport.ClientConfig{URL: url, Dial: cutter.Dial})
	for n := range 10 {
		failing.Store(n%2 == 1)
		client.Deliver(t.Context(), transporttest.Message()) //nolint:errcheck // half of them fail
	}
	if got := cutter.Dialed(); got != 1 {
		t.Errorf("got %d connections for 10 deliveries, want 1", got)
	}
}
