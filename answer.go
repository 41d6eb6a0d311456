package holdfast

import (
	"bytes"
	"encoding/json"
)

// summarize keeps of the answer to an attempt what the journal is to have. The worker of the attempt does it: one that has a
// large answer delays nobody else.
func (r *dispatch) summarize(f *finished) {
	if r.d.Summary == nil || f.failure != nil && f.failure.Outcome == NotStarted {
		return
	}
	if answer := f.answer(); len(answer) > 0 {
		f.detail = answerDetail(r.d.Summary(answer, f.failure != nil && f.parks()))
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
