package demo

import (
	"encoding/json"
	"io"
	"net/http"
)

const maxBody = 8 << 20

// program is what the receiver's endpoint calls. It carries out an order once per Idempotency-Key.
type program struct{ book *ledger }

func (p program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var payload struct {
		Order string `json:"order"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the call was cut off", http.StatusInternalServerError)
		return
	}
	if err := json.Unmarshal(body, &payload); err != nil || payload.Order == "" {
		http.Error(w, "the payload names no order", http.StatusBadRequest)
		return
	}
	if err := p.book.call(r.Header.Get("Idempotency-Key"), payload.Order); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable) // the call comes again
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"done":true}`)
}
