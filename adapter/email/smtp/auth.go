package smtp

import (
	"encoding/base64"
	"strings"
)

// mostCommand is the length of a command, its end included, that each server
// takes (RFC 5321, 4.5.3.1.4); the lines of an exchange may be longer (RFC 4954, 4).
const mostCommand = 512

// Auth makes an exchange of a mechanism (RFC 4954). first is what we say
// before the server asks; nil: nothing. Where the command would be too long with it, it
// has a line of its own. next answers a challenge; its error calls the
// exchange off, and is returned.
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

// exchange is a command that may be answered by a challenge.
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

// decode reads a challenge. Some servers ask for user and password in clear.
func decode(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return []byte(text)
	}
	return b
}
