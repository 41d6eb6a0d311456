package web

// question asks before something is done that cannot be taken back. It is a page, so that it works without
// script.
type question struct {
	Ask, Text string
	Items     []string // what it is about
	Action    string   // where its form goes
	Fields    []field  // what the form sends besides
	Reason    bool     // who does it must say why
	Verb      string   // on the button
	Back      string
}

// field is something that a form sends, and that nobody changes.
type field struct{ Name, Value string }

func (q *question) view(rail string) *view {
	return &view{template: "question", title: q.Ask, rail: rail, data: q}
}
