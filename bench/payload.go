package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

const (
	payloadSize   = 512
	payloadDigits = 16
	payloadHead   = `{"n":"`
	payloadText   = `","text":"`
)

// payload returns a JSON object of 512 bytes that contains n. It must be cheap, since it is made
// while the clock runs.
func payload(n int) []byte {
	const zeros = "0000000000000000"
	b := make([]byte, 0, payloadSize)
	b = append(b, payloadHead...)
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(n), 10)
	b = append(append(b, zeros[:payloadDigits-len(d)]...), d...)
	b = append(b, payloadText...)
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	for len(b) < payloadSize-2 {
		b = append(b, alphabet[:min(len(alphabet), payloadSize-2-len(b))]...)
	}
	return append(b, `"}`...)
}

// payloadNumber reads n back. Contenders may encode the JSON again, so it skips blanks after the
// key.
func payloadNumber(b []byte) (int, error) {
	_, rest, ok := bytes.Cut(b, []byte(`"n":`))
	if !ok {
		return 0, fmt.Errorf("read payload %.40q: no number", b)
	}
	rest = bytes.TrimLeft(rest, ` "`)
	if len(rest) < payloadDigits {
		return 0, fmt.Errorf("read payload %.40q: cut short", b)
	}
	return strconv.Atoi(strings.TrimSpace(string(rest[:payloadDigits])))
}
