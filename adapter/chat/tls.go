package chat

import (
	"crypto/tls"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/notify"
)

// tls returns nil if the settings say nothing about TLS. Our own certificate is read again for each
// connection.
func (s *settings) tls() (*tls.Config, error) {
	if s.ca == "" && s.cert == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	var faults []error
	fault := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: "settings." + field, Value: clip(value, 200), Problem: problem})
	}
	if s.ca != "" {
		roots, err := namedfile.Authorities(s.ca)
		if err != nil {
			fault("ca", s.ca, notify.BadCertificates)
		}
		conf.RootCAs = roots
	}
	if s.cert != "" && s.key != "" {
		if err := namedfile.OwnCertificate(conf, s.cert, s.key); err != nil {
			fault("cert", s.cert, notify.BadKeyPair)
		}
	}
	return conf, errors.Join(faults...)
}
