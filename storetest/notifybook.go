package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

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
	expect := func(what string, err error, channels map[string]notify.Channel, lists map[string]notify.List) {
		k.t.Helper()
		if err != nil {
			k.t.Fatalf("%s: %v", what, err)
		}
		b, err := k.notes().Book(k.ctx())
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "channels after "+what, b.Channels, channels, cmpopts.IgnoreFields(notify.Channel{}, "Changed"))
		equal(k, "lists after "+what, b.Lists, lists, cmpopts.IgnoreFields(notify.List{}, "Changed"), cmpopts.EquateEmpty())
		v, err := k.notes().BookVersion(k.ctx())
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
	expect("a channel", k.notes().PutChannel(k.ctx(), mail), channels{"mail": mail}, lists{})
	expect("another", k.notes().PutChannel(k.ctx(), chat), channels{"mail": mail, "chat": chat}, lists{})
	expect("a list", k.notes().PutList(k.ctx(), ops), channels{"mail": mail, "chat": chat}, lists{"ops": ops})
	expect("an empty list", k.notes().PutList(k.ctx(), none), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	ops.Partial, ops.Recipients = false, ops.Recipients[:1]
	for i := range 3000 {
		ops.Recipients = append(ops.Recipients, notify.Recipient{Channel: "mail", Address: fmt.Sprint(3000-i, "@example.org")})
	}
	expect("a longer list", k.notes().PutList(k.ctx(), ops), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	mail.Settings, mail.Retry.Waits, mail.Kind = nil, nil, "webhook"
	expect("another kind", k.notes().PutChannel(k.ctx(), mail), channels{"mail": mail, "chat": chat}, lists{"ops": ops, "none": none})
	k.reopen()
	expect("the end of a channel", k.notes().DeleteChannel(k.ctx(), "chat"), channels{"mail": mail}, lists{"ops": ops, "none": none})
	expect("the end of a list", k.notes().DeleteList(k.ctx(), "ops"), channels{"mail": mail}, lists{"none": none})
	ops.Recipients = nil
	expect("an heir of its name", k.notes().PutList(k.ctx(), ops), channels{"mail": mail}, lists{"ops": ops, "none": none})
}
