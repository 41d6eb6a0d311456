// Command go receives webhooks: it verifies each, acts once for each id, and confirms by 204. It
// needs nothing but the standard library.
//
//	WEBHOOK_SECRET=whsec_… go run ./examples/receivers/go 127.0.0.1:9000
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tolerance = 5 * time.Minute // how far the sender's clock may be off
	mostBody  = 1 << 20
)

func main() {
	if err := run(strings.Join(os.Args[1:], " "), os.Getenv("WEBHOOK_SECRET"), os.Stdout); err != nil { //nolint:forbidigo // the output of this program
		fmt.Fprintln(os.Stderr, err) //nolint:forbidigo // the same
		os.Exit(1)
	}
}

func run(address, secret string, out io.Writer) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 {
		return fmt.Errorf("WEBHOOK_SECRET must be whsec_ and base64 of at least 24 bytes")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "listening on", l.Addr())
	server := &http.Server{Handler: &receiver{key: key, out: out, done: map[string]bool{}}, ReadTimeout: 10 * time.Second}
	return server.Serve(l)
}

type receiver struct {
	key []byte
	out io.Writer

	mu   sync.Mutex
	done map[string]bool // in a real program: a table, written in the transaction of the effect
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, mostBody)) // the bytes as they came
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := req.Header.Get("webhook-id")
	if !r.verify(id, req.Header.Get("webhook-timestamp"), req.Header.Get("webhook-signature"), body, time.Now()) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done[id] {
		_, _ = fmt.Fprintf(r.out, "%s %s\n", id, body) // the effect; slow work is noted here and done later
		r.done[id] = true
	}
	w.WriteHeader(http.StatusNoContent) // the first time, and each other time
}

// verify reports whether one of the signatures is ours. While a secret is replaced there are two.
func (r *receiver) verify(id, timestamp, signatures string, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, r.key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for one := range strings.FieldsSeq(signatures) {
		if hmac.Equal([]byte(one), []byte(want)) {
			return true
		}
	}
	return false
}
