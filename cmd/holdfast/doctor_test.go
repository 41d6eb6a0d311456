package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/doctor"
)

// examined runs doctor to its end.
func examined(t *testing.T, args ...string) (checks map[string]doctor.Check, r doctor.Report, code int, out string) {
	t.Helper()
	out, complaint, code := command(t, append([]string{"doctor", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("doctor: exit code %d, %v: %s %s", code, err, out, complaint)
	}
	checks = map[string]doctor.Check{}
	for _, c := range r.Checks {
		checks[c.Name] = c
	}
	return checks, r, code, out
}

func wantChecks(t *testing.T, checks map[string]doctor.Check, want map[string]doctor.Status) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got := checks[name]; got.Status != want[name] {
			t.Errorf("%s: got %q, want %q: %s; %s", name, got.Status, want[name], got.Detail, got.Hint)
		}
	}
}

// files is what is in a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ofTheMachine are checks that depend on where the tests run.
func ofTheMachine() []string { return []string{"sync speed", "file system", "space", "inodes"} }

func TestDoctorOfAHealthyNode(t *testing.T) {
	t.Parallel()
	c := serving(t, "")
	for _, running := range []bool{true, false} {
		if !running {
			if err := c.end(); err != nil {
				t.Fatal(err)
			}
		}
		before := files(t, c.data)
		checks, r, code, _ := examined(t, c.args[2:]...)
		for name, check := range checks {
			if (check.Status == doctor.Warning || check.Status == doctor.Failing) && !slices.Contains(ofTheMachine(), name) {
				t.Errorf("running %t: %s is %s: %s", running, name, check.Status, check.Detail)
			}
		}
		wantChecks(t, checks, map[string]doctor.Status{"ownership": "ok", "address": "ok", "integrity": "ok", "schema": "ok", "journal": "ok", "self": "ok"})
		if got := checks["health"].Status == doctor.OK; got != running {
			t.Errorf("running %t: health is %+v", running, checks["health"])
		}
		if want := map[doctor.Status]int{doctor.OK: 0, doctor.Warning: 7, doctor.Failing: 8}[r.Status]; code != want {
			t.Errorf("got exit code %d of a report that is %s, want %d", code, r.Status, want)
		}
		if diff := cmp.Diff(before, files(t, c.data)); diff != "" {
			t.Errorf("running %t: the folder is not what it was (-want +got):\n%s", running, diff)
		}
	}
}

// town is a node with destinations of every sort, and a peer that is a node.
func town(t *testing.T) (c, peer *child, secrets []string) {
	t.Helper()
	dir := t.TempDir()
	right, wrong := filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
	secrets = []string{base64.StdEncoding.EncodeToString([]byte(rigSecret)), base64.StdEncoding.EncodeToString([]byte("another secret of the tests"))}
	write(t, right, secrets[0])
	write(t, wrong, secrets[1])
	peer = serving(t, fmt.Sprintf("{node: {id: peer}, receive: {secrets: {town: {file: %s}}, endpoints: {Kept: {keep: true}}}}", right))
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	good, goodCA := secure(t, time.Now().Add(5*24*time.Hour))
	old, oldCA := secure(t, time.Now().Add(-time.Hour))
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, goodCA+oldCA)
	c = serving(t, fmt.Sprintf(`
node: {id: town}
destinations:
  right: {url: "%[1]s", secret: {file: %[2]s}}
  wrong: {url: "%[1]s", secret: {file: %[3]s}}
  down: {url: "http://%[4]s", secret: {file: %[2]s}}
  silent: {url: "http://%[5]s", secret: {file: %[2]s}}
  soon: {url: "%[6]s", secret: {file: %[2]s}, ca: %[8]s}
  ended: {url: "%[7]s", secret: {file: %[2]s}, ca: %[8]s}
  stranger: {url: "%[6]s", secret: {file: %[2]s}}
receive:
  secrets: {peer: {file: %[2]s}}
  endpoints:
    Up: {forward: "http://%[5]s/private?key=hush"}
    Down: {forward: "http://%[4]s"}
`, peer.url(), right, wrong, freeAddress(t), silent.Addr(), good, old, ca))
	return c, peer, append(secrets, "hush")
}

