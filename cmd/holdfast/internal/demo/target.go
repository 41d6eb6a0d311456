package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// mood is the behaviour of a place that sites or central deliver to.
type mood int

const (
	fine      mood = iota
	failing        // 500 for everything; the mail server turns everybody away
	refusing       // 422 for some, for good
	forgetful      // does the work, but some answers are lost
)

// target is the foreign system that sites call. It carries out a call once per Idempotency-Key.
type target struct {
	book *ledger

	mu    sync.Mutex
	mood  mood
	asked int // calls since the mood began
}

func (t *target) be(m mood) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mood, t.asked = m, 0
}

// now returns the mood for a call, and whether it shows this time: it shows for the first call, and
// then for every third. A call that was carried out is no longer refused.
func (t *target) now(done bool) (m mood, shows bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mood == refusing && done {
		return fine, false
	}
	shows = t.asked%3 == 0
	t.asked++
	return t.mood, shows
}

// shown reports whether any call has met the mood.
func (t *target) shown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked > 0
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var payload struct {
		Call string `json:"call"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the call was cut off", http.StatusInternalServerError)
		return
	}
	if err := json.Unmarshal(body, &payload); err != nil || payload.Call == "" {
		http.Error(w, "the payload names no call", http.StatusBadRequest)
		return
	}
	m, shows := t.now(t.book.knows(payload.Call))
	switch {
	case m == failing:
		http.Error(w, "the database of the target is away", http.StatusInternalServerError)
		return
	case m == refusing && shows:
		t.book.refuse(payload.Call)
		http.Error(w, "there is no such part: "+payload.Call, http.StatusUnprocessableEntity)
		return
	}
	if err := t.book.called(r.Header.Get("Idempotency-Key"), payload.Call); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable) // the call comes again
		return
	}
	if m == forgetful && shows {
		panic(http.ErrAbortHandler) // net/http cuts the connection without an answer
	}
	w.WriteHeader(http.StatusNoContent)
}
