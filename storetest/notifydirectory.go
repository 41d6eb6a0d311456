package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

func booksKept(k *kit) {
	mail := notify.Channel{
		Name: "mail", Kind: "email", Settings: json.RawMessage(`{"server": "mx:25"}`), Workers: 3,
		Retry: notify.Retry{Attempts: 10, Interval: time.Minute, Waits: []time.Duration{time.Second, time.Hour}},
	}
	chat := notify.Channel{Name: "chat", Kind: "ntfy", Disabled: true, Retry: notify.Retry{Attempts: -1}}
	ops := notify.List{Name: "ops", Description: "Operators – Ü", Partial: true, Recipients: []notify.Recipient{
		{Channel: "mail", Address: "z@example.org", Name: "Zoë"}, {Channel: "mail", Address: "a@example.org", Disabled: true}, {Channel: "chat"},
	}}
	none := notify.List{Name: "none"}
	version := int64(0)
	put := func(l notify.List) error { return k.PutList(k.ctx(), k.seenList(l), "") }
	expect := func(what string, err error, channels map[string]notify.Channel, lists map[string]notify.List) {
		k.t.Helper()
		if err != nil {
			k.t.Fatalf("%s: %v", what, err)
		}
		b, err := k.Directory(k.ctx())
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "channels after "+what, b.Channels, channels, cmpopts.IgnoreFields(notify.Channel{}, "Changed", "Version"))
		equal(k, "lists after "+what, b.Lists, lists, cmpopts.IgnoreFields(notify.List{}, "Changed", "Version"), cmpopts.EquateEmpty())
		v, err := k.DirectoryVersion(k.ctx())
		if err != nil || v != b.Version || v <= version {
			k.t.Errorf("after %s: version %d and %d, %v; before it was %d", what, v, b.Version, err, version)
		}
		version = v
		for name, c := range b.Channels {
			if d := k.now().Sub(c.Changed); d < -time.Second || d > time.Hour {
				k.t.Errorf("after %s: %s changed %s ago", what, name, d)
			}
		}
	}
	type channels = map[string]notify.Channel
	type lists = map[string]notify.List
	expect("a channel", k.PutChannel(k.ctx(), mail, ""), channels{"mail": mail}, lists{})
	expect("another", k.PutChannel(k.ctx(), chat, ""), channels{"mail": mail, "chat": chat}, lists{})
	expect("a list", put(ops), channels{"mail": mail, "chat": chat}, lists{"ops": ops})
	expect("an empty list", put(none), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	ops.Partial, ops.Recipients = false, ops.Recipients[:1]
	for i := range 3000 {
		ops.Recipients = append(ops.Recipients, notify.Recipient{Channel: "mail", Address: fmt.Sprint(3000-i, "@example.org")})
	}
	expect("a longer list", put(ops), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	mail.Settings, mail.Retry.Waits, mail.Kind = nil, nil, "webhook"
	expect("another kind", k.PutChannel(k.ctx(), k.seenChannel(mail), ""), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	k.reopen()
	expect("the end of a channel", k.DeleteChannel(k.ctx(), "chat", k.seenChannel(chat).Version, ""), channels{"mail": mail}, lists{"ops": ops, "none": none})
	expect("the end of a list", k.DeleteList(k.ctx(), "ops", k.seenList(ops).Version, ""), channels{"mail": mail}, lists{"none": none})
	ops.Recipients = nil
	expect("an heir of its name", put(ops), channels{"mail": mail}, lists{"ops": ops, "none": none})
}

func (k *kit) book() notify.Directory {
	k.t.Helper()
	b, err := k.Directory(k.ctx())
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

// seenList returns a list with the version that its reader has just seen.
func (k *kit) seenList(l notify.List) notify.List {
	k.t.Helper()
	l.Version = k.book().Lists[l.Name].Version
	return l
}

func (k *kit) seenChannel(c notify.Channel) notify.Channel {
	k.t.Helper()
	c.Version = k.book().Channels[c.Name].Version
	return c
}

// meanwhile changes lists and channels like two nodes that do not know of each other. A node that
// has not seen the present version changes nothing.
func meanwhile(k *kit) {
	type thing struct {
		put  func(version int64) error
		end  func(version int64) error
		seen func() int64
	}
	put := 0
	for what, it := range map[string]thing{
		"list": {
			put: func(version int64) error {
				put++
				return k.PutList(k.ctx(), notify.List{Name: "x", Description: fmt.Sprint(put), Version: version, Recipients: []notify.Recipient{{Channel: "mail", Address: "a"}}}, "")
			},
			end:  func(version int64) error { return k.DeleteList(k.ctx(), "x", version, "") },
			seen: func() int64 { return k.seenList(notify.List{Name: "x"}).Version },
		},
		"channel": {
			put: func(version int64) error {
				put++
				return k.PutChannel(k.ctx(), notify.Channel{Name: "x", Kind: fmt.Sprint(put), Version: version, Retry: notify.DefaultRetry()}, "")
			},
			end:  func(version int64) error { return k.DeleteChannel(k.ctx(), "x", version, "") },
			seen: func() int64 { return k.seenChannel(notify.Channel{Name: "x"}).Version },
		},
	} {
		did := func(doing string, err error) {
			k.t.Helper()
			if err != nil {
				k.t.Fatalf("%s: %s: %v", what, doing, err)
			}
		}
		refused := func(doing string, change func() error, want error) {
			k.t.Helper()
			before := k.book()
			if err := change(); !errors.Is(err, want) {
				k.t.Errorf("%s: %s: got %v, want %v", what, doing, err, want)
			}
			equal(k, what+": "+doing, k.book(), before, cmpopts.EquateApproxTime(time.Second))
		}
		did("made", it.put(0))
		refused("made meanwhile", func() error { return it.put(0) }, holdfast.ErrState)
		first := it.seen()
		did("changed", it.put(first))
		second := it.seen()
		refused("changed meanwhile", func() error { return it.put(first) }, holdfast.ErrState)
		refused("changed before its end", func() error { return it.end(first) }, holdfast.ErrState)
		refused("an end that has seen nothing", func() error { return it.end(0) }, holdfast.ErrState)
		did("changed again", it.put(second))
		did("ended", it.end(it.seen()))
		refused("ended meanwhile", func() error { return it.put(second) }, holdfast.ErrState)
		refused("ended twice", func() error { return it.end(second) }, holdfast.ErrNotFound)
		k.pass(time.Second)
		did("an heir of its name", it.put(0))
		refused("the heir is another one", func() error { return it.put(second) }, holdfast.ErrState)
	}
}
