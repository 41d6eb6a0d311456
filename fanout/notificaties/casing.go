package notificaties

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast/fanout/filter"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// accepts reports whether the caller takes JSON, or the media type of the request itself.
func accepts(r *http.Request, media string) bool {
	list := r.Header.Values("Accept")
	if len(list) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(list, ","), ",") {
		t, params, err := mime.ParseMediaType(part)
		if err == nil && params["q"] != "0" && (t == "*/*" || t == "application/*" || t == "application/json" || t == "application/problem+json" || t == media) {
			return true
		}
	}
	return false
}

// body reads a request's body of the given media type; empty: application/json. The caller is known.
func (s *Server) body(r *http.Request, media string) ([]byte, error) {
	if media == "" {
		media = "application/json"
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != media {
		return nil, unsupported(r.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, s.MaxBody+1))
	switch {
	case errors.Is(err, serve.ErrCrowded):
		return nil, busy()
	case err != nil:
		return nil, parseError("het breekt af.")
	case int64(len(text)) > s.MaxBody:
		return nil, tooLarge(s.MaxBody)
	}
	return text, nil
}

// maxDepth bounds the nesting of a body.
const maxDepth = 32

// decode reads a body whose keys may be in camel case or snake case, at every depth: they come back in the
// one form of filter.Key, which is camel case. Of two keys that are one in this form, the last counts.
// Numbers are json.Number.
func decode(text []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	v, err := value(dec)
	if err == nil {
		if _, end := dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("er staat meer achter de waarde")
		}
	}
	if err != nil {
		return nil, parseError(clip(err.Error()))
	}
	return v, nil
}

func value(dec *jsontext.Decoder) (any, error) {
	if dec.StackDepth() > maxDepth {
		return nil, errors.New("het is te diep genest")
	}
	t, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() { //nolint:exhaustive // a token that is read has no other kind than null
	case jsontext.KindBeginObject:
		all := map[string]any{}
		for dec.PeekKind() != jsontext.KindEndObject {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := filter.Key(name.String())
			if all[key], err = value(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return all, err
	case jsontext.KindBeginArray:
		all := []any{}
		for dec.PeekKind() != jsontext.KindEndArray {
			v, err := value(dec)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err := dec.ReadToken()
		return all, err
	case jsontext.KindString:
		return t.String(), nil
	case jsontext.KindNumber:
		return json.Number(t.String()), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return t.Bool(), nil
	default:
		return nil, nil
	}
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // the caller has gone away
	return nil
}
