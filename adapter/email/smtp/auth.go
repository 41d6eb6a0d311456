package smtp

import (
	"encoding/base64"
	"strings"
)

// mostCommand is the longest command, line end included, that each server accepts (RFC 5321,
// 4.5.3.1.4). The lines of an authentication exchange may be longer (RFC 4954, 4).
const mostCommand = 512

// Auth runs an authentication exchange (RFC 4954). first is our initial response; nil: none. If the
// command would be too long with it, it is sent on a line of its own. next answers a challenge. An
// error of next cancels the exchange and is returned.
func (c *Client) Auth(mechanism string, first []byte, next func(challenge []byte) ([]byte, error)) (Reply, error) {
	line := "AUTH " + mechanism
	if first != nil {
		with := line + " " + encode(first)
		if len(first) == 0 {
			with = line + " ="
		}
		if len(with)+len("\r\n") <= mostCommand {
			line, first = with, nil
		}
	}
	for {
		r, err := c.exchange(line)
		if err != nil || r.Code != 334 {
			return r, err
		}
		answer := first
		if first == nil {
			if answer, err = next(decode(r.Text)); err != nil {
				_, _ = c.exchange("*")
				return Reply{}, c.fail(err)
			}
		}
		line, first = encode(answer), nil
	}
}

// exchange sends a line whose reply may be a challenge.
func (c *Client) exchange(line string) (Reply, error) {
	if err := c.say(line); err != nil {
		return Reply{}, err
	}
	r, err := c.reply()
	if err == nil && r.Code/100 == 3 && r.Code != 334 {
		return Reply{}, c.fail(ErrTurn)
	}
	return r, err
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// decode reads a challenge. Some servers ask for user and password without base64.
func decode(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return []byte(text)
	}
	return b
}
