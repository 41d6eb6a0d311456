package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast/config"
)

func seedOf(text string) (*config.Seed, error) {
	env := world(nil)
	env.ReadFile = func(string) ([]byte, error) { return []byte(text), nil }
	return config.LoadSeed("seed.yaml", env)
}

func TestASeedHasChannelsAndLists(t *testing.T) {
	t.Parallel()
	got, err := seedOf(`
channels:
  mail:
    kind: email
    settings: {host: smtp.example, port: 587, auth: {mechanism: plain, user: u, password: smtp}}
    retry: {attempts: 3, interval: 5m}
    workers: 2
  room: {kind: teams, disabled: true, retry: {waits: [1m, 1h]}}
  odd: {kind: teams, retry: {attempts: 0, interval: 0s}}
lists:
  ops:
    description: on call
    partial: true
    recipients:
      - {channel: mail, address: a@example.com, name: A}
      - {channel: room, disabled: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Seed{
		Channels: map[string]config.SeedChannel{
			"mail": {
				Kind: "email", Attempts: new(3), Interval: new(5 * time.Minute), Workers: 2,
				Settings: []byte(`{"auth":{"mechanism":"plain","password":"smtp","user":"u"},"host":"smtp.example","port":587}`),
			},
			"odd":  {Kind: "teams", Attempts: new(0), Interval: new(time.Duration(0))}, // said, and not the same as nothing
			"room": {Kind: "teams", Disabled: true, Waits: []time.Duration{time.Minute, time.Hour}},
		},
		Lists: map[string]config.SeedList{"ops": {Description: "on call", Partial: true, Recipients: []config.SeedRecipient{
			{Channel: "mail", Address: "a@example.com", Name: "A"}, {Channel: "room", Disabled: true},
		}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Seed{})); diff != "" {
		t.Errorf("seed (-want +got):\n%s", diff)
	}
}

func TestFaultsOfASeedAreToldAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := seedOf(`
channels:
  "a b": {kind: email}
  mail: {settings: [1], retry: {attempts: many}}
lists:
  ops: {recipients: [{address: x}, {channel: mail, address: x}, {channel: mail, address: x}], color: red}
`)
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		`seed.yaml:3: channels: "a b" holds the character`, "channels.mail.settings", "channels.mail.kind: is not set", "channels.mail.retry.attempts",
		`lists.ops: has the unknown key "color"`, "names no channel", "appears twice on channel mail",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}
