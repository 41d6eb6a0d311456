package main

import (
	"bytes"
	"testing"
)

func TestColumnsLineUpBelowARowThatEndsEarly(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := table(&b, []string{"ID", "TARGET", "ERROR"}, [][]string{{"one", "", ""}, {"twenty-two", "x", "none"}}); err != nil {
		t.Fatal(err)
	}
	if want := "ID          TARGET  ERROR\none\ntwenty-two  x       none\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
