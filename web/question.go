package web

// question asks before something is done that cannot be taken back. It is a page, so that it works without
// script.
type question struct {
	Ask, Text string
	Items     []string // what it is about
	Action    string   // where its form goes
	Fields    []field  // what the form sends besides
	Inputs    []input  // what who does it may say
	Reason    bool     // who does it must say why
	Verb      string   // on the button
	Icon      string   // empty: none
	Tone      string   // of the button; empty: danger
	Back      string
	Command   string // the same as a command; empty: there is none
}

// input is something that a form asks for.
type input struct {
	Name, Label, Hint, Value string
	Kind                     string // tick or select; empty: a line of text
	Choices                  []string
	Required                 bool
}

// field is something that a form sends, and that nobody changes.
type field struct{ Name, Value string }

func (q *question) view(rail string) *view {
	return &view{template: "question", title: q.Ask, rail: rail, data: q}
}
