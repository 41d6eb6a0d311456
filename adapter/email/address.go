package email

import (
	"errors"
	"net/mail"
	"strings"

	"golang.org/x/net/idna"
)

// ParseAddress returns the address of one recipient as it stands in an
// envelope: its domain in ASCII (E50), its local part as it is. It takes no
// name beside it and no second address (E46). The error says what is wrong.
func ParseAddress(s string) (string, error) {
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return "", errors.New("the address is empty")
	case strings.ContainsAny(text, ",;") && !strings.Contains(text, `"`):
		return "", errors.New("one address is wanted, and this looks like several")
	}
	a, err := parseMailbox(text)
	switch {
	case err != nil:
		return "", err
	case strings.ContainsAny(text, "<>") || a.Name != "":
		return "", errors.New("the address alone is wanted, without a name and without < and >")
	}
	return a.Address, nil
}

// parseMailbox reads an address that may have a name.
func parseMailbox(text string) (*mail.Address, error) {
	if len(text) > 1000 {
		return nil, errors.New("it is longer than any address")
	}
	if strings.ContainsFunc(text, isControl) {
		return nil, errors.New("it has control characters")
	}
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "mail: "))
	}
	at := strings.LastIndexByte(a.Address, '@')
	local, domain := a.Address[:at], a.Address[at+1:]
	if strings.HasPrefix(domain, "[") {
		if !isLiteral(domain) {
			return nil, errors.New("what stands in brackets is no IP address")
		}
	} else if domain, err = idna.Lookup.ToASCII(strings.TrimSuffix(domain, ".")); err != nil || !isHost(domain) {
		return nil, errors.New("what stands after the @ is no domain")
	}
	switch {
	case len(local) > 64:
		return nil, errors.New("what stands before the @ is longer than 64 bytes")
	case len(domain) > 253:
		return nil, errors.New("what stands after the @ is longer than 253 bytes")
	case !isAtom(local):
		return nil, errors.New("what stands before the @ has characters that need quotes, which many servers do not take")
	}
	a.Address = local + "@" + domain
	return a, nil
}

// isAtom says whether a local part needs no quotes.
func isAtom(local string) bool {
	return !strings.ContainsFunc(local, func(r rune) bool {
		return r <= ' ' || r == 0xa0 || r < 0x7f && strings.ContainsRune("()<>[]:;@\\,\"", r) || r == 0x7f
	})
}
