package node_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

const withSource = "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}\n"

// withToken makes a token at a node that has not started yet.
func withToken(t *testing.T, c *config.Config, role api.Role) (secret string) {
	t.Helper()
	db := open(t, c.Data)
	secret = bearer.New("hf_")
	if err := nodestore.New(db, nil).Tokens.CreateToken(t.Context(), string(role), string(role), 0, sha256.Sum256([]byte(secret)), ""); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return secret
}

// askAs makes a request with a token.
func askAs(t *testing.T, token, url string) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// refusals are what the metric of refused requests has of a reason.
func refusals(metrics, reason string) int {
	found := regexp.MustCompile(`(?m)^holdfast_requests_refused_count\{[^}]*reason="` + reason + `"[^}]*\} (\d+)$`).FindStringSubmatch(metrics)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// F1-03: who guesses at tokens is told to wait, and each guess is counted; valid
// tokens are served all the while.
func TestGuessesAtTokensAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	c := parse(t, "tokens: always\n")
	token := withToken(t, c, api.RoleAdmin)
	url := serve(t, c)
	got := map[int]int{}
	for n := 0; got[http.StatusTooManyRequests] < 30 && n < 1000; n++ {
		status, header, text := askAs(t, bearer.New("hf_"), url+"/v1/messages")
		got[status]++
		if status == http.StatusTooManyRequests && header.Get("Retry-After") != "30" {
			t.Errorf("got Retry-After %q: %s", header.Get("Retry-After"), text)
		}
		if status, _, text := askAs(t, token, url+"/v1/messages"); status != http.StatusOK {
			t.Errorf("a valid token: got %d %s", status, text)
		}
	}
	if got[http.StatusUnauthorized] < 20 || got[http.StatusTooManyRequests] != 30 || len(got) != 2 {
		t.Errorf("got %v, want 401 for 20 and more, then 429", got)
	}
	_, _, metrics := askAs(t, token, url+"/metrics")
	for status, n := range got {
		if counted := refusals(metrics, fmt.Sprint("http_", status)); counted != n {
			t.Errorf("%d of %d answers with %d were counted", counted, n, status)
		}
	}
}

// line is a connection on which a test writes requests by hand.
type line struct {
	net.Conn
	t    *testing.T
	read *bufio.Reader
}

func dial(t *testing.T, url string) *line {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &line{c, t, bufio.NewReader(c)}
}

// announce begins a request with a body that is not sent before it is asked for.
func (l *line) announce(path string, length int) {
	l.t.Helper()
	if _, err := fmt.Fprintf(l, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, length); err != nil {
		l.t.Fatal(err)
	}
}

// answer is the next that comes: 100 if the node reads the body.
func (l *line) answer() (status int, retryAfter string) {
	l.t.Helper()
	r, err := http.ReadResponse(l.read, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = r.Body.Close() })
	return r.StatusCode, r.Header.Get("Retry-After")
}

// F1-01: where no source is configured, there is no way in for peers, and
// nothing of what is sent there is read.
func TestWithoutASourceNothingIsReceived(t *testing.T) {
	t.Parallel()
	for conf, want := range map[string]int{
		"":                http.StatusNotFound,
		"role: central\n": http.StatusNotFound,
		withSource:        http.StatusContinue,
	} {
		url := serve(t, parse(t, conf))
		l := dial(t, url)
		l.announce(wire.ReceivePath, 1<<20)
		if status, _ := l.answer(); status != want {
			t.Errorf("%q: got %d, want %d", conf, status, want)
		}
		_, document := ask(t, http.MethodGet, url+"/openapi.json", "")
		if has := strings.Contains(document, `"`+wire.ReceivePath+`"`); has != (want == http.StatusContinue) {
			t.Errorf("%q: is the route in /openapi.json? %t", conf, has)
		}
	}
}

