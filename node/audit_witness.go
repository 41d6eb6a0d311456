package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Bounds of a witness that is reached by HTTP.
const (
	witnessWait  = 10 * time.Second // for all that one checkpoint takes
	witnessText  = 1 << 20          // bytes of what it keeps
	witnessToken = 4 << 10          // bytes of the token's file
	witnessTries = 3                // while others write at the same moment
)

// webWitness is a witness that keeps one text under a URL: GET reads it, PUT replaces it (ADR 0056). A checkpoint that
// it could not keep is given to it again by the log, a minute later.
type webWitness struct {
	url, read string // to write, and to read
	token     string // path of the file with the bearer token; empty: none
	client    *exchange.Client
	had       atomic.Bool // it has kept something
}

var _ audit.Witness = (*webWitness)(nil)

// witnessOf returns the configured witness, or nil.
func witnessOf(c *config.Audit) (audit.Witness, error) {
	switch {
	case c.Remote.URL != "":
		return newWebWitness(&c.Remote)
	case c.Witness != "":
		return audit.File(c.Witness), nil
	}
	return nil, nil //nolint:nilnil // none is a choice
}

// notesOf returns the witness that a flag names: a URL, or the path of a file.
func notesOf(c *config.Audit, witness string) (audit.Notes, error) {
	switch {
	case witness != "" && witness == c.Remote.URL:
		return newWebWitness(&c.Remote)
	case strings.HasPrefix(witness, "https://") || strings.HasPrefix(witness, "http://"):
		return newWebWitness(&config.RemoteWitness{URL: witness, CA: c.Remote.CA})
	case witness != "":
		return audit.File(witness), nil
	}
	w, err := witnessOf(c)
	if w == nil {
		return nil, err
	}
	return w, err
}

func newWebWitness(c *config.RemoteWitness) (*webWitness, error) {
	var conf *tls.Config
	if c.CA != "" {
		roots, err := namedfile.Authorities(c.CA)
		if err != nil {
			return nil, fmt.Errorf("audit.remote.ca: %w", err)
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	w := &webWitness{url: c.URL, read: c.Read, token: c.Token, client: exchange.NewClient(exchange.Settings{TLS: conf, Proxy: exchange.FromEnvironment})}
	if w.read == "" {
		w.read = w.url
	}
	return w, nil
}

// errGone means that nothing is where the witness has kept something.
var errGone = errors.New("what it has kept is gone; if somebody has taken it away, start the node again")

// errReplaced means that somebody has written meanwhile.
var errReplaced = errors.New("what it keeps has changed meanwhile")

// Keep implements audit.Witness.
func (w *webWitness) Keep(ctx context.Context, note string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessWait)
	defer cancel()
	for range witnessTries {
		var was kept
		if was, err = w.get(ctx); err != nil {
			return err
		}
		var next string
		if next, err = audit.AddNote(was.text, note); err != nil || next == was.text {
			return err
		}
		if err = w.put(ctx, next, was); !errors.Is(err, errReplaced) {
			return err
		}
	}
	return err
}

// Each implements audit.Notes.
func (w *webWitness) Each(yield func(note string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), witnessWait)
	defer cancel()
	was, err := w.get(ctx)
	if err != nil {
		return err
	}
	return audit.EachNote(strings.NewReader(was.text), yield)
}

// kept is what a witness keeps.
type kept struct {
	text string
	tag  string // by which it knows that; empty: it has not said one
	none bool   // there is nothing yet
}

// get reads what the witness keeps. Nothing yet is no error. Nothing any more is one: a proxy, or
// a volume that is not there, may say so for a moment.
func (w *webWitness) get(ctx context.Context) (was kept, err error) {
	resp, err := w.do(ctx, http.MethodGet, w.read, "", nil)
	if err != nil {
		return was, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusNoContent:
		if w.had.Load() {
			return was, fmt.Errorf("witness: GET %s: it answered %d: %w", secrets.URL(w.read), resp.StatusCode, errGone)
		}
		return kept{none: true}, nil
	case resp.StatusCode != http.StatusOK:
		return was, fmt.Errorf("witness: GET %s: it answered %d", secrets.URL(w.read), resp.StatusCode)
	}
	all, err := io.ReadAll(io.LimitReader(resp.Body, witnessText+1))
	switch {
	case err != nil:
		return was, fmt.Errorf("witness: GET %s: the answer broke off", secrets.URL(w.read))
	case len(all) > witnessText:
		return was, fmt.Errorf("witness: GET %s: the answer has more than %d bytes", secrets.URL(w.read), witnessText)
	}
	if len(all) > 0 {
		w.had.Store(true)
	}
	was.text = string(all)
	if tag := resp.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") { // a weak one does not say that each byte is the same
		was.tag = tag
	}
	return was, nil
}

// put replaces what the witness keeps, if that is still what get has returned.
func (w *webWitness) put(ctx context.Context, text string, was kept) error {
	resp, err := w.do(ctx, http.MethodPut, w.url, text, &was)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // the status has decided
	switch {
	case resp.StatusCode == http.StatusPreconditionFailed || resp.StatusCode == http.StatusConflict:
		return fmt.Errorf("witness: PUT %s: %w", secrets.URL(w.url), errReplaced)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("witness: PUT %s: it answered %d", secrets.URL(w.url), resp.StatusCode)
	}
	w.had.Store(true)
	return nil
}

func (w *webWitness) do(ctx context.Context, method, url, body string, was *kept) (*http.Response, error) {
	wrong := func(err error) error { return fmt.Errorf("witness: %s %s: %w", method, secrets.URL(url), err) }
	var from io.Reader
	if method == http.MethodPut {
		from = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, from)
	if err != nil {
		return nil, wrong(errors.New("it is not a URL"))
	}
	var hidden secrets.Set
	hidden.AddURL(url)
	if w.token != "" { // read each time: who changes the token changes the file
		token, err := namedfile.Read(w.token, witnessToken)
		if err != nil {
			return nil, wrong(err)
		}
		text := strings.TrimSpace(string(token))
		hidden.Add(text)
		req.Header.Set("Authorization", "Bearer "+text)
	}
	req.Header.Set("User-Agent", "holdfast")
	if method == http.MethodPut {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	switch {
	case was == nil:
	case was.none:
		req.Header.Set("If-None-Match", "*")
	case was.tag != "":
		req.Header.Set("If-Match", was.tag)
	}
	resp, f := w.client.Do(req, func() *secrets.Set { return &hidden })
	if f != nil {
		return nil, wrong(f)
	}
	return resp, nil
}
