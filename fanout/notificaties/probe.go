package notificaties

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// probeBody is what a callback gets when it is probed.
const probeBody = `{"kanaal":"test","hoofdObject":"https://ref.tst.vng.cloud/zrc/api/v1/zaken/d7a22","resource":"some_resource",` +
	`"resourceUrl":"https://ref.tst.vng.cloud/zrc/api/v1/statussen/d7a22/721c9","actie":"create","aanmaakdatum":"2019-01-01T12:00:00Z","kenmerken":{}}`

// authorization is the header in which a callback gets the value of auth.
const authorization = "Authorization"

// direct sets where and how a subscription is delivered, and reports whether that must be probed.
func (s *Server) direct(one *fanout.Subscription, given asked, cloudEvents bool) (probe bool, err error) {
	if one.Mode == "" || cloudEvents != one.Abonnement.SendCloudEvents {
		one.Mode = deliveryMode(cloudEvents)
	}
	if given.callback == nil && given.auth == nil {
		return false, nil
	}
	former := one.URL
	if given.callback != nil {
		one.URL = *given.callback
	}
	a := one.Authorization
	moved := origin(former) != origin(one.URL)
	foreign := a != nil && (a.Kind != fanout.HeaderKey || a.Header != authorization)
	switch {
	case moved && (foreign || len(one.Headers) > 0 || len(one.Secrets) > 0 || one.TLS != nil):
		err = invalid(InvalidParam{"callbackUrl", "invalid", "De beheerder heeft autorisatie, headers, ondertekening of TLS voor een andere host ingesteld."})
	case foreign: // operators have set another kind, which stays
	case given.auth != nil:
		err = s.authorize(one, *given.auth)
	case moved && a != nil: // perhaps operators have set it, for that host
		err = invalid(InvalidParam{"auth", "required", "Geef auth opnieuw: de callbackUrl heeft een andere host."})
	}
	if err != nil {
		return false, err
	}
	return true, faultsOf(s.Check(one))
}

// authorize sets the value of the header Authorization; empty: it is not sent.
func (s *Server) authorize(one *fanout.Subscription, auth string) (err error) {
	if one.Authorization = nil; auth == "" {
		return nil
	}
	one.Authorization = &fanout.Authorization{Kind: fanout.HeaderKey, Header: authorization}
	if one.Authorization.Sealed, err = s.Seal(one, auth); err != nil {
		err = fmt.Errorf("keep auth: %w", err)
	}
	return err
}

func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// faultsOf returns the faults of a delivery under the names of this API.
func faultsOf(err error) error {
	if err == nil {
		return nil
	}
	var faults []InvalidParam
	for _, f := range fieldErrors(err) {
		switch {
		case f.Field == "url":
			faults = append(faults, InvalidParam{"callbackUrl", "invalid", clip("De URL " + f.Problem + ".")})
		case strings.HasPrefix(f.Field, "authorization"):
			faults = append(faults, InvalidParam{"auth", "invalid", clip("De waarde " + f.Problem + ".")})
		default:
			faults = append(faults, InvalidParam{whole, "invalid", clip(f.Field + " " + f.Problem)})
		}
	}
	if len(faults) == 0 {
		return err
	}
	return invalid(faults...)
}

// fieldErrors returns all field errors within an error.
func fieldErrors(err error) (list []*holdfast.FieldError) {
	if f, ok := err.(*holdfast.FieldError); ok { //nolint:errorlint // the walk unwraps
		return []*holdfast.FieldError{f}
	}
	switch x := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			list = append(list, fieldErrors(e)...)
		}
	case interface{ Unwrap() error }:
		list = fieldErrors(errors.Unwrap(err))
	}
	return list
}

// probe asks a callback first without authorization, which it must refuse, then with it.
func (s *Server) probe(ctx context.Context, one *fanout.Subscription) error {
	ctx, cancel := context.WithTimeout(ctx, 2*probeTime)
	defer cancel()
	if u, err := url.Parse(one.URL); err == nil && !s.Unprotected && u.Hostname() != "webhook.site" {
		open := *one
		open.Authorization = nil
		status, err := s.Probe(ctx, &open, []byte(probeBody))
		if status != http.StatusUnauthorized && status != http.StatusForbidden {
			return invalid(InvalidParam{"callbackUrl", "no-auth-on-callback-url", "Zonder autorisatie moet de callbackUrl 401 of 403 antwoorden, maar " + seen(status, err) + "."})
		}
	}
	status, err := s.Probe(ctx, one, []byte(probeBody))
	if status < 200 || status > 209 {
		return invalid(InvalidParam{whole, "invalid-callback-url", "Met de opgegeven auth moet de callbackUrl 20x antwoorden, maar " + seen(status, err) + "."})
	}
	return nil
}

// seen says what a probe has found.
func seen(status int, err error) string {
	switch {
	case status != 0:
		return fmt.Sprintf("het antwoord was status %d", status)
	case err != nil:
		return "de aanvraag mislukte: " + clip(err.Error())
	}
	return "er kwam geen antwoord"
}
