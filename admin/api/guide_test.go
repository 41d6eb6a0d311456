package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
)

func TestTheGuideNamesEverySortOfProblem(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sort := range api.Sorts() {
		if !strings.Contains(string(guide), "`"+sort+"`") {
			t.Errorf("problem %s is not in the guide", sort)
		}
	}
}
