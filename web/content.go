package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// content is a payload as it is shown.
type content struct {
	Size  int
	Kind  string // JSON, text or binary
	Shown string // its beginning; empty: it is only to be had as a file
	More  string // the rest, folded
	Lines int    // of More
}

// Bounds of what is shown of a payload.
const (
	mostShown = 256 << 10
	mostLines = 200
)

// contentOf shows a payload. JSON is indented, and no number, name or order is changed by that.
func contentOf(m *api.MessageDetail) content { return shownContent(payloadOf(m), m.Payload != nil) }

// shownContent shows bytes, which are JSON or not.
func shownContent(raw []byte, isJSON bool) content {
	c := content{Size: len(raw), Kind: "binary"}
	text := ""
	switch {
	case isJSON:
		c.Kind = "JSON"
		if len(raw) <= mostShown {
			text = indented(raw)
		}
	case utf8.Valid(raw) && !bytes.ContainsRune(raw, 0):
		c.Kind = "text"
		text = string(raw)
	}
	if c.Kind == "binary" || len(raw) > mostShown || len(text) > 4*mostShown {
		return c
	}
	c.Shown = text
	if lines := strings.SplitAfterN(text, "\n", mostLines+1); len(lines) > mostLines {
		c.Shown, c.More = strings.TrimSuffix(strings.Join(lines[:mostLines], ""), "\n"), lines[mostLines]
		c.Lines = strings.Count(c.More, "\n") + 1
	}
	return c
}

// payloadOf returns the bytes of a payload.
func payloadOf(m *api.MessageDetail) []byte {
	if m.Payload != nil {
		return m.Payload
	}
	raw, _ := base64.StdEncoding.DecodeString(m.PayloadBase64) // admin has just written it
	return raw
}

// indented returns JSON with a line for each member. Characters that would act are escaped, which is the same
// JSON.
func indented(raw []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return string(raw)
	}
	text := out.String()
	if !strings.ContainsFunc(text, acts) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if acts(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// file is an answer that a browser saves and does not show.
type file struct {
	name    string
	content []byte
}

func (f *file) send(_ *Pages, w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	h.Set("Content-Length", strconv.Itoa(len(f.content)))
	_, _ = w.Write(f.content) //nolint:gosec // an attachment, which no browser reads as a page; if it fails, the browser is gone
}

func (p *Pages) payload(r *http.Request) (answer, error) {
	m, err := admin.Messages{Service: p.Service}.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	name := "payload-" + strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, m.ID)
	if m.Payload != nil {
		name += ".json"
	}
	return &file{name, payloadOf(&m)}, nil
}
