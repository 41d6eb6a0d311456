package move

import "strings"

// tidy replaces what not every store can keep in texts that only people read:
// NUL bytes, and what is no UTF-8.
func tidy(p *Page) {
	clean := func(texts ...*string) {
		for _, t := range texts {
			*t = strings.ToValidUTF8(strings.ReplaceAll(*t, "\x00", "�"), "�")
		}
	}
	if p.Settings != nil {
		for i := range p.Settings.Lanes {
			clean(&p.Settings.Lanes[i].Fault)
		}
		p.Settings.eachText(clean)
	}
	for i := range p.Messages {
		clean(&p.Messages[i].Reason)
	}
	for i := range p.Events {
		e := &p.Events[i]
		clean(&e.Reason, &e.Code, &e.Error, &e.Actor)
	}
	for i := range p.Notifications {
		p.Notifications[i].eachText(clean)
	}
}
