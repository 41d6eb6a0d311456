package wire_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The worked examples of the guide are the vectors'.
func TestGuideShowsTheVectors(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guide/wire-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	v := makeVectors(t)
	v1, v2 := v.Accept[0], v.Accept[1]
	want := []string{v1.Signature, v2.Signature, v2.SecretBase64, v2.KeyID, v2.PayloadSHA256, v2.Name, v.Replies[1].Body}
	for _, e := range v.Batch.Envelopes {
		want = append(want, fmt.Sprintf("\n%d\n", len(e)))
	}
	for _, w := range want {
		if !strings.Contains(string(guide), w) {
			t.Errorf("the guide does not show %q", w)
		}
	}
}
