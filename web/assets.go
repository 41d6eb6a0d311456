package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// assetFolder is where assets are, below Root.
const assetFolder = "static/"

// asset is one embedded file, as it is sent.
type asset struct {
	plain, zipped []byte
	kind, etag    string
}

// loadAssets names each embedded file by its content, so that a browser keeps it for ever, and compresses it.
func (p *Pages) loadAssets() error {
	p.assets, p.names = map[string]*asset{}, map[string]string{}
	files, err := fs.Glob(static, "static/*.*")
	if err != nil {
		return fmt.Errorf("list assets: %w", err)
	}
	for _, file := range files {
		content, err := static.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read asset: %w", err)
		}
		hash := sha256.Sum256(content)
		sum := hex.EncodeToString(hash[:6])
		name, ext := path.Base(file), path.Ext(file)
		a := &asset{plain: content, kind: kindOf(ext), etag: `"` + sum + `"`}
		var zipped bytes.Buffer
		z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is known
		_, _ = z.Write(content)                                    // a buffer takes all
		_ = z.Close()
		if zipped.Len() < len(content) {
			a.zipped = zipped.Bytes()
		}
		hashed := strings.TrimSuffix(name, ext) + "-" + sum + ext
		p.assets[hashed], p.names[name] = a, hashed
	}
	return nil
}

// kindOf returns the media type of a file. Systems differ about some of them.
func kindOf(ext string) string {
	switch ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(ext)
}

// asset returns the path of an embedded file, for a template. An unknown name fails where the page is tested.
func (p *Pages) asset(name string) (string, error) {
	hashed, ok := p.names[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return p.Base + Root + assetFolder + hashed, nil
}

func (p *Pages) serveAsset(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	a, ok := p.assets[r.PathValue("name")]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	h, content := w.Header(), a.plain
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", a.etag)
	if a.zipped != nil && zips(r) {
		content = a.zipped
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", strings.TrimSuffix(a.etag, `"`)+`-gzip"`)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// zips reports whether a browser takes gzip.
func zips(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}
