package httpapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The guide names every route.
func TestTheGuideNamesEveryRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	var doc document
	if err := json.Unmarshal(serve(t).do(t, call{method: "GET", path: "/openapi.json"}).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			if route := "`" + strings.ToUpper(method) + " " + path + "`"; !strings.Contains(guide, route) {
				t.Errorf("%s is not in the guide", route)
			}
		}
	}
}
