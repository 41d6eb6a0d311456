package fanout

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// Topic is a name under which programs publish events.
type Topic struct {
	Name          string
	Description   string    // for people; may be empty
	Documentation string    // an http or https link for people; may be empty
	Attributes    []string  // names by which its events are to be filtered; for people and the Notificaties API
	Version       int64     // of the store; a replacement must name it; zero: not stored
	Changed       time.Time // set by the store
	Gone          bool      // it was deleted; only who follows the versions sees one
}

// Limits of a topic and of a subscription, in bytes.
const (
	maxText = 1000
	maxURL  = 2000

	maxTopicAttributes = 100
	maxAttributeName   = 400 // 100 characters
)

// Validate returns all faults of a topic, each a *holdfast.FieldError. It wraps ErrInvalid.
func (t *Topic) Validate() error {
	faults := []error{checkName("name", t.Name), checkText("description", t.Description)}
	if t.Documentation != "" {
		faults = append(faults, checkURL("documentation", t.Documentation))
	}
	if len(t.Attributes) > maxTopicAttributes {
		faults = append(faults, &holdfast.FieldError{Field: "attributes", Value: fmt.Sprint(len(t.Attributes)), Problem: fmt.Sprintf("are more than %d", maxTopicAttributes)})
	}
	for i, name := range t.Attributes {
		field := fmt.Sprintf("attributes[%d]", i)
		if err := checkText(field, name); err != nil {
			faults = append(faults, err)
		} else if name == "" || len(name) > maxAttributeName {
			faults = append(faults, &holdfast.FieldError{Field: field, Value: fmt.Sprintf("%.80s", name), Problem: fmt.Sprintf("must have 1 to %d bytes", maxAttributeName)})
		}
	}
	return invalid(faults...)
}

// invalid joins faults under ErrInvalid, or returns nil if there is none.
func invalid(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	return nil
}

// Characters of names.
const lower, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"

// checkName accepts what stands in a path, in a lane's name and in a command without quotes.
func checkName(field, name string) error {
	var problem string
	switch {
	case name == "":
		problem = "is missing"
	case len(name) > holdfast.MaxNameLen:
		problem = fmt.Sprintf("has %d bytes; at most %d fit", len(name), holdfast.MaxNameLen)
	case strings.Trim(name, lower+upper+digits+"._-:") != "" || name[0] == '.':
		problem = "may have letters, digits and . _ - : and must not begin with a dot"
	default:
		return nil
	}
	return &holdfast.FieldError{Field: field, Value: name[:min(len(name), 80)], Problem: problem}
}

func checkText(field, text string) error { return checkTextTo(field, text, maxText) }

func checkTextTo(field, text string, most int) error {
	switch {
	case len(text) > most:
		return &holdfast.FieldError{Field: field, Value: text[:80], Problem: fmt.Sprintf("has %d bytes; at most %d fit", len(text), most)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return &holdfast.FieldError{Field: field, Value: strings.ToValidUTF8(text, "?"), Problem: "is not UTF-8 text"}
	}
	return nil
}

func checkURL(field, text string) error {
	u, err := url.Parse(text)
	var problem string
	switch {
	case text == "":
		problem = "is missing"
	case len(text) > maxURL:
		problem = fmt.Sprintf("has %d bytes; at most %d fit", len(text), maxURL)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		problem = "must be an absolute http or https URL"
	case u.User != nil:
		problem = "must not hold a user or a password: set authorization instead"
	default:
		return nil
	}
	if err == nil && u.User != nil {
		text = u.Redacted()
	}
	return &holdfast.FieldError{Field: field, Value: text[:min(len(text), 80)], Problem: problem}
}
