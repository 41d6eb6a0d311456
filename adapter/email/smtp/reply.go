package smtp

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// Limits of a reply.
const (
	mostLines = 1000
	mostBytes = 1 << 20
	keptText  = 64 << 10 // bytes of text; of each line what fits the buffer
)

var (
	// ErrTurn means that the server spoke unasked, or that its reply is no answer to the command.
	ErrTurn = errors.New("the server speaks out of turn")
	// ErrEndless means that a reply had no end.
	ErrEndless = errors.New("the answer has no end")
)

// GarbageError is a line that is not part of a reply.
type GarbageError struct{ Line string }

func (e *GarbageError) Error() string { return fmt.Sprintf("this is no reply: %q", e.Line) }

// Reply is the server's reply to one command.
type Reply struct {
	Code     int
	Enhanced string // such as 5.1.1 (RFC 3463); empty: none
	Text     string // the lines without their codes, unchanged
}

// OK reports that the server has done what it was asked.
func (r Reply) OK() bool { return r.Code/100 == 2 }

// Permanent reports that the server will not do it later either.
func (r Reply) Permanent() bool { return r.Code/100 == 5 }

// Closing reports that the server closes the connection.
func (r Reply) Closing() bool { return r.Code == 421 }

// TooMany reports that the server accepts fewer recipients in one mail: 452, or 552 from servers
// that use it in this sense (RFC 5321, 4.5.3.1.10).
func (r Reply) TooMany() bool {
	text := strings.ToLower(r.Text)
	switch r.Code {
	case 452:
		return r.Enhanced == "4.5.3" || strings.Contains(text, "too many")
	case 552:
		return r.Enhanced == "5.5.3" || strings.Contains(text, "recipient") && r.Enhanced == ""
	}
	return false
}

// String returns the code and the enhanced code.
func (r Reply) String() string {
	if r.Enhanced == "" {
		return fmt.Sprint(r.Code)
	}
	return fmt.Sprintf("%d %s", r.Code, r.Enhanced)
}

// reply reads one whole reply. If its lines differ in their code, the last one counts, as in other
// clients.
func (c *Client) reply() (Reply, error) {
	var text strings.Builder
	left := mostBytes
	for range mostLines {
		line, err := c.line(&left)
		if err != nil {
			return Reply{}, c.fail(err)
		}
		code, words, more, ok := parts(line)
		if !ok {
			return Reply{}, c.fail(&GarbageError{Line: string(line)})
		}
		if text.Len() < keptText {
			_, _ = text.Write(words)
			_ = text.WriteByte('\n')
		}
		if !more {
			r := enhanced(code, strings.TrimSuffix(text.String(), "\n"))
			if r.Closing() {
				c.broken = errClosed
			}
			return r, nil
		}
	}
	return Reply{}, c.fail(ErrEndless)
}

// line reads a line and returns its beginning, valid until the next read. Text without a line end
// is no line.
func (c *Client) line(left *int) ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if *left -= len(line); errors.Is(err, bufio.ErrBufferFull) {
		c.spare = append(c.spare[:0], line...)
		line = c.spare
		for errors.Is(err, bufio.ErrBufferFull) && *left >= 0 {
			var rest []byte
			rest, err = c.in.ReadSlice('\n')
			*left -= len(rest)
		}
	}
	switch {
	case *left < 0:
		return nil, ErrEndless
	case err != nil:
		return nil, err
	}
	return trimmed(line), nil
}

// trimmed returns a line without its end.
func trimmed(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// parts splits a line into a code of three figures, then a hyphen if more lines follow, or a space
// and text, or nothing (RFC 5321, 4.2).
func parts(line []byte) (code int, text []byte, more, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' {
		return 0, nil, false, false
	}
	for _, b := range line[:3] {
		if b < '0' || b > '9' {
			return 0, nil, false, false
		}
		code = 10*code + int(b-'0')
	}
	if len(line) == 3 {
		return code, nil, false, true
	}
	switch line[3] {
	case '-':
		return code, line[4:], true, true
	case ' ', '\t':
		return code, line[4:], false, true
	}
	return 0, nil, false, false
}

// enhanced takes the enhanced code out of the text. Each line may repeat it.
func enhanced(code int, text string) Reply {
	end := strings.IndexAny(text, " \n")
	if end < 0 {
		end = len(text)
	}
	word := text[:end]
	if !isEnhanced(word) {
		return Reply{Code: code, Text: text}
	}
	text = strings.ReplaceAll("\n"+text+"\n", "\n"+word+" ", "\n")
	return Reply{code, word, strings.TrimSpace(strings.ReplaceAll(text, "\n"+word+"\n", "\n\n"))}
}

// isEnhanced reports whether a word is a code such as 5.1.1.
func isEnhanced(word string) bool {
	if len(word) < 5 || len(word) > 9 || word[0] != '2' && word[0] != '4' && word[0] != '5' || word[1] != '.' {
		return false
	}
	subject, detail, ok := strings.Cut(word[2:], ".")
	return ok && isNumber(subject) && isNumber(detail)
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 3 && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
