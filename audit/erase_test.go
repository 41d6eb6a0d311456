package audit_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/audit"
)

// An erasure takes what names the person, and not what names somebody whose address has theirs in it.
func TestWhoIsNamed(t *testing.T) {
	t.Parallel()
	const person = "A.Smit@Example.org"
	for text, want := range map[string]bool{
		"a.smit@example.org": true, "A.SMIT@EXAMPLE.ORG": true, "550 <a.smit@example.org>: unknown": true, "mailto:a.smit@example.org.": true,
		`{"to":"a.smit@example.org"}`: true, `{"text":"Dear\na.smit@example.org\tx"}`: true, "550 'a.smit@example.org' unknown": true, "to a.smit@example.org. Then": true,
		"xa.smit@example.org, a.smit@example.org": true, "éa.smit@example.org": false,
		"da.smit@example.org": false, "j.a.smit@example.org": false, "x+a.smit@example.org": false, "o'a.smit@example.org": false,
		"a.smit@example.organic": false, "a.smit@example.org.uk": false, "a.smit@example.org-x": false, "a.smit@example": false, "": false,
	} {
		if got := audit.Names(text, person); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if audit.Names("anything", "") {
		t.Error("nobody is named everywhere")
	}
}
