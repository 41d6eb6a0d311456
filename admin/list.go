package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/notify"
)

// List is who gets a notification.
type List struct {
	Name        string      `json:"name,omitempty" doc:"1 to 64 letters, digits, dots, hyphens or underscores; notifications name it." example:"operators"`
	Description string      `json:"description,omitempty" maxLength:"1024" doc:"For people, in one line."`
	Partial     bool        `json:"partial,omitempty" doc:"A notification that some have refused for good is delivered, with a mark, if one has accepted. Else it parks."`
	Recipients  []Recipient `json:"recipients" nullable:"false" maxItems:"10000" doc:"Each address once on each channel."`
	Version     string      `json:"version,omitempty" doc:"Of what can be changed. Sent along, nothing is changed if it is another one by now."`
	Changed     *time.Time  `json:"changed,omitempty" doc:"When it was changed last. Ignored when it is sent."`
	Warnings    []string    `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached. Ignored when it is sent."`
}

// ListSpec is what PUT /v1/lists/{name} takes: a List, so that what was shown
// can be sent back.
type ListSpec List

// Recipient is one address on a channel.
type Recipient struct {
	Channel  string `json:"channel" doc:"How it is reached: one of GET /v1/channels." example:"mail"`
	Address  string `json:"address,omitempty" maxLength:"512" doc:"What the channel reads: a mail address, a topic. Absent where the channel has one target." example:"jane@example.com"`
	Name     string `json:"name,omitempty" maxLength:"256" doc:"For people." example:"Doe, Jane"`
	Disabled bool   `json:"disabled,omitempty" doc:"It is on the list and gets nothing."`
}

// RecipientSpec is what PUT /v1/lists/{name}/recipients takes.
type RecipientSpec Recipient

// ListSummary is a list without its recipients.
type ListSummary struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Partial     bool       `json:"partial,omitempty"`
	Recipients  int        `json:"recipients" doc:"How many it has."`
	Disabled    int        `json:"disabled,omitempty" doc:"Of them, those that get nothing."`
	Channels    []string   `json:"channels" nullable:"false" doc:"Those that its recipients are reached by."`
	Version     string     `json:"version"`
	Changed     *time.Time `json:"changed,omitempty"`
	Warnings    []string   `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached."`
}

// Lists is all lists, by name.
type Lists struct {
	Lists []ListSummary `json:"lists" nullable:"false"`
}

// ListChange is the answer to a change of a list's recipients.
type ListChange struct {
	List       string   `json:"list"`
	Added      int      `json:"added"`
	Changed    int      `json:"changed" doc:"Were there, with another name, or disabled or not."`
	Unchanged  int      `json:"unchanged" doc:"Were there already."`
	Removed    int      `json:"removed"`
	Recipients int      `json:"recipients" doc:"How many there are now."`
	Version    string   `json:"version"`
	Warnings   []string `json:"warnings,omitempty" nullable:"false" doc:"Why somebody on it is not reached."`
}

// target is what makes a recipient another one than the rest of its list.
type target struct{ channel, address string }

func targetOf(r notify.Recipient) target { return target{r.Channel, r.Address} }

func listVersion(l notify.List) string {
	l.Changed, l.Version = time.Time{}, 0
	if l.Recipients == nil {
		l.Recipients = []notify.Recipient{}
	}
	return versionOf(l)
}

func listOf(l notify.List, book *notify.Book) List {
	out := List{
		Name: l.Name, Description: l.Description, Partial: l.Partial, Version: listVersion(l), Changed: instant(l.Changed),
		Warnings: listWarnings(&l, book), Recipients: make([]Recipient, len(l.Recipients)),
	}
	for i, r := range l.Recipients {
		out.Recipients[i] = Recipient(r)
	}
	return out
}

func summaryOf(l notify.List, book *notify.Book) ListSummary {
	out := ListSummary{
		Name: l.Name, Description: l.Description, Partial: l.Partial, Recipients: len(l.Recipients), Channels: []string{},
		Version: listVersion(l), Changed: instant(l.Changed), Warnings: listWarnings(&l, book),
	}
	for _, r := range l.Recipients {
		if r.Disabled {
			out.Disabled++
		}
		if !slices.Contains(out.Channels, r.Channel) {
			out.Channels = append(out.Channels, r.Channel)
		}
	}
	slices.Sort(out.Channels)
	return out
}

// listWarnings says why a notification for the list would not reach all.
func listWarnings(l *notify.List, book *notify.Book) (list []string) {
	reached, lost := 0, map[string]int{}
	for _, r := range l.Recipients {
		if r.Disabled {
			continue
		}
		switch c, ok := book.Channels[r.Channel]; {
		case !ok:
			lost[fmt.Sprintf("channel %q, which does not exist", r.Channel)]++
		case c.Disabled:
			lost[fmt.Sprintf("channel %s, which is disabled", r.Channel)]++
		default:
			reached++
		}
	}
	for why, n := range lost {
		list = append(list, fmt.Sprintf("recipients on %s: %d", why, n))
	}
	slices.Sort(list)
	if reached == 0 {
		list = append(list, "nobody is reached: what is sent to this list does not arrive")
	}
	return list
}

// list reads a list; its recipients are checked against the channels later.
func (spec *ListSpec) list(name string) (notify.List, []Fault) {
	l := notify.List{Name: name, Description: spec.Description, Partial: spec.Partial, Recipients: make([]notify.Recipient, len(spec.Recipients))}
	faults := faultsOf(notify.CheckName("name", name))
	if spec.Name != "" && spec.Name != name {
		faults = append(faults, Fault{"name", clip(spec.Name), "is not the name in the path; a list keeps its name"})
	}
	faults = append(faults, checkLine("description", spec.Description, mostLongText)...)
	for i, r := range spec.Recipients {
		l.Recipients[i] = notify.Recipient(r)
	}
	return l, faults
}

func tooMany(n int) []Fault {
	if n <= mostRecipients {
		return nil
	}
	return []Fault{{"recipients", fmt.Sprintf("more than %d recipients", mostRecipients), fmt.Sprintf("at most %d fit on a list; divide it", mostRecipients)}}
}

// recipientFaults says what is wrong with one recipient. field names it: its
// place in a body, or a line.
func (s *Server) recipientFaults(r notify.Recipient, book *notify.Book, field func(part string) string) []Fault {
	faults := checkLine(field("address"), r.Address, mostAddress)
	faults = append(faults, checkLine(field("name"), r.Name, mostText)...)
	c, ok := book.Channels[r.Channel]
	switch {
	case r.Channel == "":
		faults = append(faults, Fault{field("channel"), "", "is missing; " + knownAs(book.Channels)})
	case !ok:
		faults = append(faults, Fault{field("channel"), clip(r.Channel), "is not a channel; " + knownAs(book.Channels)})
	case len(faults) == 0:
		faults = addressFaults(field("address"), r.Address, s.Channels.CheckRecipient(c, r.Address))
	}
	return faults
}

// addressFaults are what a channel says of an address.
func addressFaults(field, address string, err error) []Fault {
	if err == nil {
		return nil
	}
	problem := "is not an address of this channel: " + clip(err.Error())
	if faults := faultsOf(err); len(faults) > 0 {
		problem = faults[0].Problem
	}
	return []Fault{{field, clip(address), problem}}
}