// F1-55: bodies of those who may use the API are bounded together. Who comes
// when there is no room is asked to come again before a byte of the body is
// read; requests without one are served.
func TestBodiesInHandAreBounded(t *testing.T) {
	t.Parallel()
	c := parse(t, "limits: {bodies: 1MiB}\n")
	url := serve(t, c)
	body := []byte(`{"destination": "self", "endpoint": "E", "payload": 1}`)
	body = append(body, bytes.Repeat([]byte(" "), 1<<20-len(body))...)
	first, second := dial(t, url), dial(t, url)
	first.announce("/v1/messages", len(body))
	if status, _ := first.answer(); status != http.StatusContinue {
		t.Fatalf("got %d, want the body asked for", status)
	}
	second.announce("/v1/messages", len(body))
	if status, text := ask(t, http.MethodGet, url+"/v1/messages", ""); status != http.StatusOK {
		t.Errorf("a request without a body: got %d %s", status, text)
	}
	if status, after := second.answer(); status != http.StatusServiceUnavailable || after == "" {
		t.Errorf("with no room: got %d, Retry-After %q", status, after)
	}
	if _, err := first.Write(body); err != nil {
		t.Fatal(err)
	}
	if status, _ := first.answer(); status != http.StatusAccepted {
		t.Errorf("the first: got %d", status)
	}
	if status, text := ask(t, http.MethodPost, url+"/v1/messages", string(body)); status != http.StatusAccepted {
		t.Errorf("with room again: got %d %s", status, text)
	}
	_, metrics := ask(t, http.MethodGet, url+"/metrics", "")
	if got := refusals(metrics, "http_503"); got != 1 {
		t.Errorf("%d refusals were counted, want one", got)
	}
}

// F1-18: connections that do nothing keep neither operators nor peers out.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	url := serve(t, parse(t, "limits: {connections: 16}\n"+withSource))
	client := sender(t, transport.ClientConfig{URL: url})
	for i := range 200 {
		l := dial(t, url)
		if i%2 == 0 { // one that has brought a request
			_, _ = io.WriteString(l, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		}
		if i%20 != 0 {
			continue
		}
		if status, text := ask(t, http.MethodGet, url+"/v1/messages", ""); status != http.StatusOK {
			t.Errorf("after %d connections the API answers %d %s", i, status, text)
		}
		m := holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte(`1`)}
		_, err := client.Deliver(t.Context(), m)
		if err != nil { // its connection was idle, too, and gave way just when the message went
			_, err = client.Deliver(t.Context(), m)
		}
		if err != nil {
			t.Errorf("after %d connections a message: %v", i, err)
		}
	}
	waittest.Until(t, "those over the bound are counted", func() bool {
		_, metrics := ask(t, http.MethodGet, url+"/metrics", "")
		return refusals(metrics, "connection") >= 180
	})
}

// F1-01: one connection has 64 requests in hand at most, also over HTTP/2.
func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	const most, sent = 64, 100
	conf := parse(t, withSource)
	made := certtest.New(t, time.Hour)
	conf.TLS.Cert, conf.TLS.Key = made.Cert, made.Key
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(made.PEM)
	c, err := tls.Dial("tcp", strings.TrimPrefix(serve(t, conf), "http://"), &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	begin(t, c, sent)
	offered, refused, done := uint32(0), 0, false
	for frames := http2.NewFramer(nil, c); !done || refused < sent-most; {
		f, err := frames.ReadFrame()
		if err != nil {
			t.Fatalf("after %d refusals: %v", refused, err)
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if v, ok := f.Value(http2.SettingMaxConcurrentStreams); ok {
				offered = v
			}
		case *http2.RSTStreamFrame:
			refused++
		case *http2.PingFrame:
			done = f.IsAck()
		}
	}
	if offered != most || refused != sent-most {
		t.Errorf("the node offers %d streams, and refused %d of %d", offered, refused, sent)
	}
}

// begin sends so many requests over HTTP/2 whose bodies do not come, and asks to
// be told when all have been seen.
func begin(t *testing.T, c net.Conn, n int) {
	t.Helper()
	var out, head bytes.Buffer
	out.WriteString(http2.ClientPreface)
	frames, fields := http2.NewFramer(&out, nil), hpack.NewEncoder(&head)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(frames.WriteSettings())
	check(frames.WriteSettingsAck())
	for i := range n {
		head.Reset()
		for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", wire.ReceivePath}, {"content-type", wire.MessageType}} {
			check(fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		check(frames.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: head.Bytes(), EndHeaders: true}))
	}
	check(frames.WritePing(false, [8]byte{}))
	_, err := c.Write(out.Bytes())
	check(err)
}
