package notify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// Validate checks what a store relies on: the name, and that no secret stands in the settings as it
// is.
func (c *Channel) Validate() error {
	if err := CheckName("name", c.Name); err != nil {
		return err
	}
	_, err := EachSecret(c.Settings, func(_ string, s GivenSecret) (any, error) {
		if s.Value != "" {
			return nil, errors.New(`holds a secret itself, which only the API takes and seals: name a file, as {"secret": "NAME"}`)
		}
		return s, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	return nil
}

// MaxAddressLen is the longest address, in bytes: an address is part of a key.
const MaxAddressLen = 512

// Validate checks what a store relies on: the name, and that each recipient is listed once and
// fits.
func (l *List) Validate() error {
	type key struct{ channel, address string }
	seen := make(map[key]bool, len(l.Recipients))
	fault := func(address, problem string) error {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "recipients", Value: address[:min(len(address), 80)], Problem: problem})
	}
	for _, r := range l.Recipients {
		k := key{r.Channel, r.Address}
		switch {
		case seen[k]:
			return fault(r.Address, "appears twice on channel "+r.Channel)
		case len(r.Address) > MaxAddressLen:
			return fault(r.Address, fmt.Sprintf("has %d bytes; at most %d fit", len(r.Address), MaxAddressLen))
		case len(r.Channel) > holdfast.MaxNameLen:
			return fault(r.Address, fmt.Sprintf("names a channel of %d bytes; at most %d fit", len(r.Channel), holdfast.MaxNameLen))
		}
		seen[k] = true
	}
	return CheckName("name", l.Name)
}

// CheckName returns an error if name is no valid name of a channel or list. Names are part of
// message ids, lanes and paths. The error wraps ErrInvalid.
func CheckName(field, name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	f := &holdfast.FieldError{Field: field}
	switch {
	case name == "":
		f.Problem = "must not be empty"
	case len(name) > 64, strings.Trim(name, allowed) != "", name == ".", name == "..":
		f.Value, f.Problem = clip(strings.ToValidUTF8(name, "�")), "must be 1 to 64 letters, digits, dots, hyphens or underscores"
	default:
		return nil
	}
	return fmt.Errorf("%w: %w", holdfast.ErrInvalid, f)
}

// Add adds the numbers of o.
func (k *KPIs) Add(o KPIs) {
	k.Depth += o.Depth
	k.Stuck += o.Stuck
	k.Parked += o.Parked
	k.Delivered += o.Delivered
	k.Oldest = max(k.Oldest, o.Oldest)
}
