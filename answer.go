package holdfast

import (
	"bytes"
	"encoding/json"
)

// summarize adds to settlements what is kept of the answers to their attempts.
func (r *dispatch) summarize(a *settleAnswer) {
	if r.d.Summary == nil {
		return
	}
	for i := range a.list {
		s := &a.sent[i]
		answer := a.list[i].answer()
		if len(answer) == 0 || s.Outcome == NotStarted {
			continue
		}
		s.Detail = answerDetail(r.d.Summary(answer, s.State == Parked || s.State == Discarded))
	}
}

// answer returns what may be kept of what the destination answered.
func (f *finished) answer() []byte {
	switch {
	case f.failure != nil:
		return []byte(f.failure.Answer)
	case f.receipt.Answer != nil:
		return f.receipt.Answer
	}
	return f.receipt.Response
}

// answerDetail encodes an answer for Entry.Detail.
func answerDetail(text string) []byte {
	if text == "" {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(struct {
		Answer string `json:"answer"`
	}{text}); err != nil { // a text can always be encoded
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
