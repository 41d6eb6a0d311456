package notificaties

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// Problem is why a request was refused, as a problem document (RFC 9457) of the Dutch APIs. Clients
// decide by Code.
type Problem struct { //nolint:errname // the name of RFC 9457
	Class         string         `json:"-"` // of the upstream's exception: the last part of type
	Code          string         `json:"code"`
	Title         string         `json:"title"`
	Status        int            `json:"status"`
	Detail        string         `json:"detail"`
	InvalidParams []InvalidParam `json:"invalidParams,omitzero"`
}

// InvalidParam is one fault of a request.
type InvalidParam struct {
	Name   string `json:"name"` // such as kanalen.0.naam
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// whole is the name of what is wrong with a request as a whole.
const whole = "nonFieldErrors"

func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s: %s", p.Status, p.Code, p.Detail)
	for _, f := range p.InvalidParams {
		fmt.Fprintf(&b, "; %s: %s", f.Name, f.Code)
	}
	return b.String()
}

// write answers with the problem. root begins the URL of its type.
func (p *Problem) write(w http.ResponseWriter, root string) {
	doc := struct {
		Type string `json:"type"`
		*Problem
		Instance string `json:"instance"`
	}{root + "/ref/fouten/" + p.Class + "/", p, "urn:uuid:" + uuid.NewString()}
	text, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, p.Code, p.Status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the caller has gone away
}

// invalid refuses a request with faults, or returns nil if there is none.
func invalid(faults ...InvalidParam) error {
	if len(faults) == 0 {
		return nil
	}
	return &Problem{"ValidationError", "invalid", "Invalid input.", http.StatusBadRequest, "Invalid input.", faults}
}

func problem(status int, class, code, title, detail string) *Problem {
	return &Problem{class, code, title, status, detail, nil}
}

func parseError(cause string) *Problem {
	return problem(http.StatusBadRequest, "ParseError", "parse_error", "Foutieve aanvraag.", "Het bericht is geen JSON: "+cause)
}

// forbidden refuses a caller. The upstream never answers 401.
func forbidden(code, detail string) *Problem {
	return problem(http.StatusForbidden, "PermissionDenied", code, "Je hebt geen toestemming om deze actie uit te voeren.", detail)
}

func notFound() *Problem {
	return problem(http.StatusNotFound, "NotFound", "not_found", "Niet gevonden.", "Niet gevonden.")
}

func methodNotAllowed(method string) *Problem {
	return problem(http.StatusMethodNotAllowed, "MethodNotAllowed", "method_not_allowed", "Methode niet toegestaan.", fmt.Sprintf("Methode %q niet toegestaan.", clip(method)))
}

func notAcceptable() *Problem {
	return problem(http.StatusNotAcceptable, "NotAcceptable", "not_acceptable", "Kan niet voldoen aan de opgegeven Accept header.", "Het antwoord is application/json.")
}

func conflict() *Problem {
	return problem(http.StatusConflict, "Conflict", "conflict", "Er is een conflict.", "Iemand anders heeft dit tegelijk gewijzigd: herhaal de aanvraag.")
}

func unsupported(media string) *Problem {
	return problem(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "unsupported_media_type", "Ongeldig media type.", fmt.Sprintf("Ongeldig media type %q.", clip(media)))
}

func tooLarge(most int64) *Problem {
	return problem(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "too_large", "Het bericht is te groot.", fmt.Sprintf("Het bericht mag ten hoogste %d bytes hebben.", most))
}

func throttled() *Problem {
	return problem(http.StatusTooManyRequests, "Throttled", "throttled", "Te veel aanvragen.", "Er komen te veel onbekende tokens: wacht even.")
}

func busy() *Problem {
	return problem(http.StatusServiceUnavailable, "APIException", "error", "De server heeft het te druk.", "Er is niets gedaan: stuur dezelfde aanvraag zo dadelijk nog eens.")
}

func failed() *Problem {
	return problem(http.StatusInternalServerError, "APIException", "error", "Er is een serverfout opgetreden.", "Het log van de server zegt waarom.")
}

// clip shortens what a caller has sent, for a text.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
