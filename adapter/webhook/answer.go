package webhook

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Limits of an answer's body.
const (
	mostKept = 16 << 10 // bytes that are kept, after decoding
	mostRead = 64 << 10 // bytes that are read, before it
	excerpt  = 500      // bytes that stand in the text of a failure
)

// answer is what is kept of an answer.
type answer struct {
	status int
	header http.Header
	text   []byte // valid UTF-8, without secrets
	cut    bool   // the body was longer, broke off, or cannot be decoded
}

// read reads an answer until it ends, or the deadline of its exchange. No fault of the body is one of
// the exchange.
func read(resp *http.Response, hide func() *secrets.Set) answer {
	a := answer{status: resp.StatusCode, header: resp.Header}
	if resp.ContentLength == 0 {
		return a
	}
	raw := io.LimitReader(resp.Body, mostRead)
	decoded, err := decoder(resp.Header.Get("Content-Encoding"), raw)
	if err != nil {
		a.cut = true
		return a
	}
	hidden := hide()
	most := mostKept + hidden.Longest() // a secret at the end is there as a whole
	text, err := io.ReadAll(io.LimitReader(decoded, int64(most)+1))
	a.cut = err != nil || len(text) > most
	if !a.cut {
		_, _ = io.Copy(io.Discard, raw) // a body that was read to its end leaves a connection for the next request
	}
	if len(text) == 0 {
		return a
	}
	clean := string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	if a.cut {
		clean = hidden.CleanStart(clean)
	} else {
		clean = hidden.Clean(clean)
	}
	if len(clean) > mostKept {
		clean, a.cut = strings.TrimSuffix(shown.Clip(clean, mostKept), "…"), true
	}
	a.text = []byte(clean)
	return a
}

// decoder undoes the encoding of a body. We ask for none, and some servers use one all the same.
func decoder(encoding string, raw io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return raw, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(raw)
	case "deflate":
		return zlib.NewReader(raw)
	}
	return nil, errors.New("unknown encoding")
}

// excerpt returns the beginning of the body, on one line.
func (a *answer) excerpt() string {
	return strings.Join(strings.Fields(shown.Line(string(a.text), excerpt)), " ")
}
