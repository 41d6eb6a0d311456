package notificaties

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// onlyQuery refuses query parameters that are not known. Requests about a kanaal or an abonnement may have no others.
func onlyQuery(r *http.Request, known ...string) error {
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if !slices.Contains(known, name) {
			unknown = append(unknown, clip(name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return invalid(InvalidParam{whole, "unknown-parameters", "Onbekende query parameters: " + clip(strings.Join(unknown, ", "))})
}

// text reads what a known caller has sent, of a media type. The caller must call leave when it is worked off.
func (s *Server) text(r *http.Request, media string) (text []byte, leave func(), err error) {
	leave = func() {}
	if s.Room != nil && r.ContentLength != 0 {
		held, ok := s.Room.Hold(r.Context(), r.ContentLength, s.MaxBody)
		if !ok {
			return nil, leave, busy()
		}
		leave = held
	}
	if text, err = s.body(r, media); err != nil {
		leave()
		leave = func() {}
	}
	return text, leave, err
}

// fields reads the object that a known caller has sent, as text does. Nobody waits for a foreign server before leave.
func (s *Server) fields(r *http.Request) (f *fields, leave func(), err error) {
	text, leave, err := s.text(r, "")
	if err != nil {
		return nil, leave, err
	}
	v, err := decode(text)
	if err == nil {
		f, err = object(v)
	}
	if err != nil {
		leave()
		leave = func() {}
	}
	return f, leave, err
}
