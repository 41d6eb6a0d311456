package email

import (
	"errors"
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/holdfast-mq/holdfast"
)

// ParseAddress returns the address of one recipient in the form of an envelope: its domain in ASCII
// (E50), its local part unchanged. It accepts no name beside the address and no second address
// (E46). The error is a *holdfast.FieldError.
func ParseAddress(s string) (string, error) {
	address, err := parseAddress(s)
	if err != nil {
		return "", &holdfast.FieldError{Field: "address", Value: clip(s, 80), Problem: "is not a mail address: " + err.Error()}
	}
	return address, nil
}

func parseAddress(s string) (string, error) {
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return "", errors.New("it is empty")
	case strings.ContainsAny(text, ",;") && !strings.Contains(text, `"`):
		return "", errors.New("it must be one address, and this looks like several")
	}
	a, err := parseMailbox(text)
	switch {
	case err != nil:
		return "", err
	case strings.ContainsAny(text, "<>") || a.Name != "":
		return "", errors.New("it must be the address alone, without a name and without < and >")
	}
	return a.Address, nil
}

// parseMailbox reads an address that may have a display name.
func parseMailbox(text string) (*mail.Address, error) {
	if len(text) > 1000 {
		return nil, errors.New("it is longer than any address")
	}
	if strings.ContainsFunc(text, isControl) {
		return nil, errors.New("it has control characters")
	}
	a, err := mail.ParseAddress(text)
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), "mail: ")
		if strings.Contains(problem, `"`) { // the problem quotes a part of the address
			problem = "it cannot be read"
		}
		return nil, errors.New(problem)
	}
	if strings.ContainsFunc(a.Address, isUnseen) {
		return nil, errors.New("it has an invisible character")
	}
	at := strings.LastIndexByte(a.Address, '@')
	local, domain := a.Address[:at], a.Address[at+1:]
	if strings.HasPrefix(domain, "[") {
		if !isLiteral(domain) {
			return nil, errors.New("the text in brackets is not an IP address")
		}
	} else if domain, err = idna.Lookup.ToASCII(strings.TrimSuffix(domain, ".")); err != nil || !isHost(domain) {
		return nil, errors.New("the part after the @ is not a domain")
	}
	switch {
	case len(local) > 64:
		return nil, errors.New("the part before the @ is longer than 64 bytes")
	case len(domain) > 253:
		return nil, errors.New("the part after the @ is longer than 253 bytes")
	case !isAtom(local):
		return nil, errors.New("the part before the @ has characters that need quotes, which many servers refuse")
	}
	a.Address = local + "@" + domain
	return a, nil
}

// isUnseen reports whether a character is invisible: two addresses could look alike.
func isUnseen(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPrint(r) }

// isAtom reports whether a local part needs no quotes (RFC 5321, 4.1.2: Dot-string).
func isAtom(local string) bool {
	if slices.Contains(strings.Split(local, "."), "") {
		return false
	}
	return !strings.ContainsFunc(local, func(r rune) bool {
		return r <= ' ' || r < 0x7f && strings.ContainsRune("()<>[]:;@\\,\"", r) || r == 0x7f
	})
}
