package notificaties

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// errorPages returns what each class of a problem's type means.
func errorPages() map[string]string {
	return map[string]string{
		"ValidationError":       "De inhoud van de aanvraag klopt niet. invalidParams noemt elk veld met een code.",
		"ParseError":            "Het bericht is geen JSON.",
		"PermissionDenied":      "Het JWT ontbreekt of klopt niet, of de applicatie mist een scope. De code zegt wat.",
		"NotAuthenticated":      "De aanvraag is niet geauthenticeerd. Deze API antwoordt in dat geval PermissionDenied.",
		"NotFound":              "Er is hier niets.",
		"MethodNotAllowed":      "Deze methode is hier niet mogelijk. De header Allow noemt de mogelijke.",
		"NotAcceptable":         "De Accept header laat application/json niet toe.",
		"Conflict":              "Iemand anders heeft hetzelfde tegelijk gewijzigd.",
		"UnsupportedMediaType":  "De Content-Type header past niet bij deze aanvraag.",
		"RequestEntityTooLarge": "Het bericht is te groot.",
		"Throttled":             "Er komen te veel aanvragen met een onbekend token.",
		"APIException":          "De server kon de aanvraag niet verwerken.",
	}
}

// reference returns the page for people at a path, or nothing.
func reference(path string) string {
	if class, ok := strings.CutPrefix(path, "/ref/fouten/"); ok {
		class, _ = strings.CutSuffix(class, "/")
		if text := errorPages()[class]; text != "" {
			return page(class, "<p>"+html.EscapeString(text)+"</p>")
		}
	}
	if path == "/ref/scopes/" {
		return page("Scopes", fmt.Sprintf("<dl><dt>%s</dt><dd>Abonnementen maken en wijzigen, en lezen.</dd><dt>%s</dt><dd>Kanalen maken en wijzigen, notificaties en CloudEvents publiceren, en lezen.</dd></dl>", Consume, Publish))
	}
	return ""
}

func page(title, body string) string {
	return "<!DOCTYPE html>\n<html lang=\"nl\"><head><meta charset=\"utf-8\"><title>" + title + "</title></head><body><h1>" + title + "</h1>" + body + "</body></html>\n"
}

func showPage(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_, _ = w.Write([]byte(text)) //nolint:gosec // of texts of ours; an error says that the caller has gone away
}
