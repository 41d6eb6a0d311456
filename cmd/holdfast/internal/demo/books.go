package demo

import "strings"

// The sorts of things that sites take. An id begins with its sort.
const (
	order        = "order"
	notification = "notification"
	call         = "call"
	write        = "write"
)

// account finds the book of an id by its sort. Orders have no book.
func (l *ledger) account(id string) (account, bool) {
	kind, _, _ := strings.Cut(id, "-")
	a, ok := l.accounts[kind]
	return a, ok
}

// try is called before something is sent for the first time. to names the recipients of a notification.
func (l *ledger) try(id string, to ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.account(id)
	if !ok {
		l.change(id, func(o *ordered) { o.tried = true })
		return
	}
	a.change(id, func(i *item) { i.tried, i.to = true, to })
	for _, address := range to {
		l.mails.change(mailID(id, address), func(i *item) { i.tried = true })
	}
}

// accept is called after the site has answered.
func (l *ledger) accept(id string) {
	if _, ok := l.account(id); !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.change(id, func(o *ordered) { o.accepted = true })
		return
	}
	l.each(id, func(i *item) { i.accepted = true })
}

// refuse books that the receiver of a thing has refused it for good. Only then may a node park it.
func (l *ledger) refuse(id string) {
	l.each(id, func(i *item) { i.refused = true })
}

// park books that a node has set a thing aside, and why. Without a reason, the thing does not count
// as parked, but as lost.
func (l *ledger) park(id, reason string) {
	if reason != "" {
		l.each(id, func(i *item) { i.parked = true })
	}
}

// each changes a known thing that is not an order, and its mails.
func (l *ledger) each(id string, f func(i *item)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.account(id)
	if !ok || a.items[id] == nil {
		return
	}
	a.change(id, f)
	for _, address := range a.items[id].to {
		l.mails.change(mailID(id, address), f)
	}
}

// forwarded books one more acknowledgement of a notification by central.
func (l *ledger) forwarded(duplicate bool) {
	if duplicate {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.counts.Notifications.Duplicates++
	}
}

// mail books a mail that the server has taken for one recipient. Its key is the Message-ID, by
// which a mailbox recognises a repeat. A notification has its effect with the last of its mails.
func (l *ledger) mail(key, id, address string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.note(mailID(id, address), map[string]any{"kind": "mail", "key": key, "id": mailID(id, address), "repeat": l.mails.done(mailID(id, address))}); err != nil {
		return err
	}
	if l.mails.effect(mailID(id, address), key) {
		return nil
	}
	n := l.accounts[notification]
	for _, other := range n.items[id].recipients() {
		if !l.mails.done(mailID(id, other)) {
			return nil
		}
	}
	n.change(id, func(i *item) { i.effects = 1 })
	return nil
}

// recipients returns the recipients of a notification; none if the notification is unknown.
func (i *item) recipients() []string {
	if i == nil {
		return nil
	}
	return i.to
}

func mailID(id, address string) string { return id + " " + address }

// called books a call of the target. A repeat has no effect.
func (l *ledger) called(key, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[call]
	if err := l.note(id, map[string]any{"kind": call, "key": key, "id": id, "repeat": a.done(id)}); err != nil {
		return err
	}
	a.effect(id, key)
	return nil
}

// knows reports whether the target has carried a call out.
func (l *ledger) knows(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accounts[call].done(id)
}

// row books a row of the database. times is how often the row was written.
func (l *ledger) row(key, id string, times int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[write]
	if i := a.items[id]; i != nil && i.effects > 0 && i.key == key {
		l.counts.Writes.Duplicates += times - i.times
		i.times = times
		return nil
	}
	if err := l.note(id, map[string]any{"kind": write, "key": key, "id": id, "repeat": false}); err != nil {
		return err
	}
	a.effect(id, key)
	l.counts.Writes.Duplicates += times - 1
	a.items[id].times = times
	return nil
}