// secure is a server whose certificate ends then, and its CA.
func secure(t *testing.T, until time.Time) (url, ca string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestDoctorAsksEachDestinationAndDeliversNothing(t *testing.T) {
	t.Parallel()
	c, peer, secrets := town(t)
	for _, id := range []string{"a", "b"} {
		if out, complaint, code := command(t, "send", "down", "E", "--id", id, "--url", c.url()); code != 0 {
			t.Fatal(out, complaint)
		}
	}
	begun := time.Now()
	checks, _, code, out := examined(t, append(c.args[2:], "--timeout", "2s")...)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s with a time-out of 2 s for each", took)
	}
	wantChecks(t, checks, map[string]doctor.Status{
		"right": doctor.OK, "right credentials": doctor.OK, "wrong": doctor.OK, "wrong credentials": doctor.Failing,
		"down": doctor.Warning, "silent": doctor.Warning, "soon certificate": doctor.Warning, "ended certificate": doctor.Failing,
		"stranger": doctor.Failing, "Up": doctor.OK, "Down": doctor.Warning, "clock of the destinations": doctor.OK,
		"ownership": doctor.OK, "address": doctor.OK, "permissions of the secret of destination wrong": doctor.OK, "integrity": doctor.OK,
	})
	if code != exitFailing {
		t.Errorf("got exit code %d, want %d", code, exitFailing)
	}
	text, _, _ := command(t, append([]string{"doctor", "--timeout", "1s"}, c.args[2:]...)...)
	for _, secret := range secrets {
		if strings.Contains(out+text, secret) {
			t.Errorf("%q is in what it printed:\n%s\n%s", secret, out, text)
		}
	}
	if got := get(t, peer.url()+"/_rf/inbox/stats"); !strings.Contains(got, `"received":0`) {
		t.Errorf("the peer says %s, want nothing received", got)
	}
	for _, p := range []*child{c, peer} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
	// The node has gone; what it left is told from its file.
	checks, _, _, _ = examined(t, "--data", c.data, "--listen", c.address)
	wantChecks(t, checks, map[string]doctor.Status{"health": doctor.Skipped, "without a destination": doctor.Warning, "parked": doctor.OK})
	if got := checks["without a destination"].Items; !slices.Equal(got, []string{"down"}) {
		t.Errorf("got %q, want down", got)
	}
}

// A node with TLS and tokens is recognised by its certificate, and asked with
// a token.
func TestDoctorOfANodeWithTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"node.example"}, NotAfter: time.Now().Add(240 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
	config := filepath.Join(dir, "holdfast.yaml")
	c := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "data")}
	write(t, config, fmt.Sprintf("{node: {id: n}, listen: %q, data: %s, tls: {cert: %s, key: %s}}", c.address, c.data, cert, key))
	c.args = []string{"holdfast", "serve", "--config", config}
	c.start()
	t.Cleanup(c.kill)
	eventually(t, "the node listens", func() bool {
		checks, _, _, _ := examined(t, "--config", config)
		return checks["health"].Status == doctor.OK
	})
	checks, _, _, _ := examined(t, "--config", config)
	wantChecks(t, checks, map[string]doctor.Status{"address": doctor.OK, "health": doctor.OK, "certificate of this node": doctor.Warning})
	// A stranger at the address is not taken for the node.
	other, _ := secure(t, time.Now().Add(time.Hour))
	checks, _, _, _ = examined(t, "--config", config, "--listen", strings.TrimPrefix(other, "https://"), "--data", filepath.Join(dir, "none"))
	wantChecks(t, checks, map[string]doctor.Status{"address": doctor.Failing})
}

// A node that was killed has left its log, and doctor leaves it, too.
func TestDoctorOfAKilledNode(t *testing.T) {
	t.Parallel()
	c := serving(t, "")
	if out, complaint, code := command(t, "send", "self", "E", "--id", "a", "--url", c.url()); code != 0 {
		t.Fatal(out, complaint)
	}
	c.kill()
	path := filepath.Join(c.data, "holdfast.db")
	read := func() string {
		var all []string
		for _, suffix := range []string{"", "-wal"} {
			text, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(text))
		}
		return strings.Join(all, "|")
	}
	before, names := read(), files(t, c.data)
	checks, _, _, _ := examined(t, append(c.args[2:], "--full")...)
	wantChecks(t, checks, map[string]doctor.Status{"ownership": doctor.OK, "database": doctor.OK, "integrity": doctor.OK})
	if !strings.Contains(checks["ownership"].Detail, "the last was process") {
		t.Errorf("got %q, want the last owner", checks["ownership"].Detail)
	}
	if read() != before {
		t.Error("the database or its log is not what it was")
	}
	if diff := cmp.Diff(names, files(t, c.data)); diff != "" {
		t.Errorf("the folder is not what it was (-want +got):\n%s", diff)
	}
}
