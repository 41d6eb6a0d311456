package web

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin"
)

// A template that cannot be parsed would be found by who asks for its page first.
func TestEachTemplateIsParsed(t *testing.T) {
	t.Parallel()
	p, err := New(Settings{}, &admin.Service{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(sources, "templates/*.html")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for _, file := range files {
		if _, err := p.templates.page(strings.TrimSuffix(path.Base(file), ".html")); err != nil {
			t.Error(err)
		}
	}
}
