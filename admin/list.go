package admin

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// target identifies a recipient within its list.
type target struct{ channel, address string }

func targetOf(r notify.Recipient) target { return target{r.Channel, r.Address} }

func listVersion(l notify.List) string {
	l.Changed, l.Version = time.Time{}, 0
	if l.Recipients == nil {
		l.Recipients = []notify.Recipient{}
	}
	return versionOf(l)
}

func listOf(l notify.List, book *notify.Directory) api.List {
	out := api.List{
		Name: l.Name, Description: l.Description, Partial: l.Partial, Version: listVersion(l), Changed: instant(l.Changed),
		Warnings: listWarnings(&l, book), Recipients: make([]api.Recipient, len(l.Recipients)),
	}
	for i, r := range l.Recipients {
		out.Recipients[i] = api.Recipient(r)
	}
	return out
}

func summaryOf(l notify.List, book *notify.Directory) api.ListSummary {
	out := api.ListSummary{
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

// listWarnings says why a notification for the list would not reach all recipients.
func listWarnings(l *notify.List, book *notify.Directory) (list []string) {
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
		list = append(list, "nobody is reached: notifications to this list do not arrive")
	}
	return list
}

// listFrom reads a list. Its recipients are checked against the channels later.
func listFrom(spec *api.ListSpec, name string) (notify.List, []api.Fault) {
	l := notify.List{Name: name, Description: spec.Description, Partial: spec.Partial, Recipients: make([]notify.Recipient, len(spec.Recipients))}
	faults := api.FaultsOf(notify.CheckName("name", name))
	if spec.Name != "" && spec.Name != name {
		faults = append(faults, api.Fault{Field: "name", Value: api.Clip(spec.Name), Problem: "is not the name in the path; a list keeps its name"})
	}
	faults = append(faults, checkLine("description", spec.Description, mostLongText)...)
	for i, r := range spec.Recipients {
		l.Recipients[i] = notify.Recipient(r)
	}
	return l, faults
}

func tooMany(n int) []api.Fault {
	if n <= MostRecipients {
		return nil
	}
	return []api.Fault{{Field: "recipients", Value: fmt.Sprintf("more than %d recipients", MostRecipients), Problem: fmt.Sprintf("at most %d fit on a list; divide it", MostRecipients)}}
}

// recipientFaults reports the faults of one recipient. field names the recipient by its place in a body or by its line.
func (s *Service) recipientFaults(r notify.Recipient, book *notify.Directory, field func(part string) string) []api.Fault {
	faults := checkLine(field("address"), r.Address, mostAddress)
	faults = append(faults, checkLine(field("name"), r.Name, mostText)...)
	c, ok := book.Channels[r.Channel]
	switch {
	case r.Channel == "":
		faults = append(faults, api.Fault{Field: field("channel"), Problem: "is missing; " + knownAs(book.Channels)})
	case !ok:
		faults = append(faults, api.Fault{Field: field("channel"), Value: api.Clip(r.Channel), Problem: "is not a channel; " + knownAs(book.Channels)})
	case len(faults) == 0:
		faults = addressFaults(field("address"), r.Address, s.Channels.CheckRecipient(c, r.Address))
	}
	return faults
}

// addressFaults turns a channel's error about an address into faults.
func addressFaults(field, address string, err error) []api.Fault {
	if err == nil {
		return nil
	}
	problem := "is not an address of this channel: " + api.Clip(err.Error())
	if faults := api.FaultsOf(err); len(faults) > 0 {
		problem = faults[0].Problem
	}
	return []api.Fault{{Field: field, Value: api.Clip(address), Problem: problem}}
}
